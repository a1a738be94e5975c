"""Increments: checkpoints that store what has changed in the maps, and no nodes."""

import operator
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.log_structured.audit import audit
from refmodel.log_structured.maps import changes
from refmodel.log_structured.maps.node import MapKind
from refmodel.media.power_supply import PowerSupply
from support.disks import block


@pytest.fixture
def power() -> PowerSupply:
    return PowerSupply()


@pytest.fixture
def disk(make: Callable[..., LogStructuredDisk], power: PowerSupply) -> LogStructuredDisk:
    """Return a disk with 64 blocks, of which a whole checkpoint was just taken."""
    disk = make(64, power=power, segments=200, fanout=4)
    for lba in range(64):
        disk.write(lba, block(lba + 1))
    disk.checkpoint()
    return disk


def increments(disk: LogStructuredDisk) -> int:
    """Take a checkpoint that may be an increment. Returns how many of all were increments."""
    disk.checkpoints.run(whole=False)
    return disk.state.increments.count


FAR = st.sampled_from((0, 1 << 31, 1 << 32, 1 << 63))
NUMBER = st.builds(operator.add, FAR, st.integers(0, 300))


@given(
    logical=st.dictionaries(NUMBER, st.none() | NUMBER, max_size=600),
    middle=st.dictionaries(
        NUMBER, st.none() | st.tuples(NUMBER, st.integers(0, (1 << 32) - 1)), max_size=20
    ),
)
def test_changes_are_read_back(logical: changes.Changes, middle: changes.Changes) -> None:
    """Numbers that are near each other, and far from each other."""
    stored = {MapKind.LOGICAL: logical, MapKind.MIDDLE: middle}
    parts = list(changes.cut(stored))
    assert len(parts) <= changes.pages_for(stored)
    pages = [changes.encode(7 + at, 1, 0, part) for at, part in enumerate(parts)]
    read = changes.decode(pages)
    assert read == {kind: changed for kind, changed in stored.items() if changed}


def test_an_increment_writes_no_node_and_frees_no_page(disk: LogStructuredDisk) -> None:
    pages, before = disk.state.pages, disk.state.increments.count
    for number in range(1, 4):
        disk.write(7, block(100 + number))
        disk.unmap(20 + number, 1)
        written, pending = pages.written, len(pages.pending)
        assert increments(disk) == before + number
        assert pages.written == written + 1 and disk.state.increments.page_count == number
        assert len(pages.pending) >= pending and pages.dirty
        assert disk.state.log.used() == 0 and audit(disk.state) == []
    disk.checkpoint()
    assert not pages.pending and not pages.dirty and not pages.of_changes


@pytest.mark.parametrize("cuts", [1, 2, 3])
def test_what_increments_have_survives_power_cuts(
    disk: LogStructuredDisk, power: PowerSupply, folder: Path, cuts: int
) -> None:
    before = disk.state.increments.count
    disk.write(3, block(100))
    disk.unmap(40, 10)
    assert increments(disk) == before + 1
    disk.write(3, block(101))
    disk.write(45, block(102))
    assert increments(disk) == before + 2
    disk.write(4, block(103))
    disk.unmap(5, 1)
    for cut in range(cuts):
        expected = disk.read(0, 64)
        power.cut()
        disk.abandon()
        power.restore(cut)
        disk = open_disk(folder, power=power, sync=False)
        assert disk.read(0, 64) == expected and audit(disk.state) == []
        assert disk.state.increments.page_count == 2 + cut
        assert increments(disk) == 1, "after recovery the next one may be an increment, too"
        disk.write(6, block(104 + cut))
    assert expected[3 * 512 :][:1024] == block(101) + block(103)
    disk.checkpoint()
    disk.settle()
    assert audit(disk.state) == []
    disk.close()


