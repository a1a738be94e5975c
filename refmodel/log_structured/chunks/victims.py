"""The segments that may be cleaned, in buckets by how much lives in them, each by age.

Whatever a policy weighs, of segments in which the same number of units lives the oldest costs least
to clean. So it is enough to look at the oldest of each bucket, however many segments there are.
"""

import heapq
from collections.abc import Callable, Iterator
from random import Random

from refmodel.log_structured.maps.sparse_column import SparseColumn

SEGMENT_BITS = 40  # so that an entry of a bucket is one number
SEGMENT = (1 << SEGMENT_BITS) - 1
Cost = Callable[[int, int], float]  # live units, when filled -> what cleaning a segment costs
TIDIED_FROM = 12  # entries, and half as many again as are not out of date: then a bucket is tidied
TIDIED = 4  # entries that are looked at whenever one comes to a bucket that is tidied


class Victims:
    """Sealed segments that have a place in which nothing lives; a full segment has `units` units.

    A bucket has two heaps. An entry of a segment that has left the bucket stays there until it
    comes to the top, or until there are too many of them. Then all entries are the older heap, and
    those that are not out of date move to the newer one, a few with each that comes: a bucket of a
    large disk has thousands.
    """

    def __init__(self, units: int) -> None:
        self._units = units
        self._buckets: list[tuple[list[int], list[int]]]  # newer, older: usage and segment
        self._buckets = [([], []) for _ in range(units)]
        self._sizes = [0] * units  # without the entries that are out of date
        self._usage = SparseColumn("Q")  # by segment: filled * units + live; 0: not to be cleaned

    def __contains__(self, segment: int) -> bool:
        """Return whether a segment may be cleaned."""
        return self._usage[segment] != 0

    def __len__(self) -> int:
        """Return how many segments may be cleaned."""
        return sum(self._sizes)

    def put(self, segment: int, live: int, filled: int, *, was_full: bool = True) -> None:
        """Note how many units live in a segment, and when it was filled.

        Unless it was full until now, it must be here already: else it is not to be cleaned.
        """
        units, sizes = self._units, self._sizes
        if before := self._usage[segment]:
            sizes[before % units] -= 1
        elif not was_full:
            return
        if not 0 < live < units:
            self._usage[segment] = 0
            return
        self._usage[segment] = usage = filled * units + live
        sizes[live] += 1
        newer, older = self._buckets[live]
        heapq.heappush(newer, usage << SEGMENT_BITS | segment)
        if older:
            for entry in older[-TIDIED:]:
                if self._is_current(entry):
                    heapq.heappush(newer, entry)
            del older[-TIDIED:]  # a heap without its end is a heap
        elif 2 * len(newer) > 3 * sizes[live] + 2 * TIDIED_FROM:
            self._buckets[live] = older, newer

    def discard(self, segment: int) -> None:
        """Note that a segment is not to be cleaned, or not any more."""
        if usage := self._usage[segment]:
            self._sizes[usage % self._units] -= 1
            self._usage[segment] = 0

    def usage(self, segment: int) -> tuple[int, int] | None:
        """Return how many units live in a segment, and when it was filled; None if it is not to be
        cleaned.
        """
        filled, live = divmod(self._usage[segment], self._units)
        return (live, filled) if self._usage[segment] else None

    def contradictions(self) -> Iterator[str]:
        """Yield the segments that are not in their bucket, and sizes that count wrong."""
        sizes = [0] * self._units
        held = [{*newer, *older} for newer, older in self._buckets]
        for segment in self._usage.places():
            usage = self._usage[segment]
            live = usage % self._units
            sizes[live] += 1
            if usage << SEGMENT_BITS | segment not in held[live]:
                yield f"segment {segment} is to be cleaned, and is not among the candidates"
        if sizes != self._sizes:
            yield f"{sizes} segments may be cleaned, by live units; {self._sizes} are counted"

    def any(self, choose: Random) -> int | None:
        """Return one of the segments by chance, or None if there is none."""
        if not any(self._sizes):
            return None
        live = choose.choices(range(len(self._sizes)), self._sizes)[0]
        newer, older = self._buckets[live]
        while True:
            at = choose.randrange(len(newer) + len(older))
            entry = newer[at] if at < len(newer) else older[at - len(newer)]
            if self._is_current(entry):
                return entry & SEGMENT

    @property
    def bucket_count(self) -> int:
        """Number of buckets in which segments are."""
        return self._units - self._sizes.count(0)

    def cheapest(self, cost: Cost) -> int | None:
        """Return the segment that costs least, of these the oldest; None if there is none.

        Of segments in which as much lives, none may cost less than an older one. So an entry that
        is out of date, and older than the others of its bucket, does no harm before it is the
        cheapest of all.
        """
        units = self._units
        tops = [
            (cost(live, (heap[0] >> SEGMENT_BITS) // units), heap[0], live, age)
            for live, size in enumerate(self._sizes)
            if size
            for age, heap in enumerate(self._buckets[live])
            if heap
        ]
        heapq.heapify(tops)
        while tops:
            _, entry, live, age = tops[0]
            if self._is_current(entry):
                return entry & SEGMENT
            heap = self._buckets[live][age]
            heapq.heappop(heap)
            if heap:
                filled = (heap[0] >> SEGMENT_BITS) // units
                heapq.heapreplace(tops, (cost(live, filled), heap[0], live, age))
            else:
                heapq.heappop(tops)
        return None

    def _is_current(self, entry: int) -> bool:
        return self._usage[entry & SEGMENT] == entry >> SEGMENT_BITS
