"""Several requests in flight on a driver: what a power cut leaves in doubt, and what the judge
finds."""

import random
from typing import Any

import pytest

from conformance.campaign.overlapping_driver import drive
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.programs import overlap
from conformance.targets.engines.kernel.changes import Changes, Mark
from conformance.targets.engines.kernel.dm_thin import DmThin
from conformance.targets.overlapping import calls


class Log:
    """A log of writes of 10 bytes each, and what is known: how many there are."""

    writes = 0

    def mark(self) -> Mark:
        return Mark(10 * self.writes, self.writes)

    def known(self) -> int:
        return self.writes


@pytest.fixture
def changes() -> Changes:
    """Of three writes each, with one write of somebody else between them."""
    log = Log()
    made = Changes(log.mark, log.known)
    for op in ("snapshot", "delete"):
        with made.made(op):
            log.writes += 3
        log.writes += 1
    return made


@pytest.mark.parametrize(
    "end, last, op, begun",
    [
        (80, None, None, False),
        (70, None, None, False),
        (60, None, "delete", True),
        (40, None, "delete", False),
        (30, None, "delete", False),
        (20, None, "snapshot", True),
        (0, 8, None, False),
        (0, 7, "delete", True),
        (0, 5, "delete", True),
        (0, 4, "delete", False),
        (0, 3, "snapshot", True),
    ],
)
def test_the_change_that_a_cut_falls_into(
    changes: Changes, end: int, last: int | None, op: str | None, begun: bool
) -> None:
    cut = changes.first_cut(end, last)
    assert (cut and cut.op) == op
    assert cut is None or cut.begun(end, last) is begun


def kinds(seeds: range, options: dict[str, Any]) -> list[str]:
    """The verdicts on races of several requests, up to the first that is no pass."""
    found: list[str] = []
    disk = DmThin(options)
    try:
        for seed in seeds:
            program = overlap.written(
                random.Random(seed), disk.hello, 60, disk.in_flight, cuts=True, schedules=True
            )
            trace = drive(calls(disk), program, seed, options)
            (verdict,) = judge([trace], {"model": named("model")})
            found.append(verdict.kind or verdict.verdict)
            if verdict.verdict != "pass":
                break
    finally:
        disk.close()
    return found


@pytest.mark.usefixtures("needs_guest")
def test_dm_thin_with_several_requests_in_flight_and_with_a_disk_that_ignores_flushes() -> None:
    assert kinds(range(6), {"spread": 2}) == ["pass"] * 6
    assert kinds(range(40), {"spread": 2, "fault": "drop-flushes"})[-1] != "pass"
