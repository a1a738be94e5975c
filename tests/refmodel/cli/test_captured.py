"""Command lines that run in the process that has the disk open."""

import gc
import sys
from pathlib import Path

import click
import pytest

import refmodel
from refmodel.cli.captured import captured
from refmodel.cli.commands import run_on
from refmodel.serving.exit_status import UNKNOWN


def test_output_input_and_status_are_those_of_a_process(tmp_path: Path) -> None:
    folder = str(tmp_path / "d")
    refmodel.create(folder, refmodel.plan(64), sync=False)
    before = sys.stdin, sys.stdout, sys.stderr
    disk = refmodel.open_disk(folder, sync=False)
    assert run_on(disk, ["write", folder, "8"], b"x" * 4096) == (b"", b"", 0)
    assert run_on(disk, ["read", folder, "8"], b"") == (b"x" * 4096, b"", 0)
    stdout, stderr, status = run_on(disk, ["snapshot", folder, "a b"], b"")
    assert (stdout, status) == (b"", 1) and b"a snapshot's name is" in stderr
    stdout, stderr, status = run_on(disk, ["snapshot"], b"")
    assert (stdout, status) == (b"", 2) and stderr.startswith(b"refmodel snapshot: missing")
    assert run_on(disk, ["--help"], b"").stdout.startswith(b"Usage: refmodel")
    disk.close()
    assert (sys.stdin, sys.stdout, sys.stderr) == before


def test_an_error_that_nobody_foresaw_is_one_line() -> None:
    @click.command()
    def fails() -> None:
        raise RuntimeError("no such thing")

    answer = captured(fails, [], b"")
    assert answer.stderr == b"refmodel: the server failed: RuntimeError('no such thing')\n"
    assert answer.status == UNKNOWN


def test_ctrl_c_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refmodel.create(tmp_path / "d", refmodel.plan(64), sync=False)
    disk = refmodel.open_disk(tmp_path / "d", sync=False)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(disk, "snapshot", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_on(disk, ["snapshot", str(tmp_path / "d"), "a"], b"")
    disk.close()


def test_what_a_command_printed_is_in_no_cycle_of_objects(tmp_path: Path) -> None:
    """A server that is never idle does not collect cycles for hours."""
    folder, commands = str(tmp_path / "d"), 20
    refmodel.create(folder, refmodel.plan(64), sync=False)
    disk = refmodel.open_disk(folder, sync=False)
    gc.collect()
    gc.disable()
    try:
        for number in range(commands):
            run_on(disk, ["snapshot", folder, f"s{number}"], b"")
            run_on(disk, ["read", folder, "0", "64"], b"")
        assert gc.collect() < 2 * commands, "objects; they were 31 for each command"
    finally:
        gc.enable()
        disk.close()
