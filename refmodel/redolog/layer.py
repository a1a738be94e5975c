"""Layers: where each has a block, and how blocks get into it.

A delta finds a block through its grain directory (in memory while the disk is open) and a grain table (on the device, a few sectors of which are in
memory). What is written to it for the first time goes behind what it has, and counts when its table entry does: data, flush, entry.
What it has is overwritten in place.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping

from refmodel.core.errors import DataLost
from refmodel.redolog.geometry import (
    ALL,
    ENTRY_BYTES,
    SECTOR,
    SECTOR_ENTRIES,
    TABLE_ENTRIES,
    TABLE_SECTORS,
    RedoLogGeometry,
)  # fmt: skip
from refmodel.redolog.store import DATA, METADATA, Store

ABSENT, ZERO = (
    None,
    -1,
)  # in the place of a place: the layer does not have the block; it hides what is below with zeroes
UNMAPPED = 1 << 31  # in an entry: reads as zeroes; the place, if there is one, is kept
LONGEST = 1 << 20  # bytes of one write of zeroes

Blocks = Mapping[int, bytes | None]  # LBA -> its data; None: unmapped


class TableCache:
    """Sectors of grain tables in memory: the most recently used, or all. Never newer than the device."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sectors: OrderedDict[int, array] = OrderedDict()  # by byte offset on the device
        self.hits = 0
        self.misses = 0

    def get(self, offset: int) -> array | None:
        if (found := self._sectors.get(offset)) is None:
            self.misses += 1
            return None
        self.hits += 1
        self._sectors.move_to_end(offset)
        return found

    def put(self, offset: int, entries: array) -> None:
        self._sectors[offset] = entries
        self._sectors.move_to_end(offset)
        while self._limit != ALL and len(self._sectors) > self._limit:
            self._sectors.popitem(last=False)

    def forget(self, first: int, end: int) -> None:
        """What lies in a range of the device is about to mean something else."""
        for offset in [offset for offset in self._sectors if first <= offset < end]:
            del self._sectors[offset]


class Base:
    """The flat layer: it has every block."""

    def __init__(self, geometry: RedoLogGeometry, store: Store) -> None:
        self._block_bytes = geometry.block_bytes
        self._blocks = geometry.blocks
        self._store = store
        self._start = geometry.layers_base

    def place(self, lba: int, cause: str) -> int | None:
        return self._start + lba * self._block_bytes

    def put(self, blocks: Blocks, cause: str) -> None:
        zero = bytes(self._block_bytes)
        write_runs(
            self._store,
            [(self.place(lba, cause), data or zero) for lba, data in sorted(blocks.items())],
            cause,
        )

    def extent(self, lba: int) -> int:
        return lba


