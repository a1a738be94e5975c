"""Consolidation: a layer that no view ends in, and on which one other stands, takes what that one has, which then goes (the spec's way "down").

It is done a few blocks a step. Writes, snapshots and crashes come in between: what live writes to the upper layer meanwhile is merged again,
and after a crash it begins anew, since nobody sees what the lower layer has where the upper one has something.
"""

from refmodel.redolog.layer import Layer

STEP = 16  # LBAs that a step looks at


class Job:
    """Merging the layer `upper` into `lower`: what of it is done."""

    def __init__(self, lower: int, upper: int, blocks: int) -> None:
        self.lower = lower
        self.upper = upper
        self._blocks = blocks
        self._cursor = 0  # what lies before it is done,
        self._again: set[int] = set()  # except these

    @property
    def done(self) -> bool:
        return self._cursor >= self._blocks and not self._again

    def redone(self, lba: int) -> None:
        """A block of the upper layer has changed."""
        if lba < self._cursor:
            self._again.add(lba)

    def due(self, upper: Layer) -> list[int]:
        """The blocks of the next step, which counts as done."""
        if self._cursor < self._blocks:
            first = upper.extent(self._cursor)
            self._cursor = min(first + STEP, self._blocks)
            return list(range(first, self._cursor))
        due = sorted(self._again)[:STEP]
        self._again.difference_update(due)
        return due
