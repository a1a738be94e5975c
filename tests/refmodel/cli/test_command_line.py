"""The command line: a disk lasts between calls, a mistake gets one line and an exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from refmodel import __version__, open_disk
from refmodel.cli import main
from support.command_line import ENGINE, run


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
    assert run("ls", disk).stdout == b"s1\t1 block\n"
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
        (["write", "{disk}", "3"], 1, "this one has 0 bytes"),
        (["create", "{disk}2", "--blocks", "99999999999999999"], 2, "pages"),
        (["read", "{disk}", "0", "--view", "nope"], 1, "no-such-snapshot"),
        (["delete", "{disk}", "nope"], 1, "no-such-snapshot"),
        (["snapshot", "{disk}", "bad name"], 1, "bad-request"),
        (["read", "{disk}", "-1"], 2, "refmodel read: no such option '-1' (see --help)\n"),
        (["read", "{disk}", "--", "-1"], 1, "bad-request"),
        (["read", "{disk}", "x"], 2, "not a valid integer"),
        (["ls", "{disk}/nowhere"], 2, "there is no disk"),
        (["create", "{disk}", "--blocks", "8"], 2, "not an empty folder"),
        (["create", "{disk}/new", "--blocks", "0"], 2, "not in the range"),
        (["create", "{disk}2", "--blocks", "64", "--repair-timer", "nan"], 2, "finite number"),
        (["create", "{disk}2", "--blocks", "64", "--repair-timer", "inf"], 2, "finite number"),
        (["bench", "--scale", "nan"], 2, "not a finite number"),
        (["create", "{disk}/new", "--blocks", "8", "--block-bytes", "1000"], 2, "block size"),
        (
            ["create", "{disk}2", "--blocks", "8", "--spares", "-1"],
            2,
            "refmodel create: a disk has 0 to 8 spares (see",
        ),
        (["create", "{disk}2", "--blocks", "8", "--fanout", "1"], 2, "the fanout"),
        (["create", "{disk}2", "--blocks", "8", "--repair-share", "0"], 2, "1 to 99 percent"),
        (
            ["create", "{disk}2", "--blocks", "8", "--engine", "redo-se", "--layout", "mirror"],
            2,
            "no option --layout",
        ),
        (["create", "{disk}2", "--blocks", "8", "--cache-bytes", "5"], 2, "at least one block"),
        (["frobnicate"], 2, "refmodel: no such command 'frobnicate' (see --help)\n"),
        (["write", "{disk}", "3", "--count", "2", "--text", "a"], 2, "--count goes with --fill"),
        (["write", "{disk}", "3", "--count", "1"], 2, "--count goes with --fill"),
        (["stats", "{disk}", "--cheap"], 2, "--cheap goes with --json"),
        (["stats", "{disk}", "--json", "--openmetrics"], 2, "exclude each other"),
        (["inspect", "{disk}", "--html", "{disk}.html", "--svg", "log"], 2, "exclude each other"),
        (["create", "", "--blocks", "10"], 2, "the path of a folder is not empty"),
        (["status", ""], 2, "the path of a folder is not empty"),
        (["serve", "{disk}", "--socket", ""], 2, "the path of a socket is not empty"),
        (["serve", "{disk}", "--port", "0", "--memory", str(10**23)], 2, "not in the range"),
    ],
)
def test_a_mistake_gets_one_line_and_a_status(
    disk: Path, arguments: list[str], status: int, message: str
) -> None:
    done = run(*(argument.format(disk=disk) for argument in arguments))
    assert done.returncode == status
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_status_says_that_the_witness_is_lost_and_scrub_makes_a_new_one(disk: Path) -> None:
    assert run("status", disk).returncode == 0
    (disk / "witness").unlink()
    done = run("status", disk)
    assert done.returncode == 1 and b"witness lost" in done.stdout
    assert b"3 membership records verified, 1 copy repaired" in run("scrub", disk).stdout
    done = run("status", disk)
    assert done.returncode == 0 and b"witness" not in done.stdout
    assert run("fail", disk, 0).returncode == 0


def test_status_promises_a_rebuild_only_where_there_is_a_spare(tmp_path: Path) -> None:
    for spares, waits in ((0, b"absent, no spare to rebuild it on"), (1, b"absent, rebuild in 3")):
        disk = tmp_path / f"d{spares}"
        run("create", disk, "--blocks", 64, "--spares", spares)
        run("fail", disk, 0)
        assert waits in run("status", disk).stdout
    run("fail", disk, 2)  # the spare
    assert b"absent, no spare to rebuild it on" in run("status", disk).stdout


def test_scrub_names_a_device_whose_label_is_gone(disk: Path) -> None:
    run("write", disk, 0, "--fill", 7, "--count", 64)
    size = (disk / "device-0").stat().st_size
    os.truncate(disk / "device-0", 4096)
    done = run("scrub", disk)  # one copy of the label is left
    assert done.returncode == 0
    told = [line.split(b" ", 1)[1] for line in done.stderr.splitlines()]
    assert told[:2] == [
        b"label repaired when the disk was opened",
        b"checkpoint repaired when the disk was opened",
    ]
    assert b" 0 copies repaired" not in done.stdout.splitlines()[-1]  # of the chunks
    assert 4096 < (disk / "device-0").stat().st_size <= size
    os.truncate(disk / "device-0", 0)
    done = run("scrub", disk)
    assert done.returncode == 0
    assert done.stderr == b"device 0 is absent: its copies are not all verified\n"
    for command in ("replace", "settle"):
        assert run(command, disk, *([0] if command == "replace" else [])).returncode == 0
    assert run("scrub", disk).stderr == b""


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it is ignored in a shell's job


def test_ctrl_c_is_one_line_and_status_130(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    words = ["bench", str(disk), "--profile", "hcibench-4k-write", "--operations", "1000000"]
    with subprocess.Popen(
        [*ENGINE, *words], stderr=subprocess.PIPE, preexec_fn=_interruptible
    ) as bench:
        while bench.poll() is None and not (disk / "control").exists():
            time.sleep(0.01)
        time.sleep(0.5)
        bench.send_signal(signal.SIGINT)
        _, errors = bench.communicate(timeout=60)
    assert (bench.returncode, errors) == (130, b"refmodel: interrupted\n")
    assert run("ls", disk).returncode == 0


def test_ctrl_c_in_a_finalizer_is_not_lost() -> None:
    script = """
