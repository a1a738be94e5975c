"""The disk extracted from its proof: its command line, and what the kit says of it."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import cutting_target
import pytest
from click.testing import CliRunner
from scheduler_bugs import built

from conformance.cli import main
from conformance.targets.base import PowerCut
from support.proved_disk import FIRST_FAILURE, PROGRAM, call

ROOT = Path(__file__).parents[2]
BLOCK = 4096


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    call("create", tmp_path / "d", "--blocks", 64)
    return tmp_path / "d"


def test_views_last(disk: Path) -> None:
    call("write", disk, 3, text=b"one" * 3000)
    call("snapshot", disk, "s")
    call("write", disk, 3, "--text", "two")
    call("unmap", disk, 4)
    assert call("read", disk, 3, 2) == b"two".ljust(2 * BLOCK, b"\0")
    assert call("read", disk, 3, 3, "--view", "s") == (b"one" * 3000).ljust(3 * BLOCK, b"\0")
    assert call("ls", disk) == b"s 3\n"
    call("revert", disk, "s")
    assert call("read", disk, 3)[:6] == b"oneone"
    call("delete", disk, "s")
    assert call("ls", disk) == b""
    assert b"live: 3 blocks mapped" in call("inspect", disk)


def cut_at(file: Path, data: bytes) -> None:
    """Let a file of a disk end where the data begins in it."""
    with file.open("r+b") as opened:
        opened.truncate(opened.read().index(data))


def test_a_file_that_was_cut_short_is_no_zeroes(disk: Path) -> None:
    """What is behind its end is lost, also where it is a part of the log. The rest is read."""
    call("write", disk, 3, text=b"one".ljust(BLOCK) + b"two".ljust(BLOCK))
    call("checkpoint", disk)  # recovery reads the data of a newest record
    cut_at(disk / "blocks", b"two ")
    assert call("read", disk, 3) == b"one".ljust(BLOCK)
    call("read", disk, 4, status=5)
    os.truncate(disk / "blocks", 4 * BLOCK)
    call("ls", disk, status=5)


def test_another_device_has_what_was_cut_off(tmp_path: Path) -> None:
    call("create", tmp_path / "m", "--blocks", 64, "--mirrors", 2)
    call("write", tmp_path / "m", 3, text=b"one".ljust(BLOCK) + b"two".ljust(BLOCK))
    cut_at(tmp_path / "m" / "device-0", b"two ")
    assert call("read", tmp_path / "m", 4) == b"two".ljust(BLOCK)
    assert b"device 0: does not answer" in call("status", tmp_path / "m", status=1)


def test_one_process_at_a_time(disk: Path) -> None:
    first = subprocess.Popen(
        [PROGRAM, "adapter", "--disk", disk], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert first.stdin is not None and first.stdout is not None
    first.stdin.write(b'{"op":"hello"}\n')
    first.stdin.flush()
    assert json.loads(first.stdout.readline())["ok"]
    call("ls", disk, status=4)
    first.communicate()
    call("ls", disk)


def test_what_is_no_request_is_refused() -> None:
    lines = [
        b"",
        b"[]",
        b'{"op":7}',
        b'{"op":"write","lba":-1,"data":""}',
        b'{"op":"create","blocks":0}',
        b'{"op":"read","lba":0,"count":1}',
        b'{"op":"create","blocks":4}',
        b'{"op":"write","lba":0,"data":"AAAA"}',
        b'{"op":"fail"}',
        b'{"op":"bye"}',
    ]
    out = call("adapter", text=b"\n".join(lines) + b"\n").splitlines()
    assert [json.loads(line)["ok"] for line in out] == [False] * 6 + [True, False, False, True]


def test_memory_is_gone_with_the_power() -> None:
    """A cut in a write, then one in recovery: until recovery has ended there is no disk."""
    data = base64.b64encode(b"a" * BLOCK).decode()
    requests = [
        {"op": "create", "blocks": 8},
        {"op": "write", "lba": 0, "data": data, "cut": {"after": 2, "seed": 1}},
        {"op": "read", "lba": 0, "count": 1},
        {"op": "crash", "cut": {"after": 3, "seed": 1}},
        {"op": "read", "lba": 0, "count": 1},
        {"op": "crash"},
        {"op": "read", "lba": 0, "count": 1},
    ]
    out = call("adapter", text="\n".join(map(json.dumps, requests)).encode() + b"\n").splitlines()
    errors = [json.loads(line).get("error") for line in out]
    cut, none = "unknown-outcome", "bad-request"
    assert errors == [None, cut, none, cut, none, None, None]


@pytest.mark.parametrize(
    "target",
    [
        "exec:{} adapter",
        "exec:{} adapter --trees",
        "python:proofs.disk.cutting_target:open_target",
        "python:proofs.disk.cutting_target:open_trees",
    ],
)
def test_the_kit_finds_nothing(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = [
        "run",
        "--target",
        target.format(PROGRAM),
        "--traces",
        "20",
        "--seed",
        "5",
        "--jobs",
        "1",
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "bug",
    [
        {
            "what": "a flush makes nothing durable",
            "file": "device.ml",
            "old": "store device (List.rev device.unflushed);",
            "new": "();",
        },
        {
            "what": "the log's record is not flushed",
            "file": "engine.ml",
            "old": "| FlushBlocks next -> flush last device next; run ?last device next",
            "new": "| FlushBlocks next -> run ?last device next",
        },
    ],
)
def test_the_kit_finds_a_device_that_breaks_its_promise(
    bug: dict[str, str], tmp_path: Path
) -> None:
    """What is trusted is not vacuous: without it the disk loses data, and the kit says so."""
    program = built(tmp_path, bug, bug["file"])
    arguments = [
        "-m",
        "conformance",
        "run",
        "--target",
        f"exec:{program} adapter",
        "--traces",
        "20",
        "--seed",
        "5",
        *FIRST_FAILURE,
    ]
    assert (
        subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True).returncode == 1
    )


def found_after_cuts(program: Path) -> list[bool]:
    """Cut the power when data and record of a write are both in flight, again and again. Return
    whether each read that follows finds the last write or what was read before it."""
    requests: list[dict[str, object]] = [{"op": "create", "blocks": 4}]
    contents = [bytes([n + 1]) * BLOCK for n in range(60)]
    for content in contents:
        data = base64.b64encode(content).decode()
        requests += [
            {"op": "write", "lba": 0, "data": data, "cut": {"after": 2}},
            {"op": "crash"},
            {"op": "read", "lba": 0, "count": 1},
        ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([program, "adapter"], input=lines.encode(), capture_output=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    found = [bytes(BLOCK)] + [base64.b64decode(answer["data"]) for answer in answers[3::3]]
    return [
        now in (content, before)
        for content, before, now in zip(contents, found, found[1:], strict=False)
    ]


def test_a_record_without_its_data_is_dropped(tmp_path: Path) -> None:
    """And with one digest for all data it is not."""
    assert all(found_after_cuts(PROGRAM))
    bug = {"what": "all data have one digest", "old": "(word 0, word 1)", "new": "(0, 0)"}
    assert not all(found_after_cuts(built(tmp_path, bug, "bytes_blocks.ml")))


WITHOUT_DIGEST = (
    {
        "what": "records and headers are sealed without a digest",
        "old": "(h.digest ((h.of_words ws0) :: []))",
        "new": "(0, 0)",
    },
    {
        "what": "the digest is not compared",
        "old": "(h.digest ((h.of_words ws) :: []))",
        "new": "(0, 0)",
    },
)


@pytest.fixture(scope="module")
def unsealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk with a codec that takes half of one record and half of another for a record."""
    bug, *also = WITHOUT_DIGEST
    return built(tmp_path_factory.mktemp("unsealed"), bug, "proved_core.ml", *also)


