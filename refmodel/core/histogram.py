"""Histograms that cost an increment: bucket i counts the values above 2**(i-1), up to 2**i."""

from collections import defaultdict
from collections.abc import Iterator
from time import perf_counter_ns


class Histogram:
    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * 64
        self.total = 0  # of all values

    def add(self, value: int, times: int = 1) -> None:
        """Count a value of at least 1."""
        self.buckets[(value - 1).bit_length()] += times
        self.total += value * times

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def cumulative(self) -> Iterator[tuple[int, int]]:
        """Upper bound of each bucket up to the last that counted anything, and how many values lie at or below it."""
        below = 0
        last = max((at for at, count in enumerate(self.buckets) if count), default=-1)
        for at in range(last + 1):
            below += self.buckets[at]
            yield 1 << at, below


class Operations:
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
