"""Redo-log chains: device I/Os of reads and writes, consolidation, power cuts, damage."""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from refmodel.core.errors import DataLost, NoSpace, PowerCut, Unsupported
from refmodel.media.power_supply import PowerSupply
from refmodel.observe.counters import counters, work
from refmodel.redolog.disk import RedoLogDisk
from refmodel.redolog.geometry import FLAVOURS
from refmodel.registry import create, open_disk, plan
from support.disks import block

BLOCKS = 256


def opened_disk(folder: Path, power: PowerSupply | None = None) -> RedoLogDisk:
    disk = open_disk(folder, sync=False, power=power)
    assert isinstance(disk, RedoLogDisk)
    return disk


@pytest.fixture
def chain(folder: Path) -> Iterator[Callable[..., RedoLogDisk]]:
    """Makes a disk of an engine, and opens it."""
    opened: list[RedoLogDisk] = []

    def make(
        engine: str = "redo-se",
        blocks: int = BLOCKS,
        *,
        power: PowerSupply | None = None,
        **shape: Any,
    ) -> RedoLogDisk:
        create(folder, plan(engine, blocks, **{"block_bytes": 512, **shape}), sync=False)
        opened.append(opened_disk(folder, power))
        return opened[-1]

    yield make
    for disk in opened:
        disk.abandon()


def ios(disk: RedoLogDisk, *causes: str) -> int:
    """Return the device reads and writes for some causes."""
    found = work(disk)
    return sum(
        count
        for name, count in found.items()
        if name.split(".")[-1] in causes and name.split(".")[-2] in ("reads", "writes")
    )


def cost_of_reads(disk: RedoLogDisk) -> int:
    """Read every third block. Returns how many device I/Os that took."""
    before = ios(disk, "foreground")
    for lba in range(0, BLOCKS - 1, 3):
        disk.read(lba)
    return ios(disk, "foreground") - before


def deepen(disk: RedoLogDisk, depth: int) -> None:
    """Take snapshots. Each delta has only the last block of the disk, which no test reads."""
    for number in range(depth):
        disk.snapshot(f"s{number}")
        disk.write(BLOCKS - 1, block(number + 2))


@pytest.mark.parametrize("engine", ["redo-se", "redo-vmfs"])
def test_reads_cost_a_look_up_for_each_layer(
    chain: Callable[..., RedoLogDisk], engine: str
) -> None:
    disk = chain(engine, table_cache=0)
    disk.write(0, block(1) * BLOCKS)
    reads = len(range(0, BLOCKS - 1, 3))
    assert cost_of_reads(disk) == reads
    for depth in (1, 2, 3):
        disk.snapshot(f"d{depth}")
        disk.write(BLOCKS - 1, block(depth + 1))
        assert cost_of_reads(disk) == reads * (1 + depth)


def test_with_all_tables_in_memory_reads_cost_as_on_a_flat_disk(
    chain: Callable[..., RedoLogDisk],
) -> None:
    disk = chain("redo-vsan")
    disk.write(0, block(1) * BLOCKS)
    flat = cost_of_reads(disk)
    deepen(disk, 8)
    assert cost_of_reads(disk) == flat
    disk.close()
    disk = opened_disk(disk.folder)
    assert cost_of_reads(disk) == flat
    disk.abandon()


def test_the_first_write_of_a_block_to_a_delta_also_writes_its_entry(
    chain: Callable[..., RedoLogDisk],
) -> None:
    disk = chain()
    disk.snapshot("s")
    disk.write(0, block(1))  # and a grain table
    before = ios(disk, "foreground")
    disk.write(1, block(2))
    assert ios(disk, "foreground") - before == 2
    before = ios(disk, "foreground")
    disk.write(1, block(3))
    assert ios(disk, "foreground") - before == 1


def test_deleting_snapshots_makes_reads_cheap_again(chain: Callable[..., RedoLogDisk]) -> None:
    disk = chain(table_cache=0)
    disk.write(0, block(1) * BLOCKS)
    flat = cost_of_reads(disk)
    deepen(disk, 6)
    deep = cost_of_reads(disk)
    for number in range(6):
        disk.delete(f"s{number}")
    disk.settle()
    assert deep > 6 * flat and cost_of_reads(disk) == flat
    found = counters(disk)
    assert found["layers"] == 1 and found["consolidation.layers"] == 6
    assert ios(disk, "consolidate") > 0


def test_writes_that_race_a_consolidation_are_kept(chain: Callable[..., RedoLogDisk]) -> None:
    disk = chain()
    disk.snapshot("s")
    disk.write(0, block(1) * BLOCKS)
    disk.delete("s")
    content, choose = [1] * BLOCKS, random.Random(1)
    steps = 0
    while disk.background():
        lba, steps = choose.randrange(BLOCKS), steps + 1
        content[lba] = 100 + steps
        disk.write(lba, block(content[lba]))
    assert steps > 8
    assert disk.read(0, BLOCKS) == b"".join(map(block, content))
    assert counters(disk)["layers"] == 1


