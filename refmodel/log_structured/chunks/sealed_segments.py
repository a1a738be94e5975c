"""The sealed segments and the usage of each."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from operator import sub
from typing import NamedTuple

from refmodel.log_structured.chunks.streams import Stream
from refmodel.log_structured.maps.sparse_column import SparseColumn


class SegmentUsage(NamedTuple):
    """The usage of a sealed segment."""

    live: int  # units of space: chunks, where they are not compressed
    filled: int  # when it was written, by the disk's clock
    stream: int = Stream.LONG  # not stored, so unknown after a restart


class SealedSegments(MutableMapping[int, SegmentUsage]):
    """Segment -> its usage. Something lives in each."""

    def __init__(self) -> None:
        self._live = SparseColumn("I")  # 0: not sealed
        self._filled = SparseColumn("Q")
        self._stream = SparseColumn("B")
        self._count = 0

    def __contains__(self, segment: object) -> bool:
        """Return whether a segment is sealed."""
        return isinstance(segment, int) and self._live[segment] != 0

    def __getitem__(self, segment: int) -> SegmentUsage:
        if not (live := self._live[segment]):
            raise KeyError(segment)
        return SegmentUsage(live, self._filled[segment], self._stream[segment])

    def __setitem__(self, segment: int, usage: SegmentUsage) -> None:
        self._count += not self._live[segment]
        self._live[segment], self._filled[segment], self._stream[segment] = usage

    def __delitem__(self, segment: int) -> None:
        if not self._live[segment]:
            raise KeyError(segment)
        self._live[segment] = 0
        self._count -= 1

    def __iter__(self) -> Iterator[int]:
        return self._live.places()

    def __len__(self) -> int:
        """Return how many segments are sealed."""
        return self._count

    def lose(self, dead: Mapping[int, int]) -> list[tuple[int, int]]:
        """Note that units of segments are dead; where all are, a segment is not sealed any more.

        `dead` has the number of units by segment. Returns `usage_of` these segments.
        """
        lives = [*map(sub, self._live.many(dead), dead.values())]
        assert min(lives, default=0) >= 0
        for segment, live in zip(dead, lives, strict=True):
            self._live[segment] = live
        self._count -= lives.count(0)
        return [*zip(lives, self._filled.many(dead), strict=True)]

    def usage_of(self, segments: Iterable[int]) -> list[tuple[int, int]]:
        """Return how many units live in each segment, 0 if it is not sealed, and when it was
        filled.
        """
        return [*zip(self._live.many(segments), self._filled.many(segments), strict=True)]

    def lives(self) -> Iterator[int]:
        """Yield how many units live in each segment."""
        return self._live.numbers()
