"""The check of a redo-log chain: it reads all grain tables, and compares them with each other and
with what is in memory. It changes nothing: there are no copies to repair from.
"""

from array import array
from collections.abc import Iterator

from refmodel.redolog.descriptor import BASE
from refmodel.redolog.disk import RedoLogDisk
from refmodel.redolog.geometry import (
    ENTRY_BYTES,
    SECTOR,
    SECTOR_ENTRIES,
    TABLE_ENTRIES,
    TABLE_SECTORS,
    RedoLogGeometry,
)
from refmodel.redolog.layer import UNMAPPED
from refmodel.redolog.store import METADATA


def check(disk: RedoLogDisk) -> list[str]:
    """Return what is wrong, one line each; [] if nothing is."""
    problems = []
    for slot in sorted(disk.tree.descriptor.used - {BASE}):
        problems += [f"layer {slot}: {problem}" for problem in _of_layer(disk, slot)]
    return problems


def _of_layer(disk: RedoLogDisk, slot: int) -> Iterator[str]:
    """Yield what is wrong with the tables of a layer.

    Every entry has to lead into the layer, no two to the same sector, and the tables in memory have
    to be those of the device.
    """
    geometry = disk.geometry
    start = geometry.layers_base + slot * geometry.layer_bytes

    def read(location: int, sectors: int) -> "array[int]":
        offset = start + location * SECTOR
        return array("I", disk.store.read(METADATA, offset, sectors * SECTOR, "scrub"))

    used = [(0, geometry.directory_sectors)]
    sectors: dict[int, array[int]] = {}  # sectors of tables: offset on the device -> entries
    for location in filter(None, read(0, geometry.directory_sectors)):
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
            yield f"sector {location} is used twice"
        end = max(end, location + length)
    if end > geometry.layer_sectors:
        yield f"sector {end - 1} is used, but the layer has {geometry.layer_sectors}"
    held = disk.tree.tables.held(start, start + geometry.layer_bytes)
    for offset in sorted(
        offset for offset, entries in held.items() if sectors.get(offset) != entries
    ):
        yield f"memory differs from the device at byte {offset}"


def _blocks(table: "array[int]", geometry: RedoLogGeometry) -> list[tuple[int, int]]:
    """Return the blocks of a table: the first sector of each, and their number."""
    locations = (entry & ~UNMAPPED for entry in table[:: geometry.block_grains])
    return [(location, geometry.block_sectors) for location in locations if location]
