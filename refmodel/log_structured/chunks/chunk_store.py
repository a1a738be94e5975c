"""Chunks of data, named by MBA: in the bank until they are destaged, then where the middle map says."""

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from refmodel.array.leg import Leg
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost, DiskError
from refmodel.log_structured.chunks.compression import Compressor
from refmodel.log_structured.chunks.deduplication import ALIAS, Sharing
from refmodel.log_structured.chunks.segments import Segments
from refmodel.log_structured.chunks.streams import Stream, Streams, Waiting
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.cached_tree import KnownTree
from refmodel.log_structured.maps.node import Kind
from refmodel.log_structured.maps.page_store import Pages

Emit = Callable[..., None]
NUMBER = struct.Struct("<I")
MOST_DROPPED = 4096  # chunks that are dropped and still in the maps


class Chunks:
    """Chunks that the cleaner moves pass through `moving`: until they are destaged, their old place is still good."""

    def __init__(
        self, leg: Leg, pages: Pages, segments: Segments, geometry: Geometry, emit: Emit
    ) -> None:
        self.streams = Streams(geometry.separate)
        self._waiting = [
            Waiting() for _ in range(self.streams.count)
        ]  # what each stream destages next
        self._leg = leg
        self._block_bytes = geometry.block_bytes
        self._zero = bytes(geometry.block_bytes)
        self._emit = emit
        self.segments = segments
        self._places = segments.places
        self._compressor = Compressor(geometry) if geometry.compression else None
        self.middle = KnownTree(
            pages, Kind.MIDDLE, fanout=geometry.fanout
        )  # MBA -> PBA, CRC-32C of what is stored there
        self.sharing = Sharing(pages, geometry.fanout, self.middle)
        self._shares = geometry.deduplication
        self._estimates = geometry.reduces
        self.bank: dict[
            int, bytes
        ] = {}  # as it will be stored; acknowledged, and nowhere else but in the durable log
        self.moving: dict[int, bytes] = {}
        self._dropped: list[int] = []  # that no view holds, and the maps still have
        self.banked: Counter[str] = Counter()  # chunks that were read from the bank, by cause
        self.destaged = 0  # new chunks, since the disk was opened
        self.moved = 0
        self.placed_count = 0
        self.destaged_units = 0  # space that the new ones took

    @property
    def occupied(self) -> int:
        """Units of space that chunks take which some view holds; at most, where data is reduced."""
        dropped = 0 if self._estimates else len(self._dropped)
        return self.bank_units + self.segments.live - dropped

    @property
    def bank_units(self) -> int:
        if self._compressor is None:
            return len(self.bank)
        return sum(map(len, self.bank.values())) // self._places.unit_bytes

    @property
    def live(self) -> int:
        """How many chunks some view holds; where data is reduced, their space, counted in whole chunks."""
        self.settle_if_estimated()
        return -(-self.occupied * self.segments.blocks // self.segments.units)

    def settle_if_estimated(self) -> None:
        """Make `occupied` exact."""
        if self._estimates:
            self.settle()

    def freed_by(self, mbas: list[int]) -> int:
        """How many units go if the chunks are dropped; at least, where chunks are shared."""
        if not self._estimates:
            return len(mbas)
        banked = [mba for mba in mbas if mba in self.bank]
        places = zip(mbas, self.middle.get_many(mbas))
        stored = [
            (mba, place[0]) for mba, place in places if place is not None and not place[0] & ALIAS
        ]
        if self._shares:
            banked = [mba for mba in banked if self.sharing.alone(mba)]
            stored = [(mba, pba) for mba, pba in stored if not self.sharing.shared(mba)]
        return sum(self._units(self.bank[mba]) for mba in banked) + sum(
            self._places.units(pba) for _, pba in stored
        )

    def add(self, mbas: range, data: Iterable[bytes], replaced: list[int | None]) -> None:
        """Fresh chunks, which the durable log has, each in the place of another or of none."""
        if self._compressor:
            data = map(self._compressor.pack, data)
        if self._shares:
            self.sharing.add(mbas)
        self.bank.update(zip(mbas, data))
        self._wait(mbas, replaced)

    def place(self, data: bytes) -> bytes:
        """Write the whole segments of a large write at once, and make them durable; nothing refers to them yet.

        Returns what the log is to hold: the number of segments, each one's number and checksums, and the data that fills no segment.
        Raises NoSpace.
        """
        blocks, size = self.segments.blocks, self._block_bytes
        stripe = blocks * size
        table = [NUMBER.pack(len(data) // stripe)]
        reserved = []
        try:
            for at in range(0, len(data) - stripe + 1, stripe):
                reserved.append(segment := self.segments.reserve())
                self._leg.write(segment * stripe, data[at : at + stripe], "foreground")
                checksums = (
                    crc32c(data[block : block + size]) for block in range(at, at + stripe, size)
                )
                table += [NUMBER.pack(segment), *map(NUMBER.pack, checksums)]
            self._leg.flush("foreground")
            self._emit("place", segments=reserved)
        except DiskError:
            for segment in reserved:
                self.segments.give_back(segment)
            raise
        return b"".join([*table, data[len(data) // stripe * stripe :]])

    def placed_bytes(self, data: int) -> int:
        """How long the log's record of so much data is, once its whole segments are placed."""
        segments, rest = divmod(data, self.segments.blocks * self._block_bytes)
        return NUMBER.size * (1 + segments * (1 + self.segments.blocks)) + rest

    def placed(self, payload: bytes) -> tuple[list[tuple[int, list[int]]], bytes]:
        """Segments with the checksums of their chunks, and the data behind them, of what `place` returned."""
        (count,) = NUMBER.unpack_from(payload)
        entry = struct.Struct(f"<I{self.segments.blocks}I")
        end = NUMBER.size + count * entry.size
        return [
            (segment, checksums)
            for segment, *checksums in entry.iter_unpack(payload[NUMBER.size : end])
        ], payload[end:]

    def take(self, segment: int, mbas: Sequence[int], checksums: list[int]) -> None:
        """A segment that was placed now holds these chunks."""
        self.segments.take(segment)
        whole = self.segments.units // self.segments.blocks
        pbas = self._places.of(segment, [whole] * len(mbas))
        self.segments.seal(segment, pbas, mbas, self.segments.units)
        self.middle.put_many(mbas, list(zip(pbas, checksums)))
        self.placed_count += len(mbas)

    def drop(self, mbas: list[int]) -> None:
        """No view holds the chunks any more."""
        bank, moving = self.bank, self.moving
        banked = [mba for mba in mbas if mba in bank]
        stored = [mba for mba in mbas if mba not in bank] if banked else mbas
        for mba in banked:
            del bank[mba]
        self._wait_no_longer(banked)
        self._dropped += stored
        if not self._shares:
            self._wait_no_longer(
                [mba for mba in stored if moving.pop(mba, None) is not None] if moving else []
            )
            return
        for mba in banked:
            if (heir := self.sharing.drop_waiting(mba)) in bank:  # else it is dropped as well
                self._wait([heir], [None])

    def settle(self) -> None:
        """Take what was dropped off the maps: all at once, since that costs a walk a leaf and not one a chunk."""
        if self._dropped:
            dropped, self._dropped = sorted(self._dropped), []
            if self._shares:
                dropped = self.sharing.release(dropped)
                self._wait_no_longer(
                    [mba for mba in dropped if self.moving.pop(mba, None) is not None]
                )
            self.segments.drop([pba for pba, _ in self.middle.remove_many(dropped)])

    def read(self, mba: int, cause: str = "foreground") -> bytes:
        """A chunk's data, verified. Raises DataLost."""
        return self.read_many([mba], cause)[0]

    def read_many(self, mbas: list[int | None], cause: str = "foreground") -> list[bytes]:
        """The data of chunks, verified; zeroes for None. What lies side by side is read in one I/O. Raises DataLost."""
        if self._compressor is None:
            return self._read_stored(mbas, cause)
        return [
            data if mba is None else self._compressor.unpack(data)
            for mba, data in zip(mbas, self._read_stored(mbas, cause))
        ]

    def _read_stored(self, mbas: list[int | None], cause: str) -> list[bytes]:
        bank, zero = self.bank, self._zero
        found = [zero if mba is None else bank.get(mba) for mba in mbas]
        stored = [mba for mba, data in zip(mbas, found) if data is None]
        self.banked[cause] += len(mbas) - len(stored) - mbas.count(None)
        if not stored:
            return found
        places = self.middle.get_many(stored)
        if self._shares:
            places = self.sharing.resolve(places)
        if None in places:
            raise DataLost(
                f"chunk {stored[places.index(None)]} is in no map: devices lost what they said was durable"
            )
        data = self._leg.read_many(self._places.extents(places), cause)
        if len(stored) == len(found):
            return data
        rest = iter(data)
        return [next(rest) if data is None else data for data in found]

    def move(self, mba: int) -> bool:
        """Take the chunk along with the next destage of its stream. Says whether that is news. Raises DataLost."""
        if mba in self.moving:
            return False
        data = self.read(mba, "clean")
        self.moving[mba] = stored = self._compressor.pack(data) if self._compressor else data
        pba, _ = self.middle.get(mba)
        source = self.segments.sealed[pba // self._places.span].stream
        self._waiting[self.streams.of_moved(source, self.segments.clock.now - mba)].add(
            {mba: self._units(stored)}
        )
        return True

    def destage_full(self) -> None:
        """Fill and write as many whole segments as there is data for."""
        if len(self.bank) + len(self.moving) < self.segments.blocks:
            return
        self._find_shared()
        for stream, waiting in enumerate(self._waiting):
            while waiting.units >= self.segments.units:
                self._destage(waiting.items(), stream=stream)

    def destage_all(self) -> None:
        """Empty the bank, with a segment that is not full if need be."""
        self.settle()
        self.destage_full()
        self._find_shared()
        while self.bank:
            self._destage(self._lengths(self.bank), self._lengths(self.moving))

    def destage_moving(self) -> None:
        """Write what is moving, though it fills no segment."""
        while self.moving:
            self._find_shared()
            self._destage(self._lengths(self.moving), self._lengths(self.bank))

    def room_at_checkpoint(self) -> int:
        """How many more units would fit the last segment that emptying the bank writes."""
        self._find_shared()
        return max(
            0,
            -self._waiting_units(self.bank) % self.segments.units
            - self._waiting_units(self.moving),
        )

    def room_in_free(self) -> int:
        """How many more units the free segments take, beyond what waits to be destaged."""
        waiting = sum([waiting.units for waiting in self._waiting])
        return max(0, self.segments.free_count * self.segments.units - waiting)

    def mixes_little(self) -> bool:
        """Whether emptying the bank now would put few chunks that live short among others."""
        return (
            self.streams.count > 1 and 8 * self._waiting[Stream.SHORT].units <= self.segments.units
        )

    def offset(self, pba: int) -> int:
        """Where what is stored there begins, in bytes of the capacity leg."""
        return self._places.offset(pba)

    def _units(self, stored: bytes) -> int:
        return len(stored) // self._places.unit_bytes

    def _waiting_units(self, some: dict[int, bytes]) -> int:
        return sum(units for _, units in self._lengths(some))

    def _lengths(self, some: dict[int, bytes]) -> Iterator[tuple[int, int]]:
        """Chunks that are to be stored, and how many units each takes."""
        is_twin = self.sharing.is_twin
        for mba, stored in some.items():
            if not is_twin(mba):
                yield mba, self._units(stored)

    def _find_shared(self) -> None:
        """Chunks of the bank whose data is stored already need not be destaged, nor twins of one that will be."""
        if self._shares:
            aliases, twins = self.sharing.look(self.bank)
            for mba in aliases:
                del self.bank[mba]
            self._wait_no_longer(aliases + twins)

    def _destage(self, *groups: Iterable[tuple[int, int]], stream: int = Stream.LONG) -> list[int]:
        """Fill one segment from the bank and with what is moving, and write it in one full-stripe write. Returns its chunks."""
        if len(self._dropped) >= MOST_DROPPED:
            self.settle()
        if not (filled := self._places.fill(*groups)):
            return []
        bank, moving = self.bank, self.moving
        mbas, lengths = map(list, zip(*filled))
        chunks = [bank.get(mba) or moving[mba] for mba in mbas]
        new = sum(map(bank.__contains__, mbas))
        segment = self.segments.open()
        size = self.segments.blocks * self._block_bytes
        self._leg.write(
            segment * size, b"".join(chunks).ljust(size, b"\0"), "destage" if new else "clean"
        )
        pbas = self._places.of(segment, lengths)
        self.segments.seal(segment, pbas, mbas, sum(lengths), stream)
        places = dict(zip(mbas, zip(pbas, map(crc32c, chunks))))
        ordered = sorted(mbas)
        before = self.middle.put_many(ordered, [places[mba] for mba in ordered])
        self.segments.drop([place[0] for place in before if place is not None])
        self.destaged += new
        if self._shares and new:
            for twin in self.sharing.destaged([mba for mba in ordered if mba in bank]):
                del bank[twin]
        self.destaged_units += sum([units for mba, units in filled if mba in bank])
        for mba in mbas:
            bank.pop(mba, None)
            moving.pop(mba, None)
        self._wait_no_longer(mbas)
        self.moved += len(mbas) - new
        self._emit("destage", segment=segment, mbas=mbas)
        return mbas

    def _wait(self, mbas: Sequence[int], replaced: Sequence[int | None]) -> None:
        """Chunks of the bank, each in the place of another or of none, are to be destaged."""
        bank, unit = self.bank, self._places.unit_bytes
        for waiting, some in zip(self._waiting, self.streams.of_new(mbas, replaced)):
            waiting.add({mba: len(bank[mba]) // unit for mba in some})

    def _wait_no_longer(self, mbas: list[int]) -> None:
        for waiting in self._waiting if mbas else ():
            if waiting.units:
                waiting.discard(mbas)
