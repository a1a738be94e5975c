"""Cleaning in steps: what a step does is bounded, and operations between steps are safe."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.log_structured.audit import audit
from refmodel.log_structured.chunks.chunk_store import MOST_DROPPED
from refmodel.log_structured.chunks.streams import Stream
from refmodel.log_structured.cleaning import LEAST_REMOVED, Phase
from refmodel.log_structured.geometry import MANY_SEGMENTS
from refmodel.media.power_supply import PowerSupply
from support.disks import block


@pytest.mark.parametrize(("live", "most"), [(0.5, 32), (0.8, 64)])
def test_in_the_steady_state_no_write_does_more_than_its_share(
    folder: Path, live: float, most: int
) -> None:
    """With snapshots that come and go, too. `most` is in chunks moved, and in nodes written."""
    segments, size = 128, 32
    blocks = int(live * (segments - 9) * size)
    shape = plan(blocks, segments=segments, segment_blocks=size, block_bytes=512)
    create(folder, shape, sync=False)
    disk = open_disk(folder, sync=False)
    cleaning, chunks, choose = disk.cleaning, disk.state.chunks, random.Random(1)
    for lba in range(blocks):
        disk.write(lba, block(lba))
    for tag in range(2 * blocks):
        disk.write(choose.randrange(blocks), block(tag))
    forced, moved, steps = cleaning.forced, chunks.moved, cleaning.steps
    cleaning.most_moved = disk.checkpoints.most_done = 0
    for tag in range(2 * blocks):
        disk.write(choose.randrange(blocks), block(tag))
        if tag % 500 == 0:
            disk.snapshot("s")
        if tag % 500 == 40:
            disk.delete("s")
    assert chunks.moved - moved > blocks / 4 and cleaning.steps - steps > blocks / 2
    assert cleaning.forced == forced
    assert 0 < cleaning.most_moved <= size and disk.checkpoints.most_done <= most
    assert audit(disk.state) == []
    disk.abandon()


def test_no_write_does_two_large_parts_of_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a checkpoint is frozen, few chunks move: writes before it did that.

    Where a victim is chosen, few dropped chunks are removed from the maps. All segments are full.
    """
    count, size = 128, 32
    blocks = int(0.8 * (count - 9) * size)
    shape = plan(blocks, segments=count, segment_blocks=size, block_bytes=512)
    create(folder, shape, sync=False)
    disk = open_disk(folder, sync=False)
    chunks, segments, choose = disk.state.chunks, disk.state.segments, random.Random(1)
    done: Counter[str] = Counter()

    def counted(part: Any, method: str, work: Callable[..., int]) -> None:
        plain = getattr(part, method)

        def call(*arguments: Any) -> Any:
            result = plain(*arguments)
            done[method] += work(*arguments)
            return result

        monkeypatch.setattr(part, method, call)

    for lba in range(blocks):
        disk.write(lba, block(lba))
    for tag in range(2 * blocks):
        disk.write(choose.randrange(blocks), block(tag))
    counted(chunks, "move", len)
    counted(chunks.middle, "remove_many", len)
    counted(segments, "written_to", lambda segment: 1)
    counted(disk.checkpoints, "freeze", lambda: 1)
    frozen = chosen = 0
    empty = segments.fillings * size - chunks.destaged - chunks.moved
    for tag in range(2 * blocks):
        filled, made = segments.fillings, disk.state.pages.created
        done.clear()
        disk.write(choose.randrange(blocks), block(tag))
        filled, made = segments.fillings - filled, disk.state.pages.created - made
        assert filled <= 2 and made <= 2 * size, "the nodes of two segments"
        assert done["move"] <= size
        if done["freeze"]:
            frozen += 1
            assert filled <= 2 and done["move"] <= 2
        if done["written_to"]:
            chosen += 1
            assert done["remove_many"] <= 2 * LEAST_REMOVED
    assert frozen > 50 and chosen > 150 and disk.cleaning.forced == 0
    assert segments.fillings * size - chunks.destaged - chunks.moved - empty <= size
    disk.abandon()


