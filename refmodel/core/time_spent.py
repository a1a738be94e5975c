"""Accounting of the thread's time by part, so that a request can say what it waited for.

One thread does everything. From the arrival of a request to its answer it does one thing after
another, for this request or for others, and the request waits for all of it. So the time that the
thread spent on each part, between these two moments, adds up to the latency.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# The later ones win: a flush that the cleaner needs is the cleaner's.
PARTS = {
    "turn": "other requests, commands and housekeeping, until its own group begins",
    "answer": "sending the answers of its group",
    "engine": "everything else that the engine does: maps, chunks, checksums, device reads",
    "room": "finding room for the operation, and merging changes into the maps",
    "destage": "writing segments from the bank",
    "log": "writing the record to the durable log",
    "flush": "the flush of the devices",
    "repair": "resync and rebuild",
    "checkpoint": "a step of a checkpoint, or a whole one if the log is full",
    "cleaner": "cleaning segments, with the checkpoints that it needs",
}
TURN, ANSWER, ENGINE, ROOM, DESTAGE, LOG, FLUSH, REPAIR, CHECKPOINT, CLEANER = range(len(PARTS))
Times = tuple[int, ...]  # nanoseconds, by part


class TimeSpent:
    """The time of one thread, by part. It is measured while it has a clock."""

    def __init__(self) -> None:
        self.clock: Callable[[], int] | None = None  # nanoseconds
        self.doing = TURN
        self._spent = [0] * len(PARTS)
        self._since = 0

    def measure(self, clock: Callable[[], int] | None) -> None:
        """Measure by a clock from now on, in nanoseconds; None: measure no more."""
        self.clock, self.doing = clock, TURN
        self._since = clock() if clock is not None else 0

    def switch(self, part: int) -> int:
        """Count time for another part from now on. Return the part until now."""
        before = self.doing
        if self.clock is not None:
            now = self.clock()
            self._spent[before] += now - self._since
            self._since = now
        self.doing = part
        return before

    def move(self, time: int, before: int, part: int) -> None:
        """Count nanoseconds for a part that have been, or will be, counted for another one."""
        self._spent[part] += time
        self._spent[before] -= time

    def until_now(self) -> Times:
        """Return the time that was spent on each part, until now."""
        self.switch(self.doing)
        return tuple(self._spent)


THREAD = TimeSpent()  # time of this process's one thread for disks


def spent_on(part: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let the time of a function count as a part, unless a part that wins is being done."""

    def decorate(work: Callable[P, R]) -> Callable[P, R]:
        @wraps(work)
        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            thread = THREAD
            if (clock := thread.clock) is None or (before := thread.doing) >= part:
                return work(*args, **kwargs)
            thread.doing, began = part, clock()
            try:
                return work(*args, **kwargs)
            finally:
                thread.move(clock() - began, before, part)
                thread.doing = before

        return measured

    return decorate
