"""Segments of the capacity leg: written whole, and what lives in each.

free -> open (being filled in memory) -> sealed (written) -> dead (nothing lives in it) -> free. A dead segment becomes free only when a
checkpoint is durable that does not refer to it.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from refmodel.core.errors import DataLost, NoSpace
from refmodel.log_structured.chunks.physical_address import Places
from refmodel.log_structured.chunks.streams import Stream
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.node import Kind
from refmodel.log_structured.maps.page_store import Pages


@dataclass(slots=True)
class Usage:
    live: int  # units of space: chunks, where they are not compressed
    filled: int  # when, by the disk's clock
    stream: int = Stream.LONG  # not stored: after a restart nobody knows


class Segments:
    def __init__(self, pages: Pages, geometry: Geometry) -> None:
        self.blocks = geometry.segment_blocks
        self.units = geometry.segment_units
        self.places = Places(geometry)
        self.count = geometry.segments
        self.owners = Tree(pages, Kind.SEGMENT_OWNERS, fanout=geometry.fanout)
        self.table = Tree(pages, Kind.SEGMENT_USAGE)
        self.sealed: dict[int, Usage] = {}
        self.dead: list[int] = []
        self.live = 0  # units in all segments
        self.fillings = 0  # since the disk was opened
        self.clock = pages.clock
        self._changed: set[int] = set()
        self._free: list[int] = []  # a heap of freed ones; from _fresh on none was ever used
        self._fresh = 0
        self._reserved: set[int] = set()

    @property
    def free_count(self) -> int:
        return len(self._free) + self.count - self._fresh

    @property
    def reserved_count(self) -> int:
        """Segments that are being placed."""
        return len(self._reserved)

    def open(self) -> int:
        """A free segment, to be filled and sealed at once. Raises NoSpace."""
        if self._free:
            return heapq.heappop(self._free)
        if self._fresh == self.count:
            raise NoSpace("no segment is free")
        self._fresh += 1
        return self._fresh - 1

    def reserve(self) -> int:
        """A free segment that is written before the log says so. Raises NoSpace."""
        segment = self.open()
        self._reserved.add(segment)
        return segment

    def give_back(self, segment: int) -> None:
        """The log will not say so."""
        self._reserved.discard(segment)
        heapq.heappush(self._free, segment)

    def take(self, segment: int) -> None:
        """The log says that a segment is in use, which was reserved, or was before the log is replayed.

        Raises DataLost if the maps say that it was already: devices lost what they said was durable."""
        if segment in self._reserved:
            self._reserved.discard(segment)
            return
        while self._fresh <= segment:
            heapq.heappush(self._free, self._fresh)
            self._fresh += 1
        if segment not in self._free:
            raise DataLost(f"the log and the maps disagree about segment {segment}")
        self._free.remove(segment)
        heapq.heapify(self._free)

    def seal(
        self,
        segment: int,
        pbas: Sequence[int],
        mbas: Sequence[int],
        units: int,
        stream: int = Stream.LONG,
    ) -> None:
        """The segment is written: at pbas[i] is the chunk mbas[i]; together they take so many units."""
        self.owners.put_many(pbas, mbas)
        self.fillings += 1
        self.sealed[segment] = Usage(units, self.clock.tick(), stream)
        self.live += units
        self._changed.add(segment)

    def drop(self, pbas: list[int]) -> None:
        """Nothing lives at the PBAs any more."""
        pbas.sort()
        self.owners.remove_many(pbas)
        for segment, gone in self.places.by_segment(pbas).items():
            self.live -= gone
            usage = self.sealed[segment]
            usage.live -= gone
            self._changed.add(segment)
            if usage.live == 0:
                del self.sealed[segment]
                self.dead.append(segment)

    def living(self, segment: int) -> list[tuple[int, int]]:
        """PBA and MBA of every chunk that lives in the segment."""
        span = self.places.span
        return list(self.owners.items(segment * span, (segment + 1) * span))

    def usage(self) -> list[tuple[int, int]]:
        """How many units live in each segment in use."""
        return [(segment, usage.live) for segment, usage in self.sealed.items()]

    def store(self) -> None:
        """Bring the stored usage table up to date."""
        for segment in sorted(self._changed):
            if (usage := self.sealed.get(segment)) is not None:
                self.table.put(segment, (usage.live, usage.filled))
            else:
                self.table.remove(segment)
        self._changed.clear()

    def checkpointed(self) -> list[int]:
        """A checkpoint is durable: dead segments become free. Returns them."""
        freed, self.dead = self.dead, []
        for segment in freed:
            heapq.heappush(self._free, segment)
        return freed

    def load(self, owners_root: int, table_root: int) -> None:
        """Read the usage table that a checkpoint refers to."""
        self.owners.root, self.table.root = owners_root, table_root
        self.sealed = {segment: Usage(*usage) for segment, usage in self.table.items()}
        self.live = sum(usage.live for usage in self.sealed.values())
        self._fresh = max(self.sealed, default=-1) + 1
        self._free = [segment for segment in range(self._fresh) if segment not in self.sealed]