def test_what_lives_short_is_destaged_first(make: Callable[..., LogStructuredDisk]) -> None:
    """Where chunks of several streams share a segment."""
    chunks = make(32, segments=MANY_SEGMENTS, segment_blocks=8).state.chunks
    for mba, stream in enumerate((Stream.OLD, Stream.LONG, Stream.MOVED_SHORT)):
        chunks.moving[mba] = b""
        chunks.queues[stream].add({mba: 1}, 1)
    assert [mba for mba, _ in chunks.lengths(chunks.moving)] == [2, 1, 0]
    assert not [*chunks.lengths(chunks.bank)]


def test_no_write_removes_many_dropped_chunks(folder: Path) -> None:
    """Writes at random drop chunks, a deletion drops thousands: they leave the maps in steps."""
    blocks, most, dropped = 1 << 14, 0, 0
    create(folder, plan(blocks, block_bytes=512), sync=False)
    disk = open_disk(folder, sync=False)
    chunks, choose = disk.state.chunks, random.Random(1)
    for lba in range(0, blocks, 1024):
        disk.write(lba, bytes(1024 * 512))
    disk.snapshot("s")
    for tag in range(14000):
        if tag == 4000:
            disk.delete("s")
        before = len(chunks.dropped) + len(chunks.bank)
        disk.write(choose.randrange(blocks), block(tag))
        if tag > 8000:
            most = max(most, before - len(chunks.dropped) - len(chunks.bank))
        dropped = max(dropped, len(chunks.dropped))
    assert dropped >= MOST_DROPPED and disk.state.views.deleted == []
    assert most <= 10 * disk.checkpoints.pace.least
    assert audit(disk.state) == []
    disk.abandon()


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_between_the_steps_survives_a_power_cut(
    make: Callable[..., LogStructuredDisk], folder: Path, seed: int
) -> None:
    """The power fails where some of a victim has moved, or its checkpoint is being written."""
    power, choose = PowerSupply(), random.Random(seed)
    disk = make(24, power=power, segments=14, segment_blocks=4)
    content = [0] * 24
    cuts, in_parts = 0, 0
    for tag in range(1, 1500):
        lba = choose.randrange(24)
        disk.write(lba, block(tag))
        content[lba] = tag
        in_parts += bool(disk.state.chunks.leaving)
        if disk.cleaning.phase is not Phase.IDLE and choose.random() < 0.02:
            assert audit(disk.state) == []
            power.cut()
            disk.abandon()
            power.restore(tag)
            disk = open_disk(folder, sync=False, power=power)
            cuts += 1
            assert disk.read(0, 24) == b"".join(
                block(tag) if tag else bytes(512) for tag in content
            )
    assert cuts and in_parts and audit(disk.state) == []
    disk.abandon()


def test_what_dies_between_two_steps_does_not_move(make: Callable[..., LogStructuredDisk]) -> None:
    disk = make(32, segments=40, segment_blocks=8)
    content = [*range(1, 33)]
    for lba in range(32):
        disk.write(lba, block(content[lba]))
    disk.write(0, block(content[0]))
    chunks = disk.state.chunks
    assert disk.cleaner.move(1) and len(chunks.moving) == 1
    dies = [*chunks.leaving][-1]
    left = len(chunks.leaving)
    lba = next(lba for lba, mba in disk.state.views.live.map.items() if mba == dies)
    content[lba] = 100
    disk.write(lba, block(100))
    assert dies not in chunks.leaving and len(chunks.leaving) == left - 1
    assert disk.cleaner.move(8) and not chunks.leaving and dies not in chunks.moving
    disk.checkpoint()
    assert audit(disk.state) == []
    assert disk.read(0, 32) == b"".join(map(block, content))
