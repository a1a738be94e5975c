"""The class that reads traces for TLC is compiled once, for all users of a checkout."""

import os
from pathlib import Path

import pytest

from modelcheck.checkers import tlc
from modelcheck.runs import traces


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A build folder in which nothing is compiled."""
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tlc.jar()))
    monkeypatch.setattr(tlc, "BUILD", tmp_path)
    return tmp_path


def test_other_users_may_read_it(build: Path) -> None:
    assert traces.reader().stat().st_mode & 0o777 == 0o755


def test_a_class_that_cannot_be_read_is_named(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = traces.reader()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(tlc.Unavailable) as said:
        traces.reader()
    assert str(said.value) == f"{folder}/TraceFile.class cannot be read: remove its folder"
