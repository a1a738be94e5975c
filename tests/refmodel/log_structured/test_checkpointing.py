"""Checkpoints in steps: what a step does is bounded, and operations between steps are safe."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.array.layout import PAGE
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.audit import audit
from refmodel.log_structured.checkpointing import Phase
from refmodel.media.power_supply import PowerSupply
from support.disks import block


def test_no_step_does_more_than_its_share(folder: Path) -> None:
    shape = plan(8192, block_bytes=512, segment_blocks=64, log_bytes=1 << 21)
    create(folder, shape, sync=False)
    disk = open_disk(folder, sync=False)
    choose = random.Random(1)
    steps, increments, most = disk.checkpoints, disk.state.increments, 0
    for tag in range(12000):
        before = increments.page_count
        disk.write(choose.randrange(8192), block(tag))
        most = max(most, increments.page_count - before)
    assert disk.state.checkpoint_number >= 4 and steps.forced == 0
    assert 1 < most <= steps.pace.least // 4, "a page of changes is the work of some nodes"
    assert steps.steps > 20 and steps.most_done <= steps.pace.little + 2 * steps.pace.least
    assert audit(disk.state) == []
    disk.abandon()


def test_a_page_that_is_neither_free_nor_in_use_is_found(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(64, segments=200)
    for lba in range(64):
        disk.write(lba, block(lba + 1))
    disk.checkpoint()
    assert audit(disk.state) == []
    disk.state.pages.unused.allocate()
    (problem,) = audit(disk.state)
    assert "1 of" in problem and "neither free nor in use" in problem
    disk.abandon()


@pytest.mark.parametrize("written", [0, 1, 5])
def test_what_comes_between_freeze_and_commit_survives(
    make: Callable[..., LogStructuredDisk], folder: Path, written: int
) -> None:
    power = PowerSupply()
    disk = make(64, power=power, segments=200)
    for lba in range(64):
        disk.write(lba, block(lba + 1))
    disk.checkpoint()
    disk.write(0, block(100))
    disk.checkpoints.freeze(whole=True)
    assert disk.checkpoints.phase is Phase.NODES
    disk.snapshot("s")
    disk.write(0, block(101))
    disk.checkpoints.write(written)
    disk.revert("s")
    disk.unmap(1, 1)
    if written == 5:
        disk.checkpoints.finish()
        disk.write(2, block(102))
    expected = {view: disk.read(0, 64, view) for view in (None, "s")}
    assert audit(disk.state) == []
    power.cut()
    disk.abandon()
    power.restore(7)
    again = open_disk(folder, sync=False)
    assert {view: again.read(0, 64, view) for view in (None, "s")} == expected
    assert expected[None][:512] == block(100) and expected[None][512:1024] == bytes(512)
    assert audit(again.state) == []
    again.abandon()


def test_a_resync_copies_a_node_that_only_the_frozen_checkpoint_needs(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(64, segments=200)
    state = disk.state
    disk.fail(1)
    for lba in range(64):
        disk.write(lba, block(lba + 1))
    disk.checkpoint()
    disk.return_(1)
    disk.checkpoints.freeze(whole=True)
    needed = {page: state.pages.offset(page) for page in state.pages.in_use}
    state.submit(Record(RecordKind.UNMAP, 0, 64))  # alone, without the steps that it earns
    state.log.flush()
    state.log_append()
    state.update_maps()
    assert needed.keys() - state.pages.in_use.keys(), "the maps have given up some of them"
    while disk.resync.progress()[1]:
        disk.resync.step()
    disk.checkpoints.finish()
    assert disk.array.members[1].since >= state.clock.durable, "on record, it has them all"
    leg = state.performance
    for page, offset in needed.items():
        one, other = [leg.read_component(at, offset, PAGE, "") for at in leg.components]
        assert one is not None and one == other, f"page {page}"
