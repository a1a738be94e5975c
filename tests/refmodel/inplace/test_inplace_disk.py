"""In-place arrays: device I/Os per small write, parity that fits the data, no write hole."""

import random
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refmodel.array import parity
from refmodel.core.errors import BadRequest, NoSpace, PowerCut, Unsupported
from refmodel.inplace.check import check
from refmodel.inplace.disk import InPlaceDisk
from refmodel.media.power_supply import PowerSupply
from refmodel.observe.counters import work
from refmodel.registry import create, open_disk, plan
from support.disks import block

BLOCKS = 64
SMALL_WRITE = {"in-place-raid5": 4, "in-place-raid6": 6}


def opened_disk(folder: Path, power: PowerSupply | None = None) -> InPlaceDisk:
    disk = open_disk(folder, sync=False, power=power)
    assert isinstance(disk, InPlaceDisk)
    return disk


@pytest.fixture
def array(folder: Path) -> Iterator[Callable[..., InPlaceDisk]]:
    """Makes a disk of an engine, and opens it."""
    opened: list[InPlaceDisk] = []

    def make(engine: str = "in-place-raid5", **shape: Any) -> InPlaceDisk:
        create(
            folder,
            plan(engine, BLOCKS, **{"block_bytes": 512, "strip_blocks": 4, **shape}),
            sync=False,
        )
        opened.append(opened_disk(folder))
        return opened[-1]

    yield make
    for disk in opened:
        disk.abandon()


def done(disk: InPlaceDisk, before: dict[str, int], what: str) -> int:
    """Return how much a counter has grown."""
    return work(disk).get(what, 0) - before.get(what, 0)


def parity_is_right(disk: InPlaceDisk) -> bool:
    """Return whether every stripe on the devices has the parity of its data."""
    shape, leg = disk.geometry, disk.array.capacity
    for stripe in range(shape.stripes):
        pieces = []
        for piece in range(shape.members):
            raw = leg.read_component(
                leg.components[(piece + stripe) % shape.members],
                stripe * shape.piece_bytes,
                shape.piece_bytes,
                "scrub",
            )
            assert raw is not None
            pieces.append(np.frombuffer(raw, np.uint8))
        for got, wanted in zip(
            pieces[shape.k :], parity.parity(pieces[: shape.k], shape.m), strict=True
        ):
            if (got != wanted).any():
                return False
    return True


@pytest.mark.parametrize("engine", SMALL_WRITE)
def test_a_small_write_is_a_read_modify_write(
    array: Callable[..., InPlaceDisk], engine: str
) -> None:
    disk = array(engine)
    before = work(disk)
    for lba in range(0, BLOCKS, 5):
        disk.write(lba, block(lba + 1))
    writes, half = len(range(0, BLOCKS, 5)), SMALL_WRITE[engine] // 2
    assert done(disk, before, "device.capacity.reads.foreground") == half * writes
    assert done(disk, before, "device.capacity.writes.foreground") == half * writes
    assert done(disk, before, "device.performance.writes.journal") == (half - 1 + 1) * (
        writes + 1
    )  # one more begins a generation
    assert parity_is_right(disk)


def test_a_whole_stripe_is_written_without_reads(array: Callable[..., InPlaceDisk]) -> None:
    disk = array()
    before = work(disk)
    disk.write(16, block(7) * 32)
    assert done(disk, before, "device.capacity.reads.foreground") == 0
    assert done(disk, before, "device.capacity.writes.foreground") == 2 * 5
    assert parity_is_right(disk)


@pytest.mark.parametrize("engine", SMALL_WRITE)
def test_reads_are_right_while_any_tolerated_devices_are_gone(
    array: Callable[..., InPlaceDisk], engine: str
) -> None:
    choose, content = random.Random(2), [0] * BLOCKS
    disk = array(engine)
    for tag, gone in enumerate(combinations(range(disk.geometry.members), disk.geometry.m), 1):
        for device in gone:
            disk.fail(device)
        for _ in range(12):
            lba, count = choose.randrange(BLOCKS - 9), choose.choice((1, 1, 3, 9))
            disk.write(lba, block(tag) * count)
            content[lba : lba + count] = [tag] * count
        wanted = b"".join(block(tag) if tag else bytes(512) for tag in content)
        assert disk.read(0, BLOCKS) == wanted
        for device in gone:
            disk.return_(device) if choose.random() < 0.5 else disk.replace(device)
        disk.write(0, block(tag))
        content[0] = tag
        disk.settle()
        assert disk.array.redundant and parity_is_right(disk)
    for device in gone:
        disk.fail(device)
    assert disk.read(0, BLOCKS) == b"".join(block(tag) if tag else bytes(512) for tag in content)


