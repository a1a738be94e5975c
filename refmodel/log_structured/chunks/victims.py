"""The segments that may be cleaned, in buckets by how much lives in them, each by age.

Whatever a policy weighs, of segments in which the same number of units lives the oldest costs least
to clean. So it is enough to look at the oldest of each bucket, however many segments there are.
"""

import heapq
from collections.abc import Iterator
from random import Random

KEPT_STALE = 16  # entries of a bucket that may be out of date, besides as many as are not


class Victims:
    """Sealed segments that have a place in which nothing lives; a full segment has `units` units.

    A bucket is a heap. An entry of a segment that has left the bucket stays there until it comes to
    the top, or until there are too many of them.
    """

    def __init__(self, units: int) -> None:
        self._buckets: list[list[tuple[int, int]]] = [[] for _ in range(units)]  # filled, segment
        self._sizes = [0] * units  # without the entries that are out of date
        self._known: dict[int, tuple[int, int]] = {}  # segment -> what lives in it, when filled
        self._list: list[int] = []  # the same segments
        self._place: dict[int, int] = {}  # segment -> where it is in the list

    def __contains__(self, segment: int) -> bool:
        """Return whether a segment may be cleaned."""
        return segment in self._known

    def __len__(self) -> int:
        """Return how many segments may be cleaned."""
        return len(self._known)

    def put(self, segment: int, live: int, filled: int) -> None:
        """Note how many units live in a segment, and when it was filled."""
        self.discard(segment)
        if not 0 < live < len(self._buckets):
            return
        self._known[segment] = live, filled
        self._place[segment] = len(self._list)
        self._list.append(segment)
        self._sizes[live] += 1
        bucket = self._buckets[live]
        heapq.heappush(bucket, (filled, segment))
        if len(bucket) > 2 * self._sizes[live] + KEPT_STALE:
            bucket[:] = [entry for entry in set(bucket) if self._is_current(live, entry)]
            heapq.heapify(bucket)

    def discard(self, segment: int) -> None:
        """Note that a segment is not to be cleaned, or not any more."""
        if (known := self._known.pop(segment, None)) is not None:
            self._sizes[known[0]] -= 1
            last, place = self._list.pop(), self._place.pop(segment)
            if last != segment:
                self._list[place], self._place[last] = last, place

    def any(self, choose: Random) -> int | None:
        """Return one of the segments by chance, or None if there is none."""
        return choose.choice(self._list) if self._list else None

    def oldest(self) -> Iterator[tuple[int, int, int]]:
        """Yield of each bucket how many units live, and the oldest segment: when filled, number."""
        for live, size in enumerate(self._sizes):
            if not size:
                continue
            bucket = self._buckets[live]
            while not self._is_current(live, bucket[0]):
                heapq.heappop(bucket)
            yield live, *bucket[0]

    def _is_current(self, live: int, entry: tuple[int, int]) -> bool:
        return self._known.get(entry[1]) == (live, entry[0])
