"""Real engines with up to eight requests in flight, and power cuts meanwhile."""

import shutil
from typing import Any

import pytest

pytest.importorskip("apsw", reason="NOT RUN: apsw is not installed: make engines")
pytest.importorskip("lmdb", reason="NOT RUN: lmdb is not installed: make engines")

from conformance.media.recorded import Recorded
from conformance.targets.engines import sqlite
from conformance.targets.engines.lmdb import LmdbTarget
from support.examples import EXAMPLES
from support.in_flight import several

MISSING = [tool for tool in ("qemu-storage-daemon", "setpriv") if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"NOT RUN: {', '.join(MISSING)} missing")


@pytest.mark.parametrize(
    "target, fixed",
    [
        ("sqlite", {"connections": 8}),
        ("lmdb", {}),
        ("qcow2:discard=ignore", {"power": "fails", "lazy_refcounts": "off"}),
        ("qcow2", {"power": "stays"}),
        ("chain:merge=commit", {"power": "fails"}),
        ("chain:merge=commit", {"power": "stays"}),
    ],
)
def test_every_answer_has_an_order(target: str, fixed: dict[str, Any]) -> None:
    seen = several(target, 10, ops=20, **fixed)
    assert not seen.failures, seen.words
    assert seen.overlapping >= 8
    assert seen.cut or fixed.get("power") == "stays", "some requests were cut in flight"


def test_a_server_that_is_killed_under_load() -> None:
    seen = several(str(EXAMPLES / "qemu_nbd.toml"), 3, ops=20)
    assert not seen.failures, seen.words
    assert seen.overlapping


def test_transactions_that_are_undone_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sqlite.MODES, "wal-normal", "ack")
    seen = several("sqlite:mode=wal-normal,connections=8", 60)
    assert seen.failures


def test_a_read_view_that_is_taken_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the commit and the view, another transaction may commit."""
    honest = LmdbTarget._snapshot

    def late(self: LmdbTarget, message: dict[str, Any]) -> None:
        honest(self, message)
        with self._holding:
            number = max(self._held)
            self._held.pop(number).abort()
        with self._change():
            pass  # others may come first
        with self._holding:
            self._held[number] = self._environment.begin()

    monkeypatch.setattr(LmdbTarget, "_snapshot", late)
    assert several("lmdb", 300).failures  # it is a race of threads


def test_answered_writes_that_the_cut_takes_back_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The power fails earlier than the kit believes."""
    monkeypatch.setattr(Recorded, "end", lambda recorded: recorded._at)
    monkeypatch.setattr(Recorded, "written", lambda recorded: 0)
    assert several("lmdb:metasync=on", 40).failures
