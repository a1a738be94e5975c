"""The command line on a disk that lasts: one operation a call, one line and a status for each mistake."""

import json
from pathlib import Path

import pytest

from refmodel import open_disk
from support.command_line import run


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    assert run("create", tmp_path / "d", "--blocks", 64).returncode == 0
    return tmp_path / "d"


def test_a_disk_lasts_between_calls(disk: Path) -> None:
    assert run("write", disk, 3, stdin=b"from stdin").returncode == 0
    run("snapshot", disk, "s1")
    run("write", disk, 3, "--text", "later")
    run("unmap", disk, 4, 2)
    run("flush", disk)
    assert run("read", disk, 3).stdout == b"later".ljust(4096, b"\0")
    assert run("read", disk, 3, "--view", "s1").stdout == b"from stdin".ljust(4096, b"\0")
    assert run("ls", disk).stdout == b"s1\t1 blocks\n"
    run("revert", disk, "s1")
    assert run("read", disk, 3).stdout.startswith(b"from stdin")
    run("delete", disk, "s1")
    assert run("ls", disk).stdout == b""
    for command in ("checkpoint", "clean", "scrub", "inspect"):
        assert run(command, disk).returncode == 0, command
    assert json.loads(run("stats", disk, "--json").stdout)["chunks.live"] == 1
    assert b"chunks.live" in run("stats", disk).stdout


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["read", "{disk}", "64"], 1, "out-of-range"),
        (["write", "{disk}", "63", "--fill", "1", "--count", "2"], 1, "out-of-range"),
        (["read", "{disk}", "0", "--view", "nope"], 1, "no-such-snapshot"),
        (["delete", "{disk}", "nope"], 1, "no-such-snapshot"),
        (["snapshot", "{disk}", "bad name"], 1, "bad-request"),
        (["read", "{disk}", "-1"], 2, "No such option"),
        (["read", "{disk}", "--", "-1"], 1, "bad-request"),
        (["read", "{disk}", "x"], 2, "not a valid integer"),
        (["ls", "{disk}/nowhere"], 1, "there is no disk"),
        (["create", "{disk}", "--blocks", "8"], 1, "not an empty folder"),
        (["create", "{disk}/new", "--blocks", "0"], 2, "not in the range"),
        (["create", "{disk}/new", "--blocks", "8", "--block-bytes", "1000"], 1, "block size"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_a_mistake_gets_one_line_and_a_status(
    disk: Path, arguments: list[str], status: int, message: str
) -> None:
    done = run(*(argument.format(disk=disk) for argument in arguments))
    assert done.returncode == status
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    if status == 1:
        assert done.stderr.count(b"\n") == 1


def test_two_processes_cannot_open_one_disk(disk: Path) -> None:
    opened = open_disk(disk)
    done = run("read", disk, 0)
    assert done.returncode == 4 and b"another process" in done.stderr
    opened.close()
    assert run("read", disk, 0).returncode == 0


def test_a_folder_that_is_no_disk(tmp_path: Path) -> None:
    (tmp_path / "device-0").write_bytes(b"not a disk" * 1000)
    done = run("ls", tmp_path)
    assert done.returncode == 1 and b"no device has a good label" in done.stderr


def test_adapter_answers_line_by_line_and_survives_bad_lines() -> None:
    lines = [
        {"op": "hello", "protocol": 1},
        {"op": "read", "lba": 0, "count": 1},
        {"op": "create", "blocks": 4},
        "garbage",
        {"op": "write", "lba": 0},
        {"op": "write", "lba": 0, "data": "!"},
        {"op": "write", "lba": "0", "data": ""},
        {"op": "nonsense"},
        {"op": "read", "lba": 0, "count": 1},
        {"op": "crash"},
        {"op": "bye"},
    ]
    stdin = b"".join(
        (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n" for line in lines
    )
    answers = [
        json.loads(line)
        for line in run("adapter", "--block-bytes", 512, stdin=stdin).stdout.splitlines()
    ]
    assert [answer.get("error") for answer in answers] == [
        None, "bad-request", None, "bad-request", "bad-request", "bad-request", "bad-request", "unsupported", None, None, None,
    ]  # fmt: skip
    assert answers[0]["block_size"] == 512 and "crash" in answers[0]["capabilities"]
