"""Bit rot on the proved disk on several devices: what one device cannot read is read from the
others, and repaired; what nobody can read is lost, and never wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from scheduler_bugs import built

from conformance.cli import main
from support.proved_disk import FIRST_FAILURE, PROGRAM, call

ROOT = Path(__file__).parents[2]
SECTOR = 512
BLOCK = 4096
LAYOUTS = ["--mirrors 2", "--raid5 3", "--raid6 5"]


def rot(device: Path, change: bytes = b"\xff") -> None:
    """Change a byte in every sector of the file, so that no block of it can be read."""
    content = bytearray(device.read_bytes())
    for at in range(100, len(content), SECTOR):
        content[at] ^= change[0]
    device.write_bytes(content)


@pytest.fixture(params=LAYOUTS)
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    call("create", tmp_path / "d", "--blocks", 64, *request.param.split())
    return tmp_path / "d"


def unreadable(disk: Path) -> int:
    """Return how many blocks scrub could not read, of all devices."""
    return sum(int(line.split()[2]) for line in call("scrub", disk).decode().splitlines())


def test_a_device_that_can_read_nothing_is_repaired(disk: Path) -> None:
    """Each device in turn rots all over; nothing is lost, and nothing is left to repair."""
    call("write", disk, 3, "--text", "hello")
    call("snapshot", disk, "s")
    for device in sorted(disk.glob("device-*")):
        rot(device)
        assert call("read", disk, 3)[:5] == b"hello"
        assert unreadable(disk) > 0
        assert unreadable(disk) == 0
    call("fail", disk, 0)
    assert call("read", disk, 3, "--view", "s")[:5] == b"hello"


def test_a_read_repairs_what_it_read(disk: Path) -> None:
    call("write", disk, 3, "--text", "hello")
    rot(disk / "device-0")
    before = (disk / "device-0").read_bytes()
    call("read", disk, 3)
    after = (disk / "device-0").read_bytes()
    changed = sum(
        before[at : at + SECTOR] != after[at : at + SECTOR] for at in range(0, len(after), SECTOR)
    )
    assert 0 < changed < len(after) // SECTOR // 2


def test_zeroes_are_noticed(disk: Path) -> None:
    """A device whose blocks became zeroes, as after a discard, is repaired too."""
    call("write", disk, 3, "--text", "hello")
    device = disk / "device-1"
    device.write_bytes(bytes(device.stat().st_size))
    assert call("read", disk, 3)[:5] == b"hello"
    assert unreadable(disk) > 0


def test_a_lost_block_does_not_keep_the_others(tmp_path: Path) -> None:
    """A disk that was not closed cleanly is opened though no device can read one of its blocks.

    Recovery reads the data of the newest record, so there is a newer one."""
    disk = tmp_path / "d"
    call("create", disk, "--blocks", 64, "--mirrors", 2)
    call("write", disk, 3, text=b"one".ljust(BLOCK) + b"two".ljust(BLOCK))
    call("write", disk, 9, "--text", "newer")
    for device in disk.glob("device-*"):
        content = bytearray(device.read_bytes())
        at = content.index(b"two ")
        content[at] ^= 1
        device.write_bytes(content)
    call("read", disk, 4, status=5)
    for clean in ("clean true", "clean false"):
        record = (disk / "members").read_text()
        (disk / "members").write_text(record.replace("clean true", clean))
        assert call("read", disk, 3) == b"one".ljust(BLOCK)
        call("read", disk, 4, status=5)


def test_what_nobody_can_read_is_lost_and_never_wrong(disk: Path) -> None:
    call("write", disk, 3, "--text", "hello")
    for device in disk.glob("device-*"):
        rot(device)
    call("read", disk, 3, status=5)


@pytest.mark.parametrize("layout", ["mirrors", "raid5", "raid6"])
def test_the_kit_finds_nothing(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    target = f"python:proofs.disk.rotting_target:open_{layout}"
    arguments = ["run", "--target", target, "--traces", "10", "--seed", "5", "--jobs", "1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("seals.ml", "if all 0 then Some block else None", "ignore (all 0); Some block"),
        (
            "mirror_set.ml",
            "Option.map Bytes_blocks.to_block piece\n",
            "Some (Bytes_blocks.to_block (Option.value piece ~default:Bytes_blocks.zero))\n",
        ),
    ],
    ids=["no digest is compared", "what cannot be read is zeroes"],
)
def test_the_kit_finds_what_is_broken(file: str, old: str, new: str, tmp_path: Path) -> None:
    program = built(tmp_path, {"what": new, "old": old, "new": new}, file)
    target = "python:proofs.disk.rotting_target:open_mirrors"
    done = subprocess.run(
        [sys.executable, "-m", "conformance", "run", "--target", target]
        + ["--traces", "20", "--seed", "5", "--jobs", "1", *FIRST_FAILURE],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PROVED_DISK": str(program), "PYTHONPATH": str(ROOT)},
        capture_output=True,
    )
    assert done.returncode == 1


def test_repairs_are_counted(tmp_path: Path) -> None:
    """`stats` has the blocks that could not be read."""
    target = [PROGRAM, "adapter", "--mirrors", "2", "--folder", str(tmp_path)]
    with subprocess.Popen(
        list(map(str, target)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout

        def ask(**message: object) -> dict[str, object]:
            assert process.stdin and process.stdout
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            answer: dict[str, object] = json.loads(process.stdout.readline())
            return answer

        ask(op="create", blocks=8)
        rot(next(tmp_path.glob("*/device-0")))
        assert ask(op="read", lba=0, count=1)["ok"]
        ask(op="crash")
        counters = ask(op="stats")["counters"]
        assert isinstance(counters, dict) and counters["unreadable_blocks"] > 10
        ask(op="bye")
