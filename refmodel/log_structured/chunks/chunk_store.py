"""The chunk store: chunks of data, each named by its middle block address (MBA).

A new chunk waits in the bank, in memory, until it is destaged: written to a segment of the capacity
leg. From then on the middle map says where it is: MBA -> physical block address (PBA), checksum.
The cleaner moves a chunk through `moving`: until it is destaged again, its old place stays valid.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, filterfalse, repeat
from typing import Any

from refmodel.array.leg import Leg
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost, DiskError
from refmodel.core.time_spent import DESTAGE, spent_on
from refmodel.log_structured.chunks.compression import Compressor
from refmodel.log_structured.chunks.deduplication import Deduplication
from refmodel.log_structured.chunks.segments import Extents, Segments
from refmodel.log_structured.chunks.streams import DestageQueue, Stream, Streams
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.cached_tree import CachedTree
from refmodel.log_structured.maps.node import MapKind, MiddleEntry
from refmodel.log_structured.maps.page_store import PageStore

Emit = Callable[..., None]
Located = tuple[list[Any], Extents]  # what is in memory, and where the others are
MOST_DROPPED = 1024  # dropped chunks that the maps may still hold before they are removed
FEW_DROPPED = 16  # the same, where nodes are small so that a small disk is like a large one


class ChunkStore:
    """The chunks of one disk: in the bank, or in segments."""

    def __init__(
        self, leg: Leg, pages: PageStore, segments: Segments, geometry: Geometry, emit: Emit
    ) -> None:
        self.segments = segments
        self.streams = Streams(geometry.separates_streams)
        self.queues = [DestageQueue() for _ in range(self.streams.count)]  # one for each stream
        self.middle = CachedTree[MiddleEntry](pages, MapKind.MIDDLE, fanout=geometry.fanout)
        self.deduplication = Deduplication(pages, geometry.fanout, self.middle)
        self.bank: dict[int, bytes] = {}  # MBA -> data as it will be stored
        self.moving: dict[int, bytes] = {}  # the same, of stored chunks that the cleaner moves
        self.leaving: dict[int, int] = {}  # MBA -> PBA, of those that it is to move next
        self.dropped: list[int] = []  # no view holds these chunks, but the maps still have them
        self.banked: Counter[str] = Counter()  # chunks that were read from the bank, by cause
        self.destaged = 0  # new chunks, since the disk was opened
        self.destaged_units = 0  # space that they took
        self.moved = 0  # chunks that the cleaner moved, since the disk was opened
        self._leg = leg
        self._block_bytes = geometry.block_bytes
        self._zero = bytes(geometry.block_bytes)
        self._emit = emit
        self._addressing = segments.addressing
        self._compressor = Compressor(geometry) if geometry.compression else None
        self._deduplicates = geometry.deduplication
        self._most_dropped = FEW_DROPPED if geometry.fanout else MOST_DROPPED
        self._removing = False  # whether so many are dropped, or were and some of them are left

    # New chunks, and chunks that nobody needs any more.

    def add(self, mbas: range, data: Iterable[bytes], replaced: Sequence[int | None]) -> None:
        """Put new chunks into the bank. The durable log must already hold their data.

        `replaced` gives for each chunk the chunk that its block mapped to before, or None.
        """
        if self._compressor:
            data = map(self._compressor.compress, data)
        if self._deduplicates:
            self.deduplication.add(mbas)
        self.bank.update(enumerate(data, mbas.start))
        self._enqueue(self.streams.of_new(mbas.start, replaced), self.bank)

    def drop(self, mbas: list[int]) -> None:
        """Forget chunks that no view holds any more. The maps follow in `remove_dropped`."""
        bank = self.bank
        banked = [*filter(bank.__contains__, mbas)]
        stored = [*filterfalse(bank.__contains__, mbas)] if banked else mbas
        for mba in banked:
            del bank[mba]
        if banked:
            self._dequeue(banked)
        self.dropped += stored
        if not self._deduplicates:
            if self.leaving or self.moving:
                self._stay(stored)
            return
        for mba in banked:
            successor = self.deduplication.drop_banked(mba)
            if successor is not None and successor in bank:  # otherwise it is dropped as well
                self._enqueue(self.streams.of_new(successor, [None]), bank)

    def remove_dropped(self, most: int | None = None) -> None:
        """Remove at most `most` dropped chunks from the maps, or all. Raises DataLost.

        Many at once: this costs one walk for each leaf, not one for each chunk.
        """
        if self.dropped:
            dropped = sorted(self.dropped)
            dropped, left = dropped[:most], [] if most is None else dropped[most:]
            if self._deduplicates:
                dropped, self.dropped = self.deduplication.release(dropped), left
                self._stay(dropped)
            entries = self.middle.remove_many(dropped)  # if one cannot be read, all stay dropped
            self.dropped = left
            self.segments.remove_chunks([pba for pba, _ in entries])

    def remove_if_many(self, most: int) -> bool:
        """Remove at most `most` dropped chunks, if many wait, and go on until none is left.

        Few calls for many chunks: each walks to every leaf that has some of them. Returns whether
        many waited. Raises DataLost.
        """
        many = len(self.dropped) >= self._most_dropped
        if many or self._removing:
            self.remove_dropped(most)
            self._removing = bool(self.dropped)
        return many

    # Reading.

    def read(self, mba: int, cause: str = "foreground") -> bytes:
        """Return the data of one chunk, verified. Raises DataLost."""
        return self.read_many([mba], cause)[0]

    def read_many(self, mbas: Sequence[int | None], cause: str = "foreground") -> list[bytes]:
        """Return the data of each chunk, verified; zeroes for None. Raises DataLost.

        Chunks that lie side by side are read in one I/O.
        """
        return self.fetch(*self.locate(mbas, cause), cause)

    def locate(self, mbas: Sequence[int | None], cause: str = "foreground") -> Located:
        """Find out where chunks are. Raises DataLost.

        Returns the data of each that is in memory, else None; and the extents of the others.
        """
        bank: Mapping[Any, bytes] = self.bank
        found: list[Any] = [*map(bank.get, mbas)]
        if self._compressor is not None:
            found = [None if data is None else self._compressor.decompress(data) for data in found]
        if in_memory := len(found) - found.count(None):
            self.banked[cause] += in_memory
        stored: Sequence[Any] = mbas
        if in_memory or None in mbas:
            found = [
                self._zero if mba is None else data for mba, data in zip(mbas, found, strict=True)
            ]
            stored = [mba for mba, data in zip(mbas, found, strict=True) if data is None]
        if not stored:
            return found, []
        entries: list[Any] = self.middle.get_many(stored)
        if self._deduplicates:
            entries = self.deduplication.resolve(entries)
        if None in entries:
            raise DataLost(
                f"chunk {stored[entries.index(None)]} is in no map:"
                " devices lost what they said was durable"
            )
        return found, self._addressing.extents(entries)

    def fetch(self, found: list[Any], extents: Extents, cause: str = "foreground") -> list[bytes]:
        """Return the data of chunks that were located, verified. Raises DataLost.

        Nothing else may have been written in their places meanwhile.
        """
        if not extents:
            return found
        stored = self._leg.read_many(extents, cause)
        if self._compressor is not None:
            stored = [self._compressor.decompress(data) for data in stored]
        if len(stored) == len(found):
            return stored
        rest = iter(stored)
        return [next(rest) if data is None else data for data in found]

    # Moving and destaging.

    def living(self, segment: int) -> dict[int, MiddleEntry]:
        """Return MBA -> place and checksum of every chunk that lives in a segment.

        The chunk that was written to a place lives there if the middle map still says so. Raises
        DataLost.
        """
        written = self.segments.written_to(segment)
        entries = self.middle.get_many([mba for _, mba in written])
        return {
            mba: entry
            for (pba, mba), entry in zip(written, entries, strict=True)
            if entry is not None and entry[0] == pba
        }

    def move(self, mbas: list[int]) -> list[int]:
        """Queue stored chunks of one segment to be destaged again, in another segment.

        Chunks that lie side by side are read in one I/O. Returns those whose data is lost, which
        stay where they are.
        """
        unreadable: list[int] = []
        try:
            chunks = self.read_many(mbas, "clean")
        except DataLost:
            chunks = []
            for mba in mbas:
                try:
                    chunks.append(self.read(mba, "clean"))
                except DataLost:
                    unreadable.append(mba)
            mbas = [mba for mba in mbas if mba not in unreadable]
        if self._compressor:
            chunks = [self._compressor.compress(data) for data in chunks]
        self.moving.update(zip(mbas, chunks, strict=True))
        for entry in self.middle.get_many(mbas[:1]):
            assert entry is not None, "what is moved is stored"
            source = self.segments.sealed[entry[0] // self._addressing.span].stream
            streams = self.streams.of_moved(mbas, source, self.segments.clock.now)
            self._enqueue(streams, self.moving)
        return unreadable

    def deduplicate(self) -> None:
        """Find the data of new chunks that is stored already, or that another chunk will store.

        A chunk whose data is stored leaves the bank. Neither is queued any more.
        """
        if self._deduplicates:
            aliases, duplicates = self.deduplication.find_duplicates(self.bank)
            for mba in aliases:
                del self.bank[mba]
            self._dequeue(aliases + duplicates)

    def destage_full(self) -> None:
        """Destage as many whole segments as there is data for. Raises NoSpace, DataLost."""
        for _ in self.destages():
            pass

    def may_fill_segment(self) -> bool:
        """True if there are enough chunks in memory to fill a segment."""
        return len(self.bank) + len(self.moving) >= self.segments.blocks

    def destages(self) -> Iterator[None]:
        """Destage as many whole segments as there is data for, one in each step behind a yield.

        Raises NoSpace, DataLost.
        """
        if not self.may_fill_segment():
            return
        self.deduplicate()
        for stream, queue in enumerate(self.queues):
            while queue.units >= self.segments.units:
                yield
                self.deduplicate()  # the chunks that came meanwhile
                if queue.units >= self.segments.units:
                    self.destage(queue.items(), stream=stream)

    def destage_all(self) -> None:
        """Destage the whole bank; the last segment may not be full. Raises NoSpace, DataLost."""
        self.remove_dropped()
        self.destage_full()
        self.deduplicate()
        while self.bank:
            self.destage(self.lengths(self.bank), self.lengths(self.moving))

    def destage_moving(self) -> None:
        """Destage what is moving, though it may not fill a segment. Raises NoSpace, DataLost."""
        while self.moving:
            self.destage_some_moving()

    def destage_some_moving(self) -> None:
        """Destage as much of what is moving as fits a segment. Raises NoSpace, DataLost."""
        self.deduplicate()
        self.destage(self.lengths(self.moving), self.lengths(self.bank))

    @spent_on(DESTAGE)
    def destage(self, *groups: Iterable[tuple[int, int]], stream: int = Stream.LONG) -> list[int]:
        """Fill one segment and write it in one full-stripe write; the action Destage of the specs.

        `groups` are chunks of the bank or of `moving` with their lengths in units, the first group
        first. Returns the MBAs that were written. Raises NoSpace, DataLost.
        """
        if not (filled := self._addressing.fill(*groups)):
            return []
        bank, moving = self.bank, self.moving
        mbas, lengths = map(list, zip(*filled, strict=True))
        chunks: list[Any] = [*map(bank.get, mbas, map(moving.get, mbas))]
        new = sum(map(bank.__contains__, mbas))
        segment = self.segments.open()
        size = self.segments.blocks * self._block_bytes
        try:
            self._leg.write(
                segment * size, b"".join(chunks).ljust(size, b"\0"), "destage" if new else "clean"
            )
        except DiskError:
            self.segments.add_free(segment)
            raise
        pbas = self._addressing.assign(segment, lengths)
        self.segments.seal(segment, pbas, mbas, sum(lengths), stream)
        entries = dict(zip(mbas, zip(pbas, map(crc32c, chunks), strict=True), strict=True))
        ordered = sorted(mbas)
        before = self.middle.put_many(ordered, [*map(entries.__getitem__, ordered)])
        self.segments.remove_chunks([pba for pba, _ in before])
        self.destaged += new
        if self._deduplicates and new:
            for duplicate in self.deduplication.destaged([mba for mba in ordered if mba in bank]):
                del bank[duplicate]
        self.destaged_units += sum(compress(lengths, map(bank.__contains__, mbas)))
        for waiting in (bank, moving) if moving else (bank,):
            for _ in map(waiting.pop, mbas, repeat(None)):
                pass
        self._dequeue(mbas)
        self.moved += len(mbas) - new
        self._emit("destage", segment=segment, mbas=mbas)
        return mbas

    def lengths(self, chunks: dict[int, bytes]) -> list[tuple[int, int]]:
        """Return each chunk that will be destaged, and its length in units.

        Those that are expected to die first come first.
        """
        return [
            (mba, units) for queue in self.queues for mba, units in queue.items() if mba in chunks
        ]

    def offset(self, pba: int) -> int:
        """Return where the data at a PBA begins, in bytes of the capacity leg."""
        return self._addressing.offset(pba)

    def _enqueue(self, streams: list[list[int]], chunks: dict[int, bytes]) -> None:
        """Queue chunks, a list of them for each stream."""
        for stream, mbas in enumerate(streams):
            if not mbas:
                continue
            if self._compressor is None:
                self.queues[stream].add(dict.fromkeys(mbas, 1), len(mbas))
            else:
                units = {mba: self._addressing.units_of(chunks[mba]) for mba in mbas}
                self.queues[stream].add(units, sum(units.values()))

    def _stay(self, mbas: list[int]) -> None:
        """Do not move stored chunks any more, which are dropped."""
        if self.leaving:
            for mba in mbas:
                self.leaving.pop(mba, None)
        if moving := self.moving:
            self._dequeue([mba for mba in mbas if moving.pop(mba, None) is not None])

    def _dequeue(self, mbas: list[int]) -> None:
        for queue in self.queues if mbas else ():
            if queue.units:
                queue.discard(mbas)
