"""Latencies with their parts: for any percentile, what its requests waited for.

Latencies are counted in buckets, 16 for each power of 2, so a bucket is at most 6 % wide. A bucket
keeps the sums of what its requests spent on each part. The breakdown of a percentile is the mean of
the requests in its bucket: the parts add up to their latency exactly.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import add, sub
from typing import NamedTuple

from refmodel.core.time_spent import PARTS

COLUMNS = (
    "index",
    "count",
    "in flight",
    "group",
    *PARTS,
)  # columns of a row: sums over its requests
FINE = 4  # binary digits of a latency that its bucket keeps, behind the first one


class Share(NamedTuple):
    """Means over the requests whose latency is about a percentile."""

    latency: float  # nanoseconds, the sum of the parts
    parts: dict[str, float]  # nanoseconds
    in_flight: float  # requests, when the group of a request began
    group: float  # requests that were performed together


class Breakdown:
    """Counted requests."""

    def __init__(self, rows: Iterable[Sequence[int]] = ()) -> None:
        self._sums: dict[int, list[int]] = {row[0]: list(row[1:]) for row in rows}

    def add(
        self, before: Sequence[int], after: Sequence[int], times: int, in_flight: int, group: int
    ) -> None:
        """Count requests that arrived and were answered together.

        `before` and `after` are what the thread had spent on each part by then.
        """
        parts = [*map(sub, after, before)]
        index = _index(sum(parts))
        new = [1, in_flight, group, *parts]
        if times > 1:
            new = [times * one for one in new]
        sums = self._sums.get(index)
        self._sums[index] = new if sums is None else [*map(add, sums, new)]

    def since(self, earlier: "Breakdown") -> "Breakdown":
        """Return what was counted after an earlier reading of the same counts."""
        return Breakdown(
            (index, *(after - before for before, after in zip(then, sums, strict=True)))
            for index, sums in self._sums.items()
            if (then := earlier._sums.get(index, [0] * len(sums)))[0] < sums[0]
        )

    @property
    def count(self) -> int:
        """Number of requests that were counted."""
        return sum(sums[0] for sums in self._sums.values())

    @property
    def spent(self) -> dict[str, int]:
        """Nanoseconds by part, of all requests together; their sum is that of the latencies."""
        sums = zip(*(sums[3:] for sums in self._sums.values()), strict=True)
        return dict(zip(PARTS, map(sum, sums), strict=False))

    @property
    def total(self) -> int:
        """Nanoseconds of all latencies together."""
        return sum(self.spent.values())

    @property
    def rows(self) -> list[list[int]]:
        """The buckets, as COLUMNS names their sums; the constructor takes them."""
        return [[index, *sums] for index, sums in sorted(self._sums.items())]

    def cumulative(self) -> Iterator[tuple[int, int]]:
        """Yield (upper bound in nanoseconds, number of requests at or below it), in order."""
        below = 0
        for index, sums in sorted(self._sums.items()):
            below += sums[0]
            yield _bound(index), below

    def at(self, percent: float) -> Share | None:
        """Return the breakdown of a percentile (0 to 100); None if nothing was counted."""
        wanted, below = self.count * percent / 100, 0
        for _, sums in sorted(self._sums.items()):
            below += sums[0]
            if below >= wanted:
                count, in_flight, group, *parts = sums
                means = {name: spent / count for name, spent in zip(PARTS, parts, strict=True)}
                return Share(sum(parts) / count, means, in_flight / count, group / count)
        return None


def _index(value: int) -> int:
    """Return the bucket of a value: its first binary digits, and how many follow."""
    shift = max(0, value.bit_length() - FINE - 1)
    return (shift << FINE) + (value >> shift)


def _bound(index: int) -> int:
    """Return the greatest value in a bucket."""
    shift = max(0, (index >> FINE) - 1)
    return ((index - (shift << FINE) + 1) << shift) - 1
