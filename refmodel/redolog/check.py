"""The check of a redo-log chain: it reads all grain tables, and compares them with each other and
with what is in memory. It changes nothing: there are no copies to repair from.
"""

from array import array

from refmodel.redolog.descriptor import BASE, newest
from refmodel.redolog.disk import RedoLogDisk
from refmodel.redolog.geometry import (
    ENTRY_BYTES,
    SECTOR,
    SECTOR_ENTRIES,
    TABLE_ENTRIES,
    TABLE_SECTORS,
    RedoLogGeometry,
)
from refmodel.redolog.layer import UNMAPPED, Delta
from refmodel.redolog.store import METADATA


def check(disk: RedoLogDisk) -> tuple[list[str], int]:
    """Return what is wrong, one line each, and how many grain tables were compared."""
    problems, tables = [], 0
    if newest(disk.store) != disk.tree.descriptor:
        problems.append("the newest descriptor is not the one in memory")
    for slot in sorted(disk.tree.descriptor.used - {BASE}):
        found, compared = _of_layer(disk, slot)
        problems += [f"layer {slot}: {problem}" for problem in found]
        tables += compared
    return problems, tables


def _of_layer(disk: RedoLogDisk, slot: int) -> tuple[list[str], int]:
    """Return what is wrong with the tables of a layer, and how many tables it has.

    Every entry has to lead into the layer, no two to the same sector, and the tables in memory have
    to be those of the device.
    """
    geometry = disk.geometry
    start = geometry.layers_base + slot * geometry.layer_bytes

    def read(location: int, sectors: int) -> "array[int]":
        offset = start + location * SECTOR
        return array("I", disk.store.read(METADATA, offset, sectors * SECTOR, "scrub"))

    layer = disk.tree.layers[slot]
    assert isinstance(layer, Delta)
    problems = []
    used = [(0, geometry.directory_sectors)]
    sectors: dict[int, array[int]] = {}  # sectors of tables: offset on the device -> entries
    directory = read(0, geometry.directory_sectors)
    tables = [*filter(None, directory)]
    for location in tables:
        used.append((location, TABLE_SECTORS))
        if location + TABLE_SECTORS > geometry.layer_sectors:
            continue
        table = read(location, TABLE_SECTORS)
        used += _blocks(table, geometry)
        for first in range(0, TABLE_ENTRIES, SECTOR_ENTRIES):
            offset = start + location * SECTOR + first * ENTRY_BYTES
            sectors[offset] = table[first : first + SECTOR_ENTRIES]
    end = 0
    for location, length in sorted(used):
        if location < end:
            problems.append(f"sector {location} is used twice")
        end = max(end, location + length)
    if end > geometry.layer_sectors:
        problems.append(f"sector {end - 1} is used, but the layer has {geometry.layer_sectors}")
    elif (free := layer.first_free) is not None and free < end:
        problems.append(f"sector {free} counts as free, and sector {end - 1} is used")
    if layer.directory != directory:
        problems.append("the directory in memory differs from the device")
    held = disk.tree.tables.held(start, start + geometry.layer_bytes)
    for offset in sorted(
        offset for offset, entries in held.items() if sectors.get(offset) != entries
    ):
        problems.append(f"memory differs from the device at byte {offset}")
    return problems, len(tables)


def _blocks(table: "array[int]", geometry: RedoLogGeometry) -> list[tuple[int, int]]:
    """Return the blocks of a table: the first sector of each, and their number."""
    locations = (entry & ~UNMAPPED for entry in table[:: geometry.block_grains])
    return [(location, geometry.block_sectors) for location in locations if location]