import os, signal, time
from commandline.interrupts import interrupts_repeated
class Closed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
with interrupts_repeated():
    Closed()
    time.sleep(20)
print("not interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, preexec_fn=_interruptible, timeout=60
    )
    assert done.stdout == b"" and done.stderr.endswith(b"KeyboardInterrupt\n")
    assert b"ignored" not in done.stderr


def test_two_processes_cannot_open_one_disk(disk: Path) -> None:
    opened = open_disk(disk)
    done = run("read", disk, 0)
    assert done.returncode == 4 and b"another process" in done.stderr
    opened.close()
    assert run("read", disk, 0).returncode == 0


def test_a_folder_without_a_good_label(tmp_path: Path) -> None:
    (tmp_path / "device-0").write_bytes(b"not a disk" * 1000)
    done = run("ls", tmp_path)
    assert done.returncode == 5 and b"no device has a good label" in done.stderr
    (tmp_path / "device-0").unlink()
    assert run("ls", tmp_path).returncode == 2
    (tmp_path / "witness").touch()
    done = run("status", tmp_path)
    assert done.returncode == 5 and b"every device was pulled or is gone" in done.stderr


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
    bad = ["bad-request"]
    assert [answer.get("error") for answer in answers] == (
        [None] + bad + [None] + 4 * bad + ["unsupported"] + [None] * 3
    )
    assert answers[0]["block_size"] == 512 and "crash" in answers[0]["capabilities"]


@pytest.mark.parametrize("name", main.commands)
def test_every_command_has_help_and_a_version(name: str) -> None:
    helped = CliRunner().invoke(main, [name, "--help"])
    assert helped.exit_code == 0
    for line in helped.output.splitlines():
        assert len(line) <= 100
    options = [
        option for option in main.commands[name].params if option.param_type_name == "option"
    ]
    assert all(option.help for option in options), [option.name for option in options]
    version = CliRunner().invoke(main, [name, "--version"])
    assert (version.exit_code, version.output) == (0, f"refmodel {__version__}\n")


def test_the_list_of_commands_cuts_no_sentence_short() -> None:
    listed = CliRunner().invoke(main, ["--help"]).output
    assert "..." not in listed.split("Commands:")[1]
    assert all(f"  {name} " in listed for name in main.commands)


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["create", "--help"]])
def test_help_that_cannot_be_written_is_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*ENGINE, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr == "refmodel: output: No space left on device\n"


def test_nobody_reads_the_output(disk: Path) -> None:
    for words in (["stats"], ["inspect"], ["read", "3"]):
        with subprocess.Popen(
            [*ENGINE, words[0], str(disk), *words[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as command:
            assert command.stdout and command.stderr
            command.stdout.close()
            assert command.stderr.read() == b""
        assert command.returncode == 1


@pytest.mark.parametrize(
    "redirected, words, status, message",
    [
        (
            "<&-",
            "write {disk} 0",
            1,
            "refmodel: bad-request: a write is a whole number of blocks of 4096 bytes, and at "
            "least one; this one has 0 bytes\n",
        ),
        ("<&-", "adapter", 0, ""),
        (">&-", "status {disk}", 1, "refmodel: output: Bad file descriptor"),
        (">&-", "read {disk} 0", 1, "refmodel: output: Bad file descriptor"),
        (">&-", "--help", 1, "refmodel: output: Bad file descriptor"),
        (">&-", "ls {disk}/nowhere", 2, "refmodel: there is no disk at"),
        (">&-", "write {disk} 0 --text a", 0, ""),
        ("2>&-", "ls {disk}/nowhere", 2, ""),
    ],
)
def test_a_closed_standard_stream_is_one_line(
    disk: Path, redirected: str, words: str, status: int, message: str
) -> None:
    command = " ".join([*ENGINE, words.format(disk=disk), redirected])
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == status
    assert done.stderr.startswith(message) and done.stderr.count("\n") == bool(message)


def test_an_error_of_the_host_names_the_path() -> None:
    done = run("create", "/proc/d", "--blocks", 64)
    assert (done.returncode, done.stderr) == (1, b"refmodel: /proc/d: No such file or directory\n")


def test_the_shell_completes_commands_and_options() -> None:
    for words, completed in (("sn", "plain,snapshot"), ("bench --sna", "plain,--snapshots")):
        environment = {
            "_REFMODEL_COMPLETE": "bash_complete",
            "COMP_WORDS": f"refmodel {words}",
            "COMP_CWORD": str(len(words.split())),
        }
        done = subprocess.run(
            ENGINE, env=os.environ | environment, capture_output=True, text=True, timeout=60
        )
        assert done.stdout.splitlines() == [completed]
