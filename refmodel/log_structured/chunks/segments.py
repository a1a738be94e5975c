"""Segments of the capacity leg: each is written whole; a usage table counts what lives in each.

free -> open (filled in memory) -> sealed (written) -> dead (nothing lives in it) -> free. A dead
segment becomes free only when a durable checkpoint does not refer to it.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from refmodel.core.errors import DataLost, NoSpace
from refmodel.core.number_set import NumberSet
from refmodel.log_structured.chunks.physical_address import Addressing
from refmodel.log_structured.chunks.sealed_segments import SealedSegments, SegmentUsage
from refmodel.log_structured.chunks.streams import Stream
from refmodel.log_structured.chunks.victims import Victims
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.maps.page_store import PageStore

READ_AT_OPENING = 1024  # segments: so many are known when a disk is open
LEARNED = 128  # segments that are looked at in one step after that
Extents = list[tuple[int, int, int]]  # offset and length in bytes, checksum


class Segments:
    """The segments of one disk, and which chunk was written to each place in them."""

    def __init__(self, pages: PageStore, geometry: Geometry) -> None:
        self.blocks = geometry.segment_blocks
        self.units = geometry.segment_units
        self.addressing = Addressing(geometry)
        self.count = geometry.segments
        # PBA -> MBA, of the segment's last filling: also of what does not live there any more
        self.owners: Tree[int] = Tree(pages, MapKind.SEGMENT_OWNERS, fanout=geometry.fanout)
        # segment -> live units, when it was filled
        self.table: Tree[tuple[int, int]] = Tree(pages, MapKind.SEGMENT_USAGE)
        self.sealed = SealedSegments()
        self.victims = Victims(self.units)  # those of the sealed segments that may be cleaned
        self.dead: list[int] = []
        self._dead_before = 0  # number of those that were dead when the maps were frozen
        self.live = 0  # units in all segments
        self.fillings = 0  # segments sealed, since the disk was opened
        self.clock = pages.clock
        self._changed = NumberSet()  # segments whose entry of the table is out of date
        self._free = NumberSet()  # freed segments below `_fresh`
        self._fresh = 0  # segments from here on were never used
        # Segments of which nobody knows what lives in them, but for those of `_learned`. The stored
        # table knows: it changes only where a segment is known.
        self._unknown = range(0)
        self._learned: set[int] = set()
        self._unknown_sealed = 0  # number of those that are sealed
        self._unknown_free = 0  # number of those that are free
        self._reserved: set[int] = set()
        self._pins: list[Extents] = []  # what each read in flight reads
        self._bytes = geometry.segment_bytes

    @property
    def held_by_reads(self) -> bool:
        """True if a dead segment cannot be freed because a read in flight reads it."""
        return not self._pinned().isdisjoint(self.dead)

    def pin(self, extents: Extents) -> Extents:
        """Keep the segments of extents from being freed. Returns them, for `unpin`."""
        self._pins.append(extents)
        return extents

    def unpin(self, pinned: Extents) -> None:
        """Release the segments of a read that has ended."""
        self._pins.remove(pinned)

    def _pinned(self) -> set[int]:
        """Return the segments that reads in flight read."""
        return {offset // self._bytes for extents in self._pins for offset, _, _ in extents}

    def free_count(self) -> int:
        """Number of free segments."""
        return self._free.count + self.count - self._fresh + self._unknown_free

    @property
    def sealed_count(self) -> int:
        """Number of sealed segments."""
        return len(self.sealed) + self._unknown_sealed

    @property
    def first_fresh(self) -> int:
        """The first segment that was never used."""
        return self._fresh

    @property
    def all_known(self) -> bool:
        """True if the live chunks of every segment are known."""
        return not self._unknown

    @property
    def reserved_count(self) -> int:
        """Number of segments that large writes have reserved."""
        return len(self._reserved)

    def open(self) -> int:
        """Take a free segment, to be filled and sealed at once. Raises NoSpace, DataLost."""
        if not self._free and self._fresh < self.count:
            self._fresh += 1
            return self._fresh - 1
        while not self._free and self.learn():
            pass
        if not self._free:
            raise NoSpace("no segment is free")
        return self._free.pop_lowest()

    def reserve(self) -> int:
        """Take a free segment that is written before the log says so. Raises NoSpace."""
        segment = self.open()
        self._reserved.add(segment)
        return segment

    def cancel_reservation(self, segment: int) -> None:
        """Make a reserved segment free: the log will not refer to it."""
        self._reserved.discard(segment)
        self.add_free(segment)

    def claim(self, segment: int) -> None:
        """Take the segment that a record of the log says is in use: a reserved or a free one.

        Raises DataLost if the maps say that it was in use already: devices lost what they said was
        durable.
        """
        if segment in self._reserved:
            self._reserved.discard(segment)
            return
        self._know([segment])
        while self._fresh <= segment:
            self.add_free(self._fresh)
            self._fresh += 1
        if segment not in self._free:
            raise DataLost(f"the log and the maps disagree about segment {segment}")
        self._free.discard(segment)

    def seal(
        self,
        segment: int,
        pbas: Sequence[int],
        mbas: Sequence[int],
        units: int,
        stream: int = Stream.LONG,
    ) -> None:
        """Note that a segment is written: chunk mbas[i] lies at pbas[i]; all take `units`.

        Raises NoSpace, DataLost.
        """
        assert 0 < units <= self.units
        self._own(segment, pbas, mbas)
        self.fillings += 1
        self.sealed[segment] = usage = SegmentUsage(units, self.clock.tick(), stream)
        self.victims.put(segment, units, usage.filled)
        self.live += units
        self._changed.add(segment)

    def remove_chunks(self, pbas: list[int]) -> None:
        """Note that nothing lives at the PBAs any more. Raises DataLost.

        A segment in which nothing lives any more is dead. The owners of the places stay the same.
        """
        counted = self.addressing.by_segment(pbas)
        self._know(counted)
        self.live -= counted.total()
        self._changed.update(counted)
        for (segment, gone), (live, filled) in zip(
            counted.items(), self.sealed.lose(counted), strict=True
        ):
            self.victims.put(segment, live, filled, was_full=live + gone == self.units)
            if not live:
                self.dead.append(segment)

    def written_to(self, segment: int) -> list[tuple[int, int]]:
        """Return PBA and MBA of every chunk that was written to a segment when it was filled.

        Raises DataLost.
        """
        span = self.addressing.span
        return list(self.owners.items(segment * span, (segment + 1) * span))

    def usage(self) -> list[tuple[int, int]]:
        """Return each sealed segment, and how many units live in it. Raises DataLost."""
        known = [*zip(self.sealed, self.sealed.lives(), strict=True)]
        if not self._unknown:
            return known
        stored = self.table.items(self._unknown[0], self._unknown[-1] + 1)
        return known + [(at, live) for at, (live, _) in stored if at not in self._learned]

    @property
    def changed_count(self) -> int:
        """Number of segments whose entry in the stored table is out of date."""
        return len(self._changed)

    def stored_otherwise(self) -> list[int]:
        """Return the segments of which the stored table says something else than memory, though
        their entry is not out of date. Raises DataLost.
        """
        stored = dict(self.table.items())
        known = {at: use[:2] for at, use in self.sealed.items()}
        unclear = {*self._changed} | ({*self._unknown} - self._learned)
        return sorted(
            at for at in (stored.keys() | known.keys()) - unclear if stored.get(at) != known.get(at)
        )

    def store(self, most: int | None = None) -> None:
        """Bring the stored usage table up to date, at most `most` entries, or all.

        Raises NoSpace, DataLost.
        """
        changed = [*islice(self._changed, most)]
        usage = dict(zip(changed, self.sealed.usage_of(changed), strict=True))
        sealed = [segment for segment in changed if usage[segment][0]]
        self.table.put_many(sealed, [usage[segment] for segment in sealed])
        gone = [segment for segment in changed if not usage[segment][0]]
        stored = zip(gone, self.table.get_many(gone), strict=True)
        self.table.remove_many([segment for segment, there in stored if there is not None])
        self._changed.difference_update(changed)

    def freeze(self) -> None:
        """Note which segments are dead: a checkpoint of this moment does not refer to them."""
        self._dead_before = len(self.dead)

    def free(self) -> list[int]:
        """Free every segment that was dead when the maps were frozen; the action Free, for each.

        Returns the segments. The checkpoint of that moment must be durable. What a read in flight
        reads stays.
        """
        before, held = self.dead[: self._dead_before], self._pinned()
        freed = [segment for segment in before if segment not in held]
        self.dead = [at for at in before if at in held] + self.dead[self._dead_before :]
        self._dead_before = 0
        for segment in freed:
            self.add_free(segment)
        return freed

    def add_free(self, segment: int) -> None:
        """Note that a segment is free."""
        self._free.add(segment)

    def load(
        self,
        first_fresh: int,
        sealed: int,
        live: int,
        changed: dict[int, tuple[int, int] | None],
    ) -> None:
        """Begin with the counts of a checkpoint, whose roots are known.

        `changed` are entries of the usage table that will be put into it.
        The usage table is read now if it is small, or if the first segment that was never used is
        not known, else later. Raises DataLost.
        """
        if READ_AT_OPENING < first_fresh <= self.count:
            self.live, self._fresh, self._unknown = live, first_fresh, range(first_fresh)
            self._unknown_sealed, self._unknown_free = sealed, first_fresh - sealed
            return
        for segment, usage in {**dict(self.table.items()), **changed}.items():
            if usage is not None:
                self._note(segment, usage)
        self.live = sum(self.sealed.lives())
        self._fresh = self.first_unused()
        self._free.update(at for at in range(self._fresh) if at not in self.sealed)

    def learn(self) -> bool:
        """Find out of some more segments what lives in them. Returns False if all are known.

        Raises DataLost.
        """
        if not self._unknown:
            return False
        part = self._unknown[:LEARNED]
        stored = dict(self.table.items(part[0], part[-1] + 1, "recovery"))
        for segment in part:
            if segment not in self._learned:
                self._learn(segment, stored.get(segment))
        self._learned.difference_update(part)
        self._unknown = self._unknown[LEARNED:]
        return True

    def learn_all(self) -> None:
        """Find out of all segments what lives in them. Raises DataLost."""
        while self.learn():
            pass

    def first_unused(self) -> int:
        """Return the first segment behind all sealed ones. All must be known."""
        return max(self.sealed, default=-1) + 1

    def _own(self, segment: int, pbas: Sequence[int], mbas: Sequence[int]) -> None:
        """Let chunks own their places in a segment, and no chunk of an earlier filling any."""
        places = {*pbas}
        # Without compression the places that are left lie behind those that are taken.
        low = segment * self.addressing.span if self.addressing.bits else pbas[-1] + 1
        others = self.owners.items(low, (segment + 1) * self.addressing.span)
        if earlier := [pba for pba, _ in others if pba not in places]:
            self.owners.remove_many(earlier)
        self.owners.put_many(pbas, mbas)

    def _know(self, segments: Iterable[int]) -> None:
        """Find out what lives in these segments, before anything changes. Raises DataLost."""
        for segment in segments if self._unknown else ():
            if segment in self._unknown and segment not in self._learned:
                self._learn(segment, self.table.get(segment))
                self._learned.add(segment)

    def _learn(self, segment: int, usage: tuple[int, int] | None) -> None:
        """Take over what the stored table says of an unknown segment."""
        if usage is None:
            self._unknown_free -= 1
            self.add_free(segment)
        else:
            self._unknown_sealed -= 1
            self._note(segment, usage)

    def _note(self, segment: int, usage: tuple[int, int]) -> None:
        """Note what lives in a sealed segment, and when it was filled."""
        self.sealed[segment] = SegmentUsage(*usage)
        self.victims.put(segment, *usage)
