"""Histograms that cost an increment: bucket i counts the values above 2**(i-1), up to 2**i."""

from collections.abc import Iterator


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
