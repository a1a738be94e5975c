"""The logical clock of a disk: one counter that dates chunks, tree nodes and snapshots.

A chunk's MBA (middle block address) is the time of its birth, a node keeps the time of its own, and
a snapshot keeps the time at which it was taken. So "did this exist when the snapshot was taken" is
one comparison of integers.
"""


class Clock:
    """A counter that only grows; `durable` is the time of the newest durable checkpoint.

    What was born up to `durable` may be in that checkpoint. It is 0 for an engine without births.
    `frozen` is the time of the checkpoint that is being written, or of the same.
    """

    def __init__(self, now: int = 1) -> None:
        self.now = now
        self.durable = 0
        self.frozen = 0

    def tick(self) -> int:
        """Return the current time, and move on by 1: what happens next is later."""
        self.now += 1
        return self.now - 1

    def freeze(self) -> int:
        """Begin a checkpoint: what happens next is later than it. Returns its time."""
        self.frozen = self.tick()
        return self.frozen

    def commit(self) -> None:
        """Note that the checkpoint that was begun last is durable."""
        self.durable = self.frozen

    def advance(self, ticks: int) -> int:
        """Move on by `ticks`. Returns the first of these times."""
        self.now += ticks
        return self.now - ticks
