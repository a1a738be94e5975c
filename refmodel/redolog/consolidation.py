"""Consolidation: a layer that no view ends in, and on which one other stands, takes what that one has, which then goes (the spec's way "down").

It is done a few blocks a step. Writes, snapshots and crashes come in between: what live writes to the upper layer meanwhile is merged again, and after a
crash it begins anew, since nobody sees what the lower layer has where the upper one has something.
"""

from collections.abc import Callable

from refmodel.redolog.layer import ABSENT, Layer

STEP = 16  # LBAs that a step looks at


class Job:
    """Merging the layer `upper` into `lower`."""

    def __init__(self, lower: int, upper: int, blocks: int) -> None:
        self.lower = lower
        self.upper = upper
        self._blocks = blocks
        self._cursor = 0  # what lies before it is done,
        self._again: set[int] = set()  # except these

    @property
    def done(self) -> bool:
        return self._cursor >= self._blocks and not self._again

    def redone(self, lba: int, count: int) -> None:
        """Blocks of the upper layer have changed."""
        self._again.update(range(lba, min(lba + count, self._cursor)))

    def merge(self, lower: Layer, upper: Layer, read: Callable[[int, list[int]], dict[int, bytes | None]]) -> int:
        """A step: move some blocks. `read` gives what a layer has of blocks. Returns how many were moved."""
        if self._cursor < self._blocks:
            first = upper.extent(self._cursor)
            end = min(first + STEP, self._blocks)
            due, self._cursor = list(range(first, end)), end
        else:
            due = sorted(self._again)[:STEP]
            self._again.difference_update(due)
        held = read(self.upper, [lba for lba in due if upper.place(lba, "consolidate") is not ABSENT])
        if held:
            lower.put(held, "consolidate")
        return len(held)
