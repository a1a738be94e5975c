"""Histograms with buckets of powers of 2: to count a value costs one increment.

Bucket i counts the values above 2**(i-1), up to 2**i.
"""

from collections.abc import Iterator


class Histogram:
    """Counts of integers from 1 to 2**63 by bucket, and their total."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * 64
        self.total = 0  # the sum of all values

    def add(self, value: int, times: int = 1) -> None:
        """Count a value of at least 1."""
        self.buckets[(value - 1).bit_length()] += times
        self.total += value * times

    @property
    def count(self) -> int:
        """Number of values that were counted."""
        return sum(self.buckets)

    def cumulative(self) -> Iterator[tuple[int, int]]:
        """Yield (upper bound, number of values at or below it) for each bucket that counted a
        value, in order."""
        below = 0
        for at, count in enumerate(self.buckets):
            if count:
                below += count
                yield 1 << at, below
