"""Layers: finding a block in a layer, and writing blocks to it.

A delta finds a block through its grain directory and a grain table. The directory is in memory
while the disk is open; the tables are on the device, some sectors of them in memory. A block that a
delta does not have yet is written behind everything that it has, and counts when its table entry is
durable: data, flush, entry. A block that it has is overwritten in place.

It has more than 300 lines because reading and writing a layer share its tables.
"""

from array import array
from collections.abc import Mapping

from refmodel.core.errors import DataLost
from refmodel.redolog.geometry import (
    ALL,
    ENTRY_BYTES,
    SECTOR,
    SECTOR_ENTRIES,
    TABLE_ENTRIES,
    TABLE_SECTORS,
    RedoLogGeometry,
)
from refmodel.redolog.store import METADATA, Store
from refmodel.redolog.table_cache import TableCache

ABSENT = None  # instead of an offset: the layer does not have the block
ZERO = -1  # instead of an offset: the layer has the block as zeroes, whatever is below
UNMAPPED = 1 << 31  # bit of an entry: the block reads as zeroes; its location, if any, is kept

Blocks = Mapping[int, bytes | None]  # LBA (logical block address) -> data; None: unmapped


class Base:
    """The base disk: it is flat, and has every block."""

    def __init__(self, geometry: RedoLogGeometry, store: Store) -> None:
        self._block_bytes = geometry.block_bytes
        self._blocks = geometry.blocks
        self._store = store
        self._start = geometry.layers_base

    def load(self, cause: str) -> None:
        """Do nothing: the base has no directory."""

    def look_up(self, lba: int, cause: str) -> int | None:
        """Return the byte offset of a block on the device."""
        return self._offset(lba)

    def put(self, blocks: Blocks, cause: str) -> None:
        """Write blocks; unmapped ones as zeroes."""
        zero = bytes(self._block_bytes)
        places = [(self._offset(lba), data or zero) for lba, data in sorted(blocks.items())]
        self._store.write_blocks(places, cause)

    def next_extent(self, lba: int) -> int:
        """Return `lba`: the base has every block."""
        return lba

    def _offset(self, lba: int) -> int:
        return self._start + lba * self._block_bytes


