"""The class that reads traces for TLC is compiled once, for all users of a checkout."""

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelcheck.checkers import tlc
from modelcheck.runs import traces

NOBODY = 65534


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A build folder in which nothing is compiled; others may read it, unlike `tmp_path`."""
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tlc.jar()))
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        monkeypatch.setattr(tlc, "BUILD", Path(name))
        yield Path(name)


def test_other_users_may_read_it(build: Path) -> None:
    assert traces.reader().stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root can become another user")
def test_a_class_that_cannot_be_read_is_named(build: Path) -> None:
    folder = traces.reader()
    folder.chmod(0o700)
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    asking = context.Process(target=_as_nobody, args=(queue,))
    asking.start()
    assert queue.get(timeout=60) == f"{folder}/TraceFile.class cannot be read: remove its folder"
    asking.join()


def _as_nobody(queue: "multiprocessing.Queue[str]") -> None:
    os.setuid(NOBODY)
    try:
        queue.put(str(traces.reader()))
    except (OSError, tlc.Unavailable) as error:
        queue.put(str(error))
