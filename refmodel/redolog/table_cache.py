"""Grain tables in memory, a sector at a time: the most recently used sectors, or all."""

from array import array
from collections import OrderedDict

from refmodel.redolog.geometry import ALL


class TableCache:
    """Sectors of grain tables by byte offset on the device. They are never newer than the device.

    `limit` is how many sectors are kept, or ALL.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sectors: OrderedDict[int, array[int]] = OrderedDict()  # the last used is the last
        self.hits = 0
        self.misses = 0

    def get(self, offset: int) -> "array[int] | None":
        """Return the entries of a sector, if they are in memory, and count a hit or a miss."""
        if (found := self._sectors.get(offset)) is None:
            self.misses += 1
            return None
        self.hits += 1
        self._sectors.move_to_end(offset)
        return found

    def put(self, offset: int, entries: "array[int]") -> None:
        """Keep the entries of a sector; the least recently used ones make room."""
        self._sectors[offset] = entries
        self._sectors.move_to_end(offset)
        while self._limit != ALL and len(self._sectors) > self._limit:
            self._sectors.popitem(last=False)

    def held(self, first: int, end: int) -> "dict[int, array[int]]":
        """Return the sectors in a range of the device, by offset, and count nothing."""
        return {offset: held for offset, held in self._sectors.items() if first <= offset < end}

    def forget(self, first: int, end: int) -> None:
        """Forget the sectors in a range of the device: another layer is about to use it."""
        assert first < end, "a layer has a region"
        for offset in self.held(first, end):
            del self._sectors[offset]
