"""The logical clock of a disk: one counter that dates chunks, tree nodes and snapshots.

A chunk's MBA (middle block address) is the time of its birth, a node keeps the time of its own, and
a snapshot keeps the time at which it was taken. So "did this exist when the snapshot was taken" is
one comparison of integers.
"""


class Clock:
    """A counter that only grows; `durable` is the time of the newest durable checkpoint.

    What was born up to `durable` may be in that checkpoint. It is 0 for an engine without births.
    """

    def __init__(self, now: int = 1) -> None:
        self.now = now
        self.durable = 0

    def tick(self) -> int:
        """Return the current time, and move on by 1: what happens next is later."""
        self.now += 1
        return self.now - 1

    def advance(self, ticks: int) -> int:
        """Move on by `ticks`. Returns the first of these times."""
        self.now += ticks
        return self.now - ticks