@pytest.mark.parametrize("change", ["snapshot", "delete", "revert", "fail", "return"])
def test_a_checkpoint_is_whole_when_more_than_live_has_changed(
    disk: LogStructuredDisk, change: str
) -> None:
    disk.snapshot("s")
    if change == "return":
        disk.fail(1)
    disk.checkpoint()
    before = disk.state.increments.count
    disk.write(1, block(100))
    assert increments(disk) == before + (change != "return")
    match change:
        case "snapshot":
            disk.snapshot("t")
        case "delete":
            disk.delete("s")
        case "revert":
            disk.revert("s")
        case "fail":
            disk.fail(1)
        case "return":
            disk.return_(1)
    disk.write(1, block(101))
    before = disk.state.increments.count
    assert increments(disk) == before and not disk.state.increments.page_count
    if change == "fail":
        disk.return_(1)
    disk.settle()
    disk.checkpoint()
    disk.write(1, block(102))
    assert increments(disk) == before + 1, "from then on it may be an increment"


def test_pages_of_changes_are_few(disk: LogStructuredDisk) -> None:
    kept = disk.state.increments
    most, whole = 0, 0
    for number in range(400):
        disk.write(number % 64, block(number))
        before = kept.count
        whole += increments(disk) == before
        most = max(most, kept.page_count)
    assert most == kept.most and 0 < whole < 200
    assert audit(disk.state) == []


def test_changes_that_no_increment_could_take_are_not_kept_in_memory(folder: Path) -> None:
    shape = plan(16384, block_bytes=512, segment_blocks=64, pages=3000)
    create(folder, shape, sync=False)
    disk = open_disk(folder, sync=False)
    disk.checkpoint()
    for lba in range(0, 16384, 1024):
        disk.write(lba, block(lba) * 1024)
    disk.state.views.merge_all()
    tree = disk.state.views.live_map
    assert tree.changes is None and tree.most_changes < 16384
    assert not increments(disk) and tree.changes == {}, "the next checkpoint is whole"
    disk.write(1, block(1))
    assert increments(disk) == 1
    disk.abandon()


def test_a_clean_close_leaves_no_changes_to_put_into_the_maps(
    disk: LogStructuredDisk, folder: Path
) -> None:
    disk.write(1, block(100))
    increments(disk)
    assert disk.state.increments.page_count
    disk.close()
    again = open_disk(folder, sync=False)
    assert not again.state.increments.page_count and not again.state.pages.dirty
    again.close()


def test_a_disk_of_many_nodes_is_what_it_was(folder: Path) -> None:
    """Its nodes do not fit in memory, and nobody knows at first which pages are free."""
    power = PowerSupply()
    shape = plan(16384, block_bytes=512, segment_blocks=64, fanout=16, pages=60_000)
    create(folder, shape, sync=False)
    disk = open_disk(folder, power=power, sync=False)
    choose = random.Random(1)
    for lba in range(0, 16384, 64):
        disk.write(lba, block(lba) * 64)
    disk.checkpoint()
    for tag in range(6):
        disk.write_many([(choose.randrange(16384), block(tag)) for _ in range(60)])
        disk.checkpoints.run(whole=False)
    assert disk.state.increments.page_count >= 6
    expected = disk.read(0, 16384)
    power.cut()
    disk.abandon()
    power.restore(1)
    again = open_disk(folder, power=power, sync=False)
    assert not again.state.survey.is_done
    again.limit_memory(1 << 20)
    assert again.read(0, 16384) == expected
    again.settle()
    assert audit(again.state) == []
    again.abandon()


def test_a_snapshot_that_came_and_went_has_changed_the_views(disk: LogStructuredDisk) -> None:
    """What was written before it was merged into its map, and not into that of live."""
    disk.write(1, block(100))
    before = disk.state.increments.count
    disk.unmap(1, 1)
    disk.snapshot("s")
    disk.delete("s")
    disk.state.reclaimer.reclaim_all()
    assert [view.id for view in disk.state.views.by_id.values()] == [disk.state.views.live.id]
    assert increments(disk) == before, "the next checkpoint is whole"