class Delta:
    """A delta disk: it has the blocks that were written to it.

    `slot` is the number of the region that the layer is in. A location is a sector number in it.
    """

    def __init__(
        self, slot: int, geometry: RedoLogGeometry, store: Store, cache: TableCache
    ) -> None:
        self._geometry = geometry
        self._store = store
        self._cache = cache
        self._start = geometry.layers_base + slot * geometry.layer_bytes
        self._slot = slot
        self._directory = array("I", bytes(geometry.directory_sectors * SECTOR))
        # The first sector behind all that is in use; None: not known yet.
        self._free: int | None = geometry.directory_sectors
        self._scanned = geometry.directory_sectors  # `_free` at the last read of the tables
        self._gaps: list[tuple[int, int]] | None = None  # below it: first sector, and how many

    @property
    def directory(self) -> "array[int]":
        """The location of each grain table, 0 of one that does not exist; not to be changed."""
        return self._directory

    @property
    def first_free(self) -> int | None:
        """The first sector behind all that is in use; None if it is not known yet."""
        return self._free

    def begin(self, cause: str) -> None:
        """Make the region an empty layer. The layer counts once a descriptor names it."""
        self._cache.forget(self._start, self._start + self._geometry.layer_bytes)
        self._store.write(METADATA, self._start, bytes(len(self._directory) * ENTRY_BYTES), cause)

    def load(self, cause: str) -> None:
        """Read the directory, and every table if all are kept in memory. Raises DataLost."""
        size = len(self._directory) * ENTRY_BYTES
        self._directory = array("I", self._store.read(METADATA, self._start, size, cause))
        self._free = self._gaps = None
        if self._geometry.table_cache == ALL:
            self._scan(cause)

    def look_up(self, lba: int, cause: str) -> int | None:
        """Return where a block is: byte offset on the device, ZERO or ABSENT. Raises DataLost."""
        entry = self._entry(lba, cause)
        if entry == 0:
            return ABSENT
        return ZERO if entry & UNMAPPED else self._start + entry * SECTOR

    def next_extent(self, lba: int) -> int:
        """Return the first block from `lba` on that the layer may have."""
        per_table = TABLE_ENTRIES // self._geometry.block_grains
        table = lba // per_table
        if self._directory[table]:
            return lba
        while table < self._geometry.tables and not self._directory[table]:
            table += 1
        return table * per_table

    def put(self, blocks: Blocks, cause: str) -> None:
        """Write blocks. Raises DataLost; then nothing changed."""
        before = {lba: self._entry(lba, cause) for lba in sorted(blocks)}
        entries, writes = self._allocated(before, blocks)
        changed = {lba: entry for lba, entry in entries.items() if entry != before[lba]}
        new_tables = self._new_tables({self._locate(lba)[0] for lba in changed})
        self._store.write_blocks(writes, cause)
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
            self._store.flush_before_entries(cause)
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
        """Return the table that a block's entries are in, and the first of them."""
        return divmod(lba * self._geometry.block_grains, TABLE_ENTRIES)

    def _sector(self, table: int, entry: int) -> int:
        """Return the byte offset on the device of the sector that an entry is in.

        The table must exist.
        """
        return self._start + (self._directory[table] + entry // SECTOR_ENTRIES) * SECTOR

    def _entries(self, offset: int, cause: str) -> "array[int]":
        """Return the entries of a sector of a grain table."""
        found = self._cache.get(offset)
        if found is None:
            found = array("I", self._store.read(METADATA, offset, SECTOR, cause))
            self._cache.put(offset, found)
        return found

    def _entry(self, lba: int, cause: str) -> int:
        """Return the entry of a block's first grain; the others follow from it. Raises DataLost."""
        table, first = self._locate(lba)
        if not self._directory[table]:
            return 0
        self._require_inside(self._directory[table], TABLE_SECTORS)
        entry = self._entries(self._sector(table, first), cause)[first % SECTOR_ENTRIES]
        if entry & ~UNMAPPED:
            self._require_inside(entry & ~UNMAPPED, self._geometry.block_sectors)
        return entry

    def _allocated(
        self, before: dict[int, int], blocks: Blocks
    ) -> tuple[dict[int, int], list[tuple[int, bytes]]]:
        """Return the entries that blocks get, and what has to be written at which offset."""
        entries: dict[int, int] = {}
        writes: list[tuple[int, bytes]] = []
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
        """Allocate those of the tables that do not exist: table -> location."""
        return {
            table: self._allocate(TABLE_SECTORS)
            for table in sorted(tables)
            if not self._directory[table]
        }

    def _allocate(self, sectors: int) -> int:
        """Allocate sectors behind everything that the layer has, or else in a gap.

        Returns their location. Raises DataLost.
        """
        location = self._scan("recovery") if self._free is None else self._free
        if location + sectors > self._geometry.layer_sectors:
            return self._in_a_gap(sectors)
        self._free = location + sectors
        return location

    def _in_a_gap(self, sectors: int) -> int:
        """Allocate sectors that a cut left unused: it may keep an entry and lose those before.

        Returns their location. Raises DataLost if there is no gap for them.
        """
        if self._gaps is None:
            self._gaps = self._unused("recovery")
        for at, (first, length) in enumerate(self._gaps):
            if length >= sectors:
                self._gaps[at] = (first + sectors, length - sectors)
                return first
        raise DataLost(f"layer {self._slot} has no room for {sectors} sectors: it is damaged")

    def _unused(self, cause: str) -> list[tuple[int, int]]:
        """Return the gaps between what tables lead to, below where all ended when they were last
        read.
        """
        used = [(0, self._geometry.directory_sectors), (self._scanned, 0)]
        for location in filter(None, self._directory):
            used.append((location, TABLE_SECTORS))
            offset = self._start + location * SECTOR
            table = array("I", self._store.read(METADATA, offset, TABLE_SECTORS * SECTOR, cause))
            firsts = (entry & ~UNMAPPED for entry in table[:: self._geometry.block_grains])
            used += [(first, self._geometry.block_sectors) for first in firsts if first]
        gaps, end = [], 0
        for first, length in sorted(used):
            if first > end:
                gaps.append((end, first - end))
            end = max(end, first + length)
        return [(first, length) for first, length in gaps if first + length <= self._scanned]

    def _scan(self, cause: str) -> int:
        """Find the first free sector in the tables. They are kept in memory if all are to be.

        Raises DataLost.
        """
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
        self._free = self._scanned = end
        return end

    def _grain_entries(self, entry: int) -> "array[int]":
        """Return the entries of all grains of a block, from the entry of the first."""
        grains = self._geometry.block_grains
        if entry & ~UNMAPPED == 0:
            return array("I", [entry]) * grains
        step = self._geometry.grain_bytes // SECTOR
        return array("I", [entry + grain * step for grain in range(grains)])

    def _write_table(self, location: int, held: dict[int, int], cause: str) -> None:
        """Write a new table, with the entries that it has so far, by number."""
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
        """Write entries of tables that exist, with one write per sector of them."""
        sectors: dict[int, array[int]] = {}
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
        """Write the directory's sectors that new tables are in."""
        for table, location in new_tables.items():
            self._directory[table] = location
        for sector in sorted({table // SECTOR_ENTRIES for table in new_tables}):
            entries = self._directory[sector * SECTOR_ENTRIES : (sector + 1) * SECTOR_ENTRIES]
            self._store.write(METADATA, self._start + sector * SECTOR, entries.tobytes(), cause)

    def _require_inside(self, location: int, sectors: int) -> None:
        """Raises DataLost if sectors from a location on are not inside of the layer."""
        last = self._geometry.layer_sectors - sectors
        if not self._geometry.directory_sectors <= location <= last:
            raise DataLost(
                f"a grain table of layer {self._slot} is damaged: it leads to sector {location}"
            )


Layer = Base | Delta