def test_crash_states_find_a_codec_without_its_digest(unsealed: Path) -> None:
    tool = ROOT / "proofs" / "disk" / "crash_states.py"
    for program, status in ((PROGRAM, 0), (unsealed, 1)):
        done = subprocess.run(
            [sys.executable, tool, "40"],
            env=os.environ | {"PROVED_DISK": str(program)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stdout + done.stderr


def test_power_cuts_find_a_codec_without_its_digest(
    unsealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one of some short runs: how soon depends on what the programs are."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("proofs.disk.cutting_target.PROGRAM", unsealed)
    monkeypatch.setattr("conformance.campaign.random_campaign.SHRINK_SECONDS", 0.0)
    target = "python:proofs.disk.cutting_target:open_target"
    command = ["run", "--target", target, "--traces", "40", "--jobs", "1", *FIRST_FAILURE]
    statuses = (
        CliRunner().invoke(main, [*command, "--seed", str(seed)]).exit_code
        for seed in (8, 5, 6, 7, *range(9, 15))  # 8 found it last
    )
    assert next(filter(None, statuses), 0) == 1


def test_the_cutting_target_cuts() -> None:
    """The power fails inside an operation, which no request of the kit's other targets asks for."""
    target = cutting_target.open_target({})
    try:
        assert target.cuts
        target.request({"op": "create", "blocks": 8})
        with pytest.raises(PowerCut):
            target.request({"op": "snapshot", "name": "s", "cut": {"after": 1}})
    finally:
        target.close()


def test_a_wrong_scheduler_does_no_harm(tmp_path: Path) -> None:
    bug = {
        "what": "places in use",
        "old": "s.holes <- s.found.(s.at);",
        "new": "s.holes <- places_of y s.at;",
    }
    program = built(tmp_path, bug)
    arguments = [
        "-m",
        "conformance",
        "run",
        "--target",
        f"exec:{program} adapter",
        "--traces",
        "10",
        "--seed",
        "5",
    ]
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("proposed", ["[]", "places s y (n + 1)"])
def test_nothing_is_refused_whatever_the_scheduler_proposes(tmp_path: Path, proposed: str) -> None:
    bug = {
        "what": "too few places, or too many",
        "old": "  places s y n\n\n(* A request",
        "new": f"  {proposed}\n\n(* A request",
    }
    data = base64.b64encode(b"a" * BLOCK).decode()
    requests: list[dict[str, object]] = [{"op": "create", "blocks": 4}]
    for n in range(100):
        requests += [
            {"op": "write", "lba": n % 4, "data": data},
            {"op": "snapshot", "name": "s"},
            {"op": "unmap", "lba": n % 4, "count": 1},
            {"op": "revert", "name": "s"},
            {"op": "delete", "name": "s"},
        ]
    done = subprocess.run(
        [built(tmp_path, bug), "adapter"],
        input="\n".join(map(json.dumps, requests)).encode() + b"\n",
        capture_output=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [{"ok": True}] * 501
