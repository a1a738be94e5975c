"""A time limit for programs that are sent again: about the time of one that failed.

A program may take seconds though a longer one does not: a target that is wrong may go on for ever,
and the search for an order of its answers may have many. A shrinker has other programs to try.
"""

import time
from collections.abc import Callable

from conformance.contract.trace import Trace
from conformance.judging.explain import Verdict
from conformance.programs.simpler import Request
from conformance.targets.base import Unusable
from conformance.targets.time_limit import TooLate, limit

Attempt = Callable[[list[Request]], tuple[Trace, Verdict] | None]
Clock = Callable[[], float]

SLOWER = 4  # a program may take so many times as long as the last one that failed
LEAST_SECONDS = 0.25  # every program may take that long
NO_LIMIT = 1e6  # seconds
CROWDED = 5  # a search may take so many times its CPU time by the wall clock


class Patience:
    """Sends programs with `attempt`; no program that is slow fails, but where that is the failure
    (`hangs`).
    """

    def __init__(self, attempt: Attempt, clock: Clock, hangs: bool) -> None:
        self._attempt, self._clock, self._hangs = attempt, clock, hangs
        self._seconds = NO_LIMIT

    def send(self, program: list[Request]) -> tuple[Trace, Verdict] | None:
        """Return what `attempt` says of the program; None if it takes too long."""
        started = self._clock()
        try:
            with limit(self._seconds):
                outcome = self._attempt(program)
        except TooLate:
            return None
        except Unusable:
            if self._clock() - started < self._seconds:
                raise
            return None  # it was too late to open the target again
        if outcome is not None and not self._hangs:
            self._seconds = max(LEAST_SECONDS, SLOWER * (self._clock() - started))
        return outcome


def processor_clock() -> Clock:
    """Return a clock of this process's CPU time. While it waits, the clock runs at a part of the
    rate of wall-clock time."""
    wall, processor = time.monotonic(), time.process_time()
    return lambda: max(time.process_time() - processor, (time.monotonic() - wall) / CROWDED)
