"""The segments that may be cleaned, in buckets by how much lives in them, each by age.

Whatever a policy weighs, of segments in which the same number of units lives the oldest costs least
to clean. So it is enough to look at the oldest of each bucket, however many segments there are.
"""

import heapq
from collections.abc import Iterator
from random import Random

from refmodel.log_structured.maps.sparse_column import SparseColumn

MANY = 1 << 40  # segments are fewer, so that an entry of a bucket is one number
KEPT_STALE = 16  # entries of a bucket that may be out of date, besides as many as are not


class Victims:
    """Sealed segments that have a place in which nothing lives; a full segment has `units` units.

    A bucket is a heap. An entry of a segment that has left the bucket stays there until it comes to
    the top, or until there are too many of them.
    """

    def __init__(self, units: int) -> None:
        self._buckets: list[list[int]] = [[] for _ in range(units)]  # filled * MANY + segment
        self._sizes = [0] * units  # without the entries that are out of date
        self._live = SparseColumn("I")  # by segment; 0: it may not be cleaned
        self._filled = SparseColumn("Q")

    def __contains__(self, segment: int) -> bool:
        """Return whether a segment may be cleaned."""
        return self._live[segment] != 0

    def __len__(self) -> int:
        """Return how many segments may be cleaned."""
        return sum(self._sizes)

    def put(self, segment: int, live: int, filled: int) -> None:
        """Note how many units live in a segment, and when it was filled."""
        if before := self._live[segment]:
            self._sizes[before] -= 1
        if not 0 < live < len(self._buckets):
            self._live[segment] = 0
            return
        self._live[segment], self._filled[segment] = live, filled
        self._sizes[live] += 1
        bucket = self._buckets[live]
        heapq.heappush(bucket, filled * MANY + segment)
        if len(bucket) > 2 * self._sizes[live] + KEPT_STALE:
            bucket[:] = [entry for entry in set(bucket) if self._is_current(live, entry)]
            heapq.heapify(bucket)

    def discard(self, segment: int) -> None:
        """Note that a segment is not to be cleaned, or not any more."""
        if live := self._live[segment]:
            self._sizes[live] -= 1
            self._live[segment] = 0

    def any(self, choose: Random) -> int | None:
        """Return one of the segments by chance, or None if there is none."""
        if not any(self._sizes):
            return None
        live = choose.choices(range(len(self._sizes)), self._sizes)[0]
        while not self._is_current(live, entry := choose.choice(self._buckets[live])):
            pass
        return entry % MANY

    def oldest(self) -> Iterator[tuple[int, int, int]]:
        """Yield of each bucket how many units live, and the oldest segment: when filled, number."""
        for live, size in enumerate(self._sizes):
            if not size:
                continue
            bucket = self._buckets[live]
            while not self._is_current(live, bucket[0]):
                heapq.heappop(bucket)
            yield live, *divmod(bucket[0], MANY)

    def _is_current(self, live: int, entry: int) -> bool:
        filled, segment = divmod(entry, MANY)
        return self._live[segment] == live and self._filled[segment] == filled
