"""The examples: they are short, those in Python keep the contract, and the workflow file works."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli import main
from support.examples import EXAMPLES, passes

MOST_LINES = {".py": 200, ".rs": 150, ".go": 180, ".toml": 150, ".sh": 150, ".c": 220, ".h": 220}


def test_they_are_short() -> None:
    for path in EXAMPLES.rglob("*"):
        if path.suffix in MOST_LINES and "target" not in path.parts:
            assert len(path.read_text().splitlines()) < MOST_LINES[path.suffix], path


def test_python_over_the_pipe() -> None:
    assert passes(f"exec:{sys.executable} {EXAMPLES / 'dict_disk.py'}").crashes > 0


def test_a_python_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    result = passes("python:list_disk:ListDisk")
    assert "snapshot" in result.skipped


def test_the_workflow_runs_commands_that_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of the workflow file, with a target at hand and fewer traces."""
    monkeypatch.chdir(tmp_path)
    text = (EXAMPLES / "github-workflow.yml").read_text()
    steps = re.findall(r"run: (?:>-\s+)?(conformance [^\n]*(?:\n          --[^\n]*)*)", text)
    assert [step.split()[1] for step in steps] == ["doctor", "run"]
    target = f"exec:{sys.executable} {EXAMPLES / 'dict_disk.py'}"
    for step in steps:
        command = step.replace("${{ github.run_number }}", "7").replace('"$TARGET"', "TARGET")
        words = [target if word == "TARGET" else word for word in shlex.split(command)[1:]]
        words = ["5" if word == "1000" else word for word in words]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
    uploaded = text.partition("path: |")[2].split()
    assert uploaded and all((tmp_path / name).exists() for name in uploaded)
