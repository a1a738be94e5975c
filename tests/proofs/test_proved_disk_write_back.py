"""The proved disk with write-back: the profiles `prefix` and `block`, in the kit's dialogue and
over NBD."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import cutting_target
import pytest
from click.testing import CliRunner
from kill_server import Server
from scheduler_bugs import built

from conformance.cli import main
from conformance.targets.process import ProcessTarget
from support.proved_disk import FIRST_FAILURE, PROGRAM, call
from support.proved_server import BLOCK, asked, connected, counted
from support.serving.nbd_client import FLUSH, FUA, READ, WRITE, Client

ROOT = Path(__file__).parents[2]
BLOCKS = 64
SHORT_LOG = "--profile prefix --log-records 4"


def judged(target: str, traces: int) -> tuple[int, str]:
    """Return the status of the kit on a target, and what it printed."""
    arguments = ["run", "--target", target, "--traces", str(traces), "--seed", "5", "--jobs", "1"]
    result = CliRunner().invoke(main, [*arguments, *FIRST_FAILURE])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    "target",
    [
        f"exec:{PROGRAM} adapter --profile prefix",
        f"exec:{PROGRAM} adapter --profile prefix --trees",
        "python:proofs.disk.cutting_target:open_prefix",
        "python:proofs.disk.cutting_target:open_prefix_mirrors",
        "python:proofs.disk.cutting_target:open_prefix_raid5",
        "python:proofs.disk.cutting_target:open_prefix_raid6",
        "python:proofs.disk.cutting_target:open_block",
        "python:proofs.disk.cutting_target:open_block_mirrors",
    ],
)
def test_the_kit_finds_nothing(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    status, output = judged(target, 20)
    assert status == 0, output


@pytest.mark.parametrize("profile", ["prefix", "block"])
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("adapter.ml", '"hello" -> hello state.profile', '"hello" -> hello "ack"'),
        ("adapter.ml", '| "flush" -> perform DoFlush', '| "flush" -> ok []'),
        ("proved_core.ml", "(reverse0 (p :: l))) (fun o ->", "(p :: l)) (fun o ->"),
    ],
    ids=["it says ack", "a flush does nothing", "the newest write goes first"],
)
def test_the_kit_finds_what_is_broken(
    file: str, old: str, new: str, profile: str, tmp_path: Path
) -> None:
    disk = built(tmp_path, {"what": new, "old": old, "new": new}, file)
    status, output = judged(f"exec:{disk} adapter --profile {profile}", 30)
    assert status == 1, output


def test_delayed_writes_stay_while_no_mirror_answers() -> None:
    """They go with the power, and not with the last member."""
    with closing(cutting_target.open_prefix_mirrors({"records": 16})) as target:

        def ask(op: str, **fields: object) -> dict[str, object]:
            return target.request({"op": op, **fields})

        def read() -> object:
            return ask("read", lba=0, count=1).get("data")

        first, second, third = (bytes([byte]) * BLOCK for byte in b"abc")
        assert "fua" not in ask("hello", protocol=1)["capabilities"]  # type: ignore[operator]
        ask("create", blocks=BLOCKS)
        assert ask("write", lba=0, data=first)["ok"]
        assert ask("flush")["ok"]
        assert ask("write", lba=0, data=second)["ok"]
        for device in (0, 1):
            ask("fail", device=device)
        assert ask("flush")["error"] == "unknown-outcome"
        assert ask("read", lba=0, count=1)["error"] == "data-lost"
        for device in (0, 1):
            ask("return", device=device)
        assert read() == second
        assert ask("flush")["ok"]
        assert ask("write", lba=0, data=third)["ok"]
        assert read() == third
        ask("crash")
        assert read() == second
        target.request({"op": "bye"})


def test_the_adapter_answers_before_it_writes() -> None:
    with closing(cutting_target.open_prefix({"records": 16})) as target:
        hello = target.request({"op": "hello", "protocol": 1})
        assert hello["crash_profile"] == "prefix"
        assert "fua" not in hello["capabilities"]
        target.request({"op": "create", "blocks": BLOCKS})
        before = target.request({"op": "stats"})["counters"]
        data = b"A" * BLOCK
        for lba in range(20):
            assert target.request({"op": "write", "lba": lba, "data": data})["ok"]
        assert target.request({"op": "stats"})["counters"] == before
        assert target.request({"op": "read", "lba": 19, "count": 1})["data"] == data
        assert target.request({"op": "flush"})["ok"]
        after = target.request({"op": "stats"})["counters"]
        assert after["device_flushes"] - before["device_flushes"] == 1
        assert after["device_writes"] - before["device_writes"] == 21
        target.request({"op": "bye"})


class Prefix:
    """A server with write-back, and a client of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open()

    def open(self) -> None:
        self.server = Server(self.folder, "--profile", "prefix")
        self.client, self.end = connected(self.folder)

    def close(self, signal: str) -> None:
        self.end.close()
        getattr(self.server.process, signal)()
        self.server.process.wait()

    def again(self, signal: str) -> Client:
        self.close(signal)
        self.open()
        return self.client