def test_only_layers_that_no_other_view_needs_are_merged(
    chain: Callable[..., RedoLogDisk],
) -> None:
    disk = chain()
    disk.write(0, block(1))
    disk.snapshot("s1")
    disk.write(0, block(2))
    disk.snapshot("s2")
    disk.revert("s1")
    disk.write(1, block(3))
    disk.delete("s1")  # two layers stand on the base now, and no view ends in it
    disk.settle()
    assert counters(disk)["layers"] == 3
    assert disk.read(0, 2) == block(1) + block(3)
    assert disk.read(0, 2, "s2") == block(2) + bytes(512)
    disk.delete("s2")
    disk.settle()
    assert counters(disk)["layers"] == 1 and disk.read(0, 2) == block(1) + block(3)


@pytest.mark.parametrize("engine", FLAVOURS)
def test_a_power_cut_at_any_write_of_a_consolidation_loses_nothing(
    folder: Path, engine: str
) -> None:
    content = [(lba % 3) + 1 for lba in range(40)]
    for cut in range(1, 200):
        power = PowerSupply()
        shape = plan(engine, 40, block_bytes=512)
        create(folder, shape, sync=False)
        disk = open_disk(folder, sync=False, power=power)
        disk.write(0, block(1) * 40)
        disk.snapshot("s1")
        for lba in range(40):
            if content[lba] > 1:
                disk.write(lba, block(content[lba]))
        disk.snapshot("s2")
        disk.delete("s1")
        power.cut_at(cut)
        try:
            disk.settle()
            ended = True
        except BaseException:
            ended = False
        disk.abandon()
        power.cut_at(None)
        if power.on:
            power.cut()
        power.restore(cut)
        disk = open_disk(folder, sync=False, power=power)
        for view in (None, "s2"):
            assert disk.read(0, 40, view) == b"".join(map(block, content)), cut
        disk.settle()
        assert disk.read(0, 40) == b"".join(map(block, content)), cut
        assert counters(disk)["layers"] == 2
        disk.abandon()
        for file in folder.iterdir():
            file.unlink()
        if ended:
            break
    assert ended and cut > 4


def test_a_chain_that_is_full_refuses_snapshots_and_nothing_else(
    chain: Callable[..., RedoLogDisk],
) -> None:
    disk = chain(layers=4)
    for number in range(2):
        disk.snapshot(f"s{number}")
        disk.write(0, block(number + 1))
    with pytest.raises(NoSpace):
        disk.snapshot("s2")
    disk.revert("s0")
    assert disk.read(0) == bytes(512) and disk.read(0, 1, "s1") == block(1)
    disk.delete("s1")
    disk.snapshot("s2")


def test_a_format_without_unmap_refuses_it(chain: Callable[..., RedoLogDisk]) -> None:
    with pytest.raises(Unsupported):
        chain("redo-vmfs").unmap(0, 1)


def test_a_grain_table_that_leads_out_of_its_layer_is_data_lost(
    chain: Callable[..., RedoLogDisk], folder: Path
) -> None:
    disk = chain()
    disk.snapshot("s")
    disk.write(0, block(1))
    disk.close()
    shape = disk.geometry
    with (folder / "device-0").open("r+b") as device:
        device.seek(shape.layers_base + shape.layer_bytes + shape.directory_sectors * 512 + 512)
        device.write(b"\xff\xff\xff\x7f")
    disk = opened_disk(folder)
    with pytest.raises(DataLost, match="grain table of layer 1"):
        disk.read(0)
    disk.abandon()


def test_one_damaged_descriptor_is_tolerated(
    chain: Callable[..., RedoLogDisk], folder: Path
) -> None:
    disk = chain()
    disk.write(0, block(1))
    disk.snapshot("s")
    newest = disk.tree.descriptor.sequence
    disk.close()
    for copy in (newest - 1, newest):
        with (folder / "device-0").open("r+b") as device:
            device.seek(8192 + copy % 2 * 65536 + 20)
            device.write(b"\xff" * 8)
        if copy != newest:
            disk = opened_disk(folder)
            assert disk.snapshots() == ["s"] and disk.read(0) == block(1)
            disk.abandon()
    with pytest.raises(DataLost, match="descriptor"):
        open_disk(folder, sync=False)


@pytest.mark.parametrize("seed", [2, 4])
def test_what_power_cuts_leave_unused_is_used_again(folder: Path, seed: int) -> None:
    """A power cut may keep an entry and lose those before it: a layer has room for every block."""
    choose, data = random.Random(seed), bytes(1024)
    create(folder, plan("redo-vmfs", 200, block_bytes=1024), sync=False)
    power = PowerSupply()
    disk = open_disk(folder, sync=False, power=power)
    disk.snapshot("s")
    for _ in range(40):
        power.cut_at(2 + choose.randrange(12))
        with contextlib.suppress(PowerCut):
            disk.write(choose.randrange(100), data * 100)
        if power.on:
            power.cut()
        disk.abandon()
        power.restore(choose.randrange(256))
        power.cut_at(None)
        disk = open_disk(folder, sync=False, power=power)
    for lba in range(200):
        disk.write(lba, b"x" * 1024)
    assert disk.read(0, 200) == b"x" * 1024 * 200
    disk.abandon()


def test_a_redo_log_in_the_place_of_another_has_none_of_its_blocks(
    chain: Callable[..., RedoLogDisk],
) -> None:
    disk = chain(layers=3)
    disk.snapshot("s")
    for _ in range(4):  # each delta takes the place of the one that the revert before gave up
        disk.write(200, block(1))
        disk.revert("s")
        disk.write(5, block(2))  # in a grain table where the other one's was, in another sector
        assert disk.read(200) == bytes(512) and disk.read(5) == block(2)
