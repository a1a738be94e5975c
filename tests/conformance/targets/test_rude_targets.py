"""Targets in process that call `sys.exit`, print, or are no targets: a verdict all the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def conformance(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder. What is wrong with a target is no traceback of the kit."""
    where = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(
        [sys.executable, "-m", "conformance", *words],
        cwd=folder,
        env=where,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run(folder: Path, target: str, *more: str) -> subprocess.CompletedProcess[str]:
    words = ("run", "--target", target, "--no-keep", "--seed", "1", "--oracle", "model", *more)
    return conformance(folder, *words)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("name", ["Exits", "ExitsInFlight"])
def test_a_target_that_exits_fails(tmp_path: Path, name: str, jobs: str) -> None:
    target = f"python:support.rude_targets:{name}"
    traces = "4" if jobs == "1" else "120"
    done = run(tmp_path, target, "--jobs", jobs, "--traces", traces, "--json", "r.json")
    assert done.returncode == 1 and "it raised SystemExit: 0" in done.stdout, done
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "fail"


@pytest.mark.parametrize(
    "target, status",
    [
        ("python:support.rude_targets:ExitsWhenOpened", 3),
        ("python:sys:exit", 3),
        ("python:support.rude_targets:ExitsWhenClosed", 0),
    ],
)
def test_a_target_that_exits_when_it_is_opened_or_closed(
    tmp_path: Path, target: str, status: int
) -> None:
    done = run(tmp_path, target, "--jobs", "1", "--traces", "4")
    assert done.returncode == status, done
    assert (status == 0) != (f"cannot open {target}: SystemExit" in done.stdout)
    done = conformance(tmp_path, "doctor", "--target", target)
    assert done.returncode == status, done
    assert (status == 0) != (f"unusable: cannot open {target}: SystemExit" in done.stdout)


def test_a_module_that_exits_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    done = run(tmp_path, "python:exits:Target")
    assert done.returncode == 2 and "it raised SystemExit: 0" in done.stderr, done


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_a_target_prints_is_not_on_stdout(tmp_path: Path, jobs: str) -> None:
    target = "python:support.rude_targets:Prints"
    traces = "4" if jobs == "1" else "120"
    done = run(tmp_path, target, "--jobs", jobs, "--traces", traces)
    assert done.returncode == 0 and done.stdout.startswith("pass"), done.stdout[:300]
    for moment in ("module", "opening", "request", "closing"):
        assert f"of the {moment}" not in done.stdout and f"of the {moment}" in done.stderr


@pytest.mark.parametrize(
    "target, says",
    [
        ("python:support.rude_targets:WithoutHello", "makes no target: it has no hello"),
        ("python:support.rude_targets:WithoutArguments", "takes no arguments"),
        ("python:os:getcwd", "takes no arguments (1 given)"),
    ],
)
def test_what_is_no_target_is_one_line(tmp_path: Path, target: str, says: str) -> None:
    done = run(tmp_path, target, "--jobs", "1", "--traces", "2")
    assert done.returncode == 3 and says in done.stdout, done
    assert "it printed" not in done.stdout and len(done.stdout.splitlines()) <= 3, done.stdout
