"""The disk's clock: one counter that births are told by.

A chunk's MBA is the time of its birth; a node keeps the time of its own; a snapshot keeps the time it was taken.
So "was this there when the snapshot was taken" is one comparison of integers, for chunks and nodes alike.
"""


class Clock:
    def __init__(self, now: int = 1) -> None:
        self.now = now

    def tick(self) -> int:
        """The time that was; what happens from here on is later."""
        self.now += 1
        return self.now - 1

    def advance(self, ticks: int) -> int:
        """So many ticks at once; returns the first."""
        self.now += ticks
        return self.now - ticks
