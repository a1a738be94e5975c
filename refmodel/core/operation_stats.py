"""Statistics of the operations that users had a disk do: how long each took, and how long it was."""

from collections import defaultdict
from time import perf_counter_ns

from refmodel.core.histogram import Histogram


class OperationStats:
    """What users had the disk do, by the name of the operation: how long each took, in nanoseconds, and how many blocks it was about."""

    def __init__(self) -> None:
        self.nanoseconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.blocks: defaultdict[str, Histogram] = defaultdict(Histogram)

    def add(self, name: str, started: int, *blocks: int) -> None:
        """Operations that began together at `started`, by perf_counter_ns, are done; so many blocks each, if they are about blocks."""
        self.nanoseconds[name].add(perf_counter_ns() - started, len(blocks) or 1)
        for length in set(blocks):
            self.blocks[name].add(length, blocks.count(length))

    @property
    def changes(self) -> int:
        """How many operations were done that may have changed the disk."""
        return sum(
            histogram.count for name, histogram in self.nanoseconds.items() if name != "read"
        )

    def blocks_of(self, name: str) -> int:
        return self.blocks[name].total if name in self.blocks else 0
