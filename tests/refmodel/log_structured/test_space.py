"""Space: endless overwriting needs bounded space, and a full disk can still free some."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.core.errors import NoSpace
from refmodel.log_structured.audit import audit
from refmodel.log_structured.geometry import with_reserve
from support.disks import block


@pytest.mark.parametrize("segment_blocks", [1, 4, 16])
def test_overwritten_for_ever_with_no_room_to_spare(
    make: Callable[..., LogStructuredDisk], segment_blocks: int
) -> None:
    blocks = 64
    disk = make(
        blocks,
        segment_blocks=segment_blocks,
        segments=with_reserve(blocks // segment_blocks),
        log_bytes=8192,
    )
    choose = random.Random(1)
    content = [0] * blocks
    for tag in range(1, 3000):
        lba = tag - 1 if tag <= blocks else choose.randrange(blocks)
        disk.write(lba, block(tag))
        content[lba] = tag
    assert disk.state.space_usage.live == disk.geometry.usable_chunks == blocks
    assert disk.read(0, blocks) == b"".join(map(block, content))
    assert audit(disk.state) == []


def test_full_of_snapshots_then_freed(make: Callable[..., LogStructuredDisk]) -> None:
    blocks = 32
    disk = make(blocks, segments=4 + 2 * blocks // 4)
    everything = b"".join(map(block, range(1, blocks + 1)))
    disk.write(0, everything)
    disk.snapshot("pinned")
    with pytest.raises(NoSpace, match="held.*by snapshots"):
        for round in range(1, 4):
            disk.write(0, everything)
            disk.snapshot(f"s{round}")
    disk.read(0, blocks)
    disk.unmap(0, 4)
    disk.delete("pinned")
    disk.write(0, everything)
    assert disk.read(0, blocks) == everything
    assert audit(disk.state) == []


def test_a_full_disk_opens_and_frees(make: Callable[..., LogStructuredDisk], folder: Path) -> None:
    disk = make(16, segments=4 + 8, log_bytes=16384)
    names = []
    with pytest.raises(NoSpace):
        for number in range(1000):
            names.append(f"s{number}")
            disk.write(number % 16, block(number + 1))
            disk.snapshot(names[-1])
    disk.close()
    disk = open_disk(folder, sync=False)
    for name in list(disk.state.views.names):
        disk.delete(name)
    disk.settle()
    disk.checkpoint()
    assert disk.state.space_usage.live == len({lba for lba, _ in disk.state.views.live.map.items()})
    assert audit(disk.state) == []
    disk.close()


def test_chunks_that_a_crash_brings_back_take_no_segment(
    make: Callable[..., LogStructuredDisk], folder: Path
) -> None:
    """Reclaim dropped them from the bank; after the crash they are all there again."""
    disk = make(16, segments=16, log_bytes=1 << 20)
    disk.snapshot("s")
    for tag in range(1, 25):
        disk.write(0, block(tag) * 3)
        disk.revert("s")
        disk.settle()
    assert disk.state.checkpoint_number == 1 and disk.state.segments.free_count() > 12
    disk.abandon()
    disk = open_disk(folder, sync=False)
    disk.delete("s")
    for tag in range(1, 10):
        disk.write(0, block(tag) * 16)
    assert disk.read(0, 16) == block(9) * 16
    assert audit(disk.state) == []
    disk.close()


def test_deletion_frees_exactly_what_only_it_held(make: Callable[..., LogStructuredDisk]) -> None:
    disk = make(64)
    disk.write(0, b"".join(map(block, range(1, 65))))
    disk.snapshot("old")
    disk.write(10, block(100) * 5)
    disk.snapshot("new")
    disk.write(12, block(200) * 5)
    live = disk.state.space_usage.live
    disk.delete("new")
    disk.settle()
    # 12, 13 and 14 as `new` had them; 10 and 11 are still live's
    assert live - disk.state.space_usage.live == 3
    disk.delete("old")
    disk.settle()
    assert disk.state.space_usage.live == 64


def test_a_write_larger_than_the_log_goes_straight_to_the_capacity_leg(
    make: Callable[..., LogStructuredDisk], folder: Path
) -> None:
    disk = make(64, log_bytes=8192, segment_blocks=4)
    data = b"".join(block(tag) for tag in range(1, 64))
    disk.write(1, data)
    written = sum(
        meter["foreground"].bytes_written
        for (leg, _), meter in disk.array.meters.items()
        if leg == "performance"
    )
    assert written < len(data)
    disk.abandon()
    disk = open_disk(folder, sync=False)
    assert disk.read(0, 64) == bytes(512) + data
    assert audit(disk.state) == []
    disk.abandon()


def test_a_refusal_says_which_snapshots_hold_how_much(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(16, segments=4 + 6)  # 24 chunks for all views
    for lba in range(16):
        disk.write(lba, block(lba + 1))
    disk.snapshot("old")
    for lba in range(5):
        disk.write(lba, block(100 + lba))
    disk.snapshot("new")
    held = "8 of them by snapshots only (old 5, new 2, 1 shared by several)"
    with pytest.raises(NoSpace, match=re.escape(f"24 of 24 chunks are held, {held}")):
        for lba in (0, 1, 15, 2):
            disk.write(lba, block(200))


def test_a_huge_disk_costs_what_it_holds(tmp_path: Path) -> None:
    """Creation, opening, snapshot and deletion take the device I/Os of a small disk."""
    counts = []
    for name, size in (("small", 1 << 26), ("huge", 1 << 40)):
        create(tmp_path / name, plan(size // 4096, layout="raid6-4+2"), sync=False)
        disk = open_disk(tmp_path / name, sync=False)
        opened = ios(disk)
        disk.write(size // 8192, bytes(4096 * 300))
        disk.snapshot("s")
        snapshot = ios(disk) - opened
        disk.write(size // 8192, bytes(4096 * 300))
        before = ios(disk)
        disk.delete("s")
        counts.append((opened, snapshot, ios(disk) - before))
        disk.abandon()
    assert counts[0] == counts[1]


def ios(disk: LogStructuredDisk) -> int:
    return disk.array.performance.ios + disk.array.capacity.ios


@pytest.mark.parametrize("seed", range(20))
def test_checkpoints_of_a_small_log_leave_a_segment_for_the_cleaner(
    folder: Path, seed: int
) -> None:
    """A checkpoint writes what is in memory to a segment that is hardly filled. One before a write
    and one after it once took the last two."""
    choose = random.Random(seed)
    shape = plan(53, block_bytes=1024, segment_blocks=16, segments=11, log_bytes=12288, fanout=3)
    create(folder, shape, sync=False)
    disk = open_disk(folder, sync=False)
    disk.write(0, bytes(51 * 1024))
    for _ in range(150):
        count = choose.choice((1, 1, 1, 2, 3, 8))
        disk.write(choose.randrange(53 - count), choose.randbytes(count * 1024))
    disk.abandon()