@pytest.fixture(params=[[], ["--trees"]], ids=["whole", "trees"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Prefix]:
    call("create", tmp_path / "disk", "--blocks", BLOCKS, *request.param)
    found = Prefix(tmp_path)
    yield found
    found.close("terminate")
    assert found.server.process.returncode == 0


def number(client: Client, lba: int) -> int:
    content = client.one(READ, lba * BLOCK, BLOCK).content
    assert isinstance(content, bytes)
    return content[0]


def test_what_was_flushed_survives_a_kill(served: Prefix, tmp_path: Path) -> None:
    client, disk = served.client, tmp_path / "disk"
    before = counted(disk)
    for lba in range(30):
        assert not client.one(WRITE, lba * BLOCK, data=bytes([lba + 1]) * BLOCK).error
    assert not client.one(WRITE, 30 * BLOCK + 7, data=b"part").error
    assert counted(disk) == before
    assert not client.one(FLUSH).error
    after = counted(disk) - before
    assert (after["device_flushes"], after["device_writes"]) == (1, 32)
    assert not client.one(WRITE, 0, data=bytes([99]) * BLOCK).error
    assert number(client, 0) == 99
    client = served.again("kill")
    assert [number(client, lba) for lba in range(30)] == list(range(1, 31))
    assert client.one(READ, 30 * BLOCK + 7, 4).content == b"part"


def test_a_forced_write_survives_a_kill(served: Prefix, tmp_path: Path) -> None:
    before = counted(tmp_path / "disk")
    for lba in range(3):
        data, flags = bytes([lba + 1]) * BLOCK, FUA if lba == 2 else 0
        answer = served.client.one(WRITE, lba * BLOCK, data=data, flags=flags)
        assert not answer.error
    assert (counted(tmp_path / "disk") - before)["device_flushes"] == 1
    client = served.again("kill")
    assert [number(client, lba) for lba in range(3)] == [1, 2, 3]


def test_a_snapshot_has_what_was_answered(served: Prefix, tmp_path: Path) -> None:
    client = served.client
    assert not client.one(WRITE, 0, data=bytes([1]) * BLOCK).error
    call("snapshot", tmp_path / "disk", "s")
    assert not client.one(WRITE, 0, data=bytes([2]) * BLOCK).error
    client = served.again("kill")
    assert number(client, 0) == 1
    view, end = connected(tmp_path, "s")
    with closing(end):
        assert number(view, 0) == 1


def test_a_server_that_ends_flushes(served: Prefix) -> None:
    assert not served.client.one(WRITE, 5 * BLOCK, data=bytes([7]) * BLOCK).error
    assert number(served.again("terminate"), 5) == 7


def test_mirrors_that_nobody_answers_for_lose_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    call("create", disk, "--blocks", BLOCKS, "--mirrors", 2)
    served = Prefix(tmp_path)
    client = served.client
    assert not client.one(WRITE, 0, data=bytes([1]) * BLOCK).error
    assert not client.one(FLUSH).error
    assert not client.one(WRITE, 0, data=bytes([2]) * BLOCK).error
    for device in (0, 1):
        assert asked(disk, {"op": "fail", "device": device})["ok"]
    assert client.one(FLUSH).error
    for device in (0, 1):
        assert asked(disk, {"op": "return", "device": device})["ok"]
    assert number(client, 0) == 2
    assert not client.one(FLUSH).error
    assert number(served.again("kill"), 0) == 2
    served.close("terminate")


def test_a_kill_leaves_a_prefix(served: Prefix) -> None:
    """More is written than may be delayed: some of it survives, and no later write without the
    earlier ones."""
    for turn in range(1, 60):
        data = bytes([turn]) * (BLOCKS * BLOCK)
        assert not served.client.one(WRITE, 0, data=data).error
    client = served.again("kill")
    found = {number(client, lba) for lba in range(BLOCKS)}
    assert len(found) == 1
    assert found.pop() > 0


@pytest.mark.parametrize("seed", [2, 5, 6, 11])
def test_a_torn_word_of_a_name_does_no_harm(seed: int) -> None:
    """Recovery reads a name before it compares the digest: its words may be anything."""
    chosen = Random(seed)
    with closing(
        ProcessTarget(f"{PROGRAM} adapter --mirrors 3 {SHORT_LOG} --seed {seed}")
    ) as target:

        def ask(op: str, **fields: object) -> bool:
            return bool(target.request({"op": op, **fields})["ok"])

        def write(lba: int, blocks: int) -> bool:
            return ask("write", lba=lba, data=chosen.randbytes(blocks * BLOCK))

        assert ask("create", blocks=300)
        assert all(write(*where) for where in [(0, 300), (0, 150), (150, 75), (299, 1)])
        assert ask("snapshot", name="a".rjust(64, "_"))
        assert write(210, 1)
        assert not ask("snapshot", name="b".rjust(64, "_"), cut={"after": 4, "seed": seed})
        assert ask("crash")
        assert ask("read", lba=0, count=300)
        target.request({"op": "bye"})