def test_writes_in_flight_to_one_stripe_leave_its_parity_right(
    array: Callable[..., InPlaceDisk],
) -> None:
    disk = array()
    disk.write_many([(lba, block(lba + 1)) for lba in range(BLOCKS)] + [(3, block(99))])
    assert disk.read(3) == block(99) and disk.read(4) == block(5)
    assert parity_is_right(disk)


def test_a_cut_at_any_write_leaves_no_write_hole(folder: Path) -> None:
    """The write happens whole or not at all, and the other blocks stay, when a device is lost."""
    for cut in range(1, 12):
        for seed in range(4):
            power = PowerSupply()
            create(
                folder,
                plan("in-place-raid5", 16, block_bytes=512, layout="raid5-2+1", strip_blocks=2),
                sync=False,
            )
            disk = opened_disk(folder, power)
            disk.write(0, b"".join(block(lba + 1) for lba in range(16)))
            power.cut_at(cut)
            with pytest.raises(PowerCut):
                disk.write(3, block(50) * 3)
                disk.write(3, block(50) * 3)
                disk.write(3, block(50) * 3)
            disk.abandon()
            power.restore(seed)
            disk = opened_disk(folder, power)
            old = [lba + 1 for lba in range(16)]
            new = old[:3] + [50] * 3 + old[6:]
            whole = [b"".join(map(block, tags)) for tags in (old, new)]
            assert parity_is_right(disk)
            disk.fail(cut % 3)
            assert disk.read(0, 16) in whole, (cut, seed)
            disk.abandon()
            for file in folder.iterdir():
                file.unlink()


def test_every_block_is_mapped(array: Callable[..., InPlaceDisk]) -> None:
    assert array().mapped(3, 4) == [3, 4, 5, 6]


def test_a_journal_of_any_size_ends_before_the_stripes(array: Callable[..., InPlaceDisk]) -> None:
    shape = array(log_bytes=(1 << 14) + 512).geometry
    assert shape.log_base + shape.log_bytes <= shape.performance_bytes


def test_a_full_journal_is_emptied(array: Callable[..., InPlaceDisk]) -> None:
    disk = array(log_bytes=8192)
    for lba in range(0, BLOCKS, 2):
        disk.write(lba, block(lba + 1))
    disk.write_many([(lba, block(lba + 1)) for lba in range(1, BLOCKS, 2)])
    disk.abandon()
    disk = opened_disk(disk.folder)
    assert disk.read(0, BLOCKS) == b"".join(block(lba + 1) for lba in range(BLOCKS))
    with pytest.raises(NoSpace):
        disk.write(0, block(1) * 16)
    assert disk.read(0) == block(1)
    disk.abandon()


def test_snapshots_and_unmap_are_refused(array: Callable[..., InPlaceDisk]) -> None:
    disk = array()
    requests: tuple[Callable[[], object], ...] = (
        lambda: disk.snapshot("s"),
        lambda: disk.revert("s"),
        lambda: disk.delete("s"),
        lambda: disk.unmap(0, 1),
    )
    for refused in requests:
        with pytest.raises(Unsupported):
            refused()
    with pytest.raises(BadRequest, match="layouts raid5-4"):
        plan("in-place-raid5", 8, layout="raid6-4+2")


@pytest.mark.parametrize("engine", SMALL_WRITE)
@pytest.mark.parametrize("strip_blocks", [1, 4, 16])
@pytest.mark.parametrize("log_bytes", [6144, 6656, (1 << 14) + 512])
def test_the_longest_write_fits_the_journal_wherever_it_is(
    array: Callable[..., InPlaceDisk], engine: str, strip_blocks: int, log_bytes: int
) -> None:
    disk = array(engine, strip_blocks=strip_blocks, log_bytes=log_bytes)
    count = min(BLOCKS, disk.geometry.longest_write // 512)
    for lba in range(BLOCKS - count + 1):
        disk.write(lba, block(lba + 1) * count)


@pytest.mark.parametrize("engine", SMALL_WRITE)
def test_the_check_finds_parity_that_does_not_fit_and_mends_it(
    array: Callable[..., InPlaceDisk], engine: str
) -> None:
    disk = array(engine)
    disk.write(3, b"x" * 1024)
    assert check(disk)[0] == []
    leg = disk.array.capacity
    leg.write_component(leg.components[-1], 8, b"z", "foreground")
    assert check(disk)[0] == ["stripe 0: its parity does not fit its data"]
    assert check(disk)[0] == []
    leg.write_component(leg.components[-1], 8, b"z", "foreground")
    disk.fail(0)
    assert check(disk)[0] == []  # there is nothing to compare
