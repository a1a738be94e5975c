"""The check of a redo-log chain: what it finds, and that it finds nothing else."""

from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from refmodel.cli import main
from refmodel.redolog.check import check
from refmodel.redolog.disk import RedoLogDisk
from refmodel.redolog.geometry import SECTOR, SECTOR_ENTRIES, TABLE_SECTORS
from refmodel.redolog.layer import Delta
from refmodel.redolog.store import METADATA
from refmodel.registry import create, open_disk, plan
from refmodel.serving.exit_status import DAMAGED
from support.disks import block

BLOCKS = 8192  # two grain tables


@pytest.fixture(params=["redo-vmfs", "redo-se", "redo-vsan"])
def disk(folder: Path, request: pytest.FixtureRequest) -> Iterator[RedoLogDisk]:
    """A disk with a snapshot, on which live has two blocks of each table."""
    shape = plan(request.param, BLOCKS, block_bytes=512, layers=4)
    create(folder, shape, sync=False)
    disk = open_disk(folder, sync=False)
    assert isinstance(disk, RedoLogDisk)
    disk.snapshot("s")
    for lba in (3, 4, BLOCKS // 2 + 3, BLOCKS // 2 + 4):
        disk.write(lba, block(lba))
    assert check(disk)[0] == []
    yield disk
    disk.abandon()


def change(disk: RedoLogDisk, sector: int, at: int, entry: int) -> None:
    """Change one entry of live's layer, in the directory or a table, and read it again."""
    geometry, slot = disk.geometry, disk.tree.descriptor.live
    offset = geometry.layers_base + slot * geometry.layer_bytes + sector * SECTOR
    entries = array("I", disk.store.read(METADATA, offset, SECTOR, "scrub"))
    assert entries[at] not in (0, entry)
    entries[at] = entry
    disk.store.write(METADATA, offset, entries.tobytes(), "scrub")
    disk.tree.tables.forget(0, geometry.device_bytes)


def tables(disk: RedoLogDisk) -> list[int]:
    """Return where the tables of live's layer are."""
    geometry, slot = disk.geometry, disk.tree.descriptor.live
    offset = geometry.layers_base + slot * geometry.layer_bytes
    return list(array("I", disk.store.read(METADATA, offset, SECTOR, "scrub"))[: geometry.tables])


def test_two_blocks_in_one_place_are_found(disk: RedoLogDisk) -> None:
    first, _ = tables(disk)
    other = first - 1 if first > disk.geometry.directory_sectors else first + TABLE_SECTORS
    change(disk, first, 4, other)
    assert check(disk)[0] == [f"layer 1: sector {other} is used twice"]


def test_a_block_in_a_table_and_a_table_beyond_the_layer_are_found(disk: RedoLogDisk) -> None:
    first, second = tables(disk)
    change(disk, second, 3, first)
    assert check(disk)[0] == [f"layer 1: sector {first} is used twice"]
    size = disk.geometry.layer_sectors
    change(disk, 0, 1, size)
    last = size + TABLE_SECTORS - 1
    assert check(disk)[0] == [
        f"layer 1: sector {last} is used, but the layer has {size}",
        "layer 1: the directory in memory differs from the device",
    ]


def test_memory_that_differs_from_the_device_is_found(disk: RedoLogDisk) -> None:
    first, _ = tables(disk)
    geometry = disk.geometry
    offset = geometry.layers_base + disk.tree.descriptor.live * geometry.layer_bytes
    offset += first * SECTOR
    disk.tree.tables.put(offset, array("I", bytes(4 * SECTOR_ENTRIES)))
    assert check(disk)[0] == [f"layer 1: memory differs from the device at byte {offset}"]


def test_the_command_says_what_is_wrong(disk: RedoLogDisk, folder: Path) -> None:
    disk.close()
    assert CliRunner().invoke(main, ["scrub", str(folder)]).exit_code == 0
    opened = open_disk(folder, sync=False)
    assert isinstance(opened, RedoLogDisk)
    first, second = tables(opened)
    change(opened, second, 3, first)
    opened.abandon()
    result = CliRunner().invoke(main, ["scrub", str(folder)])
    assert result.exit_code == DAMAGED and f"sector {first} is used twice" in result.stderr


def test_a_sector_in_use_that_counts_as_free_is_found(disk: RedoLogDisk) -> None:
    live = disk.tree.live
    assert isinstance(live, Delta) and live.first_free is not None
    last, live._free = live.first_free - 1, live.first_free - 1
    assert check(disk)[0] == [f"layer 1: sector {last} counts as free, and sector {last} is used"]


def test_a_descriptor_that_is_not_the_newest_one_is_found(disk: RedoLogDisk) -> None:
    disk.tree.descriptor = replace(disk.tree.descriptor, next_id=17)
    assert check(disk)[0] == ["the newest descriptor is not the one in memory"]
