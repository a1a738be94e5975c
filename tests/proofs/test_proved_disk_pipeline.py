"""The proved disk while a flush is under way: the next writes go on, no power cut loses any."""

from pathlib import Path

import pytest
from pipeline_states import judged
from scheduler_bugs import built

EAGER = {
    "what": "writes do not wait until there is much to do during a flush",
    "old": "let much = 1 lsl 22",
    "new": "let much = 1",
}
SLOW = {  # also where the file is in memory
    "what": "a flush takes its time",
    "old": "(try Unix.fsync device.file",
    "new": "(try Unix.sleepf 0.003; Unix.fsync device.file",
}
WRONG = {"what": "it writes anywhere", "old": "when not (may address)", "new": "when false"}


@pytest.fixture
def eager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a server that always goes on during a flush."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    built(first, EAGER, "nbd.ml")
    monkeypatch.setattr("scheduler_bugs.SOURCES", first)
    monkeypatch.setattr("kill_server.PROGRAM", built(second, SLOW, "device.ml"))
    return second


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("options", [[], ["--trees"]])
def test_crash_states_with_two_groups_in_flight(options: list[str]) -> None:
    good, overlaps = judged(200, 1, *options)
    assert good >= overlaps > 10


def test_a_record_that_does_not_wait_for_the_flush_is_found(
    eager: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crash states are not vacuous: a group whose record is in flight too is found."""
    monkeypatch.setattr("scheduler_bugs.SOURCES", eager)
    folder = tmp_path / "wrong"
    folder.mkdir()
    monkeypatch.setattr("kill_server.PROGRAM", built(folder, WRONG, "device.ml"))
    with pytest.raises(AssertionError, match="neither before nor after"):
        for seed in range(8):
            judged(150, seed)