class Delta:
    """A layer that has what was written to it. `slot` is the region that it is in."""

    def __init__(
        self, slot: int, geometry: RedoLogGeometry, store: Store, cache: TableCache
    ) -> None:
        self._geometry = geometry
        self._store = store
        self._cache = cache
        self._start = geometry.layers_base + slot * geometry.layer_bytes
        self._slot = slot
        self._directory = array("I", bytes(geometry.directory_sectors * SECTOR))
        self._next: int | None = (
            geometry.directory_sectors
        )  # the first sector that nothing is in; None: not known yet

    def begin(self, cause: str) -> None:
        """Make the region an empty layer; it counts once a descriptor names it."""
        self._cache.forget(self._start, self._start + self._geometry.layer_bytes)
        self._store.write(METADATA, self._start, bytes(len(self._directory) * ENTRY_BYTES), cause)

    def load(self, cause: str) -> None:
        """Read the directory, and every table if all are to be in memory. Raises DataLost."""
        self._directory = array(
            "I", self._store.read(METADATA, self._start, len(self._directory) * ENTRY_BYTES, cause)
        )
        self._next = None
        if self._geometry.table_cache == ALL:
            self._scan(cause)

    def place(self, lba: int, cause: str) -> int | None:
        """Where a block is: byte offset on the device, ZERO or ABSENT. Raises DataLost."""
        entry = self._entry(lba, cause)
        if entry == 0:
            return ABSENT
        return ZERO if entry & UNMAPPED else self._start + entry * SECTOR

    def extent(self, lba: int) -> int:
        """The first LBA from `lba` on that the layer may have."""
        per_table = TABLE_ENTRIES // self._geometry.block_grains
        table = lba // per_table
        if self._directory[table]:
            return lba
        while table < self._geometry.tables and not self._directory[table]:
            table += 1
        return table * per_table

    def put(self, blocks: Blocks, cause: str) -> None:
        """Have blocks from now on. Raises DataLost, then nothing changed."""
        before = {lba: self._entry(lba, cause) for lba in sorted(blocks)}
        entries, writes = self._placed(before, blocks)
        changed = {lba: entry for lba, entry in entries.items() if entry != before[lba]}
        new_tables = self._new_tables({self._locate(lba)[0] for lba in changed})
        write_runs(self._store, writes, cause)
        if not changed:
            return
        for table, location in new_tables.items():
            held = {
                self._locate(lba)[1]: entry
                for lba, entry in changed.items()
                if self._locate(lba)[0] == table
            }
            self._write_table(location, held, cause)
        if writes or new_tables:
            self._store.flush(cause)  # an entry never counts before what it leads to
        self._write_entries(
            {
                lba: entry
                for lba, entry in changed.items()
                if self._locate(lba)[0] not in new_tables
            },
            cause,
        )
        self._write_directory(new_tables, cause)

    # How it is done.

    def _locate(self, lba: int) -> tuple[int, int]:
        """Which table a block's entries are in, and which is their first."""
        return divmod(lba * self._geometry.block_grains, TABLE_ENTRIES)

    def _sector(self, table: int, entry: int) -> int:
        """Byte offset on the device of the sector that an entry is in. The table must be there."""
        return self._start + (self._directory[table] + entry // SECTOR_ENTRIES) * SECTOR

    def _entries(self, offset: int, cause: str) -> array:
        found = self._cache.get(offset)
        if found is None:
            found = array("I", self._store.read(METADATA, offset, SECTOR, cause))
            self._cache.put(offset, found)
        return found

    def _entry(self, lba: int, cause: str) -> int:
        """The entry of a block's first grain; the others follow from it."""
        table, first = self._locate(lba)
        if not self._directory[table]:
            return 0
        self._require_inside(self._directory[table], TABLE_SECTORS)
        entry = self._entries(self._sector(table, first), cause)[first % SECTOR_ENTRIES]
        if entry & ~UNMAPPED:
            self._require_inside(entry & ~UNMAPPED, self._geometry.block_sectors)
        return entry

    def _placed(
        self, before: dict[int, int], blocks: Blocks
    ) -> tuple[dict[int, int], list[tuple[int, bytes]]]:
        """The entries that blocks get, and what is to be written where."""
        entries, writes = {}, []
        for lba, old in before.items():
            data, location = blocks[lba], old & ~UNMAPPED
            if data is None:
                entries[lba] = UNMAPPED | location
                continue
            location = location or self._allocate(self._geometry.block_sectors)
            entries[lba] = location
            writes.append((self._start + location * SECTOR, data))
        return entries, writes

    def _new_tables(self, tables: set[int]) -> dict[int, int]:
        """Room for those of the tables that are not there yet: table -> location."""
        return {
            table: self._allocate(TABLE_SECTORS)
            for table in sorted(tables)
            if not self._directory[table]
        }

    def _allocate(self, sectors: int) -> int:
        if self._next is None:
            self._scan("recovery")
        location = self._next
        self._next += sectors
        return location

    def _scan(self, cause: str) -> None:
        """Find the end of what the layer has, in its tables."""
        block = self._geometry.block_sectors
        end = self._geometry.directory_sectors
        for location in filter(None, self._directory):
            self._require_inside(location, TABLE_SECTORS)
            offset = self._start + location * SECTOR
            table = array("I", self._store.read(METADATA, offset, TABLE_SECTORS * SECTOR, cause))
            last = max(entry & ~UNMAPPED for entry in table[:: self._geometry.block_grains])
            end = max(end, location + TABLE_SECTORS, last + block if last else 0)
            if self._geometry.table_cache == ALL:
                for first in range(0, TABLE_ENTRIES, SECTOR_ENTRIES):
                    self._cache.put(
                        offset + first * ENTRY_BYTES, table[first : first + SECTOR_ENTRIES]
                    )
        self._next = end

    def _grain_entries(self, entry: int) -> array:
        """The entries of all grains of a block, from that of the first."""
        grains = self._geometry.block_grains
        if entry & ~UNMAPPED == 0:
            return array("I", [entry]) * grains
        step = self._geometry.grain_bytes // SECTOR
        return array("I", [entry + grain * step for grain in range(grains)])

    def _write_table(self, location: int, held: dict[int, int], cause: str) -> None:
        """A new table, whole."""
        table = array("I", bytes(TABLE_SECTORS * SECTOR))
        for first, entry in held.items():
            table[first : first + self._geometry.block_grains] = self._grain_entries(entry)
        offset = self._start + location * SECTOR
        self._store.write(METADATA, offset, table.tobytes(), cause)
        used = {first - first % SECTOR_ENTRIES for first in held}
        for first in (
            range(0, TABLE_ENTRIES, SECTOR_ENTRIES)
            if self._geometry.table_cache == ALL
            else sorted(used)
        ):
            self._cache.put(offset + first * ENTRY_BYTES, table[first : first + SECTOR_ENTRIES])

    def _write_entries(self, changed: dict[int, int], cause: str) -> None:
        """Entries of tables that are there, a write for each sector of them."""
        sectors: dict[int, array] = {}
        for lba, entry in changed.items():
            table, first = self._locate(lba)
            offset = self._sector(table, first)
            if offset not in sectors:
                sectors[offset] = self._entries(offset, cause)
            at = first % SECTOR_ENTRIES
            sectors[offset][at : at + self._geometry.block_grains] = self._grain_entries(entry)
        for offset, entries in sectors.items():
            self._store.write(METADATA, offset, entries.tobytes(), cause)
            self._cache.put(offset, entries)

    def _write_directory(self, new_tables: dict[int, int], cause: str) -> None:
        for table, location in new_tables.items():
            self._directory[table] = location
        for sector in sorted({table // SECTOR_ENTRIES for table in new_tables}):
            entries = self._directory[sector * SECTOR_ENTRIES : (sector + 1) * SECTOR_ENTRIES]
            self._store.write(METADATA, self._start + sector * SECTOR, entries.tobytes(), cause)

    def _require_inside(self, location: int, sectors: int) -> None:
        if (
            not self._geometry.directory_sectors
            <= location
            <= self._geometry.layer_sectors - sectors
        ):
            raise DataLost(
                f"a grain table of layer {self._slot} is damaged: it leads to sector {location}"
            )


Layer = Base | Delta


def runs(places: list[tuple[int, bytes]]) -> Iterator[tuple[int, list[bytes]]]:
    """What is to be written, in as few writes as places that follow each other allow."""
    start, end, parts = -1, -1, []
    for place, data in places:
        if place != end or len(parts) * len(data) >= LONGEST:
            if parts:
                yield start, parts
            start, end, parts = place, place, []
        parts.append(data)
        end += len(data)
    if parts:
        yield start, parts


def write_runs(store: Store, places: list[tuple[int, bytes]], cause: str) -> None:
    for start, parts in runs(places):
        store.write(DATA, start, parts[0] if len(parts) == 1 else b"".join(parts), cause)
