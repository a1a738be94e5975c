"""Running Apalache: how it ended is understood, and what could not run is no success."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from modelcheck.__main__ import main
from modelcheck.checkers import apalache, tlc
from modelcheck.commands.apalache import without_prose
from modelcheck.runs import models
from modelcheck.runs.models import Run

TINY = Run(
    "tiny",
    "APCachedDisk",
    "a test",
    tool="apalache",
    steps=[["typecheck"], ["check", "--length=0"]],
)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "apalache-mc"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("APALACHE_MC", str(program))
    monkeypatch.setattr(apalache, "BUILD", folder / "build")


@pytest.mark.parametrize(
    "code, status", [(0, "ok"), (12, "violated"), (120, "type error"), (255, "error"), (1, "error")]
)
def test_only_exit_status_0_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, status: str
) -> None:
    stand_in(
        tmp_path, monkeypatch, f"echo 'it is broken                    E@07:00:00.000'; exit {code}"
    )
    outcome = apalache.check(TINY, 1)
    assert (outcome.status, outcome.message) == (status, "" if code == 0 else "it is broken")


def test_the_step_is_what_apalache_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/given; test -d "$TMPDIR"')
    assert apalache.check(TINY, 1).status == "ok"
    given = (tmp_path / "given").read_text().split()
    assert given[0] == "check" and given[-2:] == ["--length=0", "APCachedDisk.tla"]


def test_what_takes_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "exec sleep 60")
    assert apalache.check(TINY, 0, timeout=0.2).status == "timeout"


def test_who_ends_the_command_ends_the_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    command = [sys.executable, "-m", "modelcheck", "apalache", "--jobs", "1", "Redundancy"]
    with subprocess.Popen(command) as running:
        pid = waited(tmp_path / "pid")
        running.terminate()
        assert running.wait(60) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def waited(file: Path) -> int:
    """The number in a file, once it is there."""
    for _ in range(600):
        if file.exists() and (text := file.read_text()).strip():
            return int(text)
        time.sleep(0.1)
    raise AssertionError(f"{file} was not written within a minute")


def test_a_violation_is_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, 'case "$*" in *length=1*) exit 12;; esac')
    done = CliRunner().invoke(main, ["apalache", "Redundancy"])
    assert done.exit_code == 1 and re.search("--length=1 .*: violated", done.stderr)


def test_what_holds_is_kept_and_what_does_not_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'echo "$@" >> {tmp_path}/given; case "$*" in *length=1*) exit 12;; esac'
    stand_in(tmp_path, monkeypatch, script)
    for _ in range(2):
        assert CliRunner().invoke(main, ["apalache", "Redundancy"]).exit_code == 1
    given = (tmp_path / "given").read_text().splitlines()
    assert [line.count("length=1") for line in given].count(1) == 2
    (run,) = [run for run in models.runs(tool="apalache") if run.name == "Redundancy-apalache"]
    assert len(given) == len(run.steps) + 1


def test_what_holds_stays_so_when_prose_changes_and_not_when_types_do() -> None:
    module = """
(* About this (* module *)
VARIABLE
  \\* @type: Int;
  x  \\* a number
Init == x = "a \\* string"  (* the beginning *)
"""
    text = without_prose(module)
    assert text == without_prose(module.replace("a number", "x > 0"))
    assert text != without_prose(module.replace("Int", "Str"))
    assert text != without_prose(module.replace("string", "word"))


def test_without_apalache_every_run_is_named_as_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("APALACHE_MC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(main, ["apalache"])
    assert done.exit_code == 3 and apalache.RELEASES in done.stderr
    assert done.stderr.count("NOT RUN") == len(models.runs(tool="apalache")) > 0


def test_listed_runs_are_sound() -> None:
    for run in models.runs(tool="apalache"):
        assert run.module_path.parent == tlc.SPECS and run.module_path.exists() and run.steps, (
            run.name
        )
