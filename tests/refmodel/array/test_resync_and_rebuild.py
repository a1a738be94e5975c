"""Devices that return or are replaced: what is copied to them, how fast, and from when on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refmodel import registry
from refmodel.array.layout import LAYOUTS
from refmodel.core.errors import BadRequest
from refmodel.engine.array_disk import ArrayDisk
from refmodel.log_structured.disk import put_back
from refmodel.log_structured.scrub import scrub
from refmodel.observe.counters import counters
from support.array_disks import BLOCKS, TrackedDisk
from support.disks import block


@pytest.mark.parametrize("layout", LAYOUTS)
def test_resync_copies_exactly_the_live_segments_that_were_missed(
    tracked: Callable[..., TrackedDisk], layout: str
) -> None:
    one = tracked(layout)
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(1)
    one.fill()  # the first half of this is dead by the time that the device is back
    one.disk.unmap(0, 32)
    one.content[:32] = [0] * 32
    one.disk.checkpoint()
    missed = [
        s
        for s, usage in one.disk.state.segments.sealed.items()
        if usage.filled > one.disk.array.members[1].since
    ]
    one.disk.return_(1)
    assert one.states()[1] == "stale"
    one.disk.settle()
    assert one.states()[1] == "active" and one.is_right()
    piece = one.disk.geometry.segment_bytes // one.disk.geometry.k
    assert len(missed) == 4 and one.bytes("resync") == 4 * piece
    one.disk.fail(0)
    assert one.is_right()


def test_a_device_that_missed_nothing_becomes_active_without_copies(
    tracked: Callable[..., TrackedDisk],
) -> None:
    one = tracked("raid5-2+1")
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(2)
    one.disk.return_(2)
    one.disk.settle()
    assert one.states() == ["active"] * 3 and one.bytes("resync") == 0


def test_a_device_that_leaves_while_it_becomes_active_is_not_called_active(
    tracked: Callable[..., TrackedDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves while the record that calls it active is written."""
    one = tracked("raid5-2+1")
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(2)
    one.disk.return_(2)
    array, save = one.disk.array, one.disk.array.roster.save
    told: list[dict[str, Any]] = []
    array.events.record = told

    def save_and_leave() -> None:
        if one.states()[2] == "active":
            array.fail(2, "absent")
        save()

    monkeypatch.setattr(array.roster, "save", save_and_leave)
    one.disk.settle()
    of_it = [event["event"] for event in told if event.get("device") == 2]
    assert of_it[-1] == "fail" and "active" not in of_it and one.states()[2] == "absent"
    monkeypatch.setattr(array.roster, "save", save)
    one.disk.return_(2)
    one.disk.settle()
    assert one.states()[2] == "active" and one.is_right()


def test_a_device_that_leaves_again_before_it_is_active_misses_what_a_checkpoint_covers(
    tracked: Callable[..., TrackedDisk],
) -> None:
    one = tracked("raid5-2+1")
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(2)
    one.disk.return_(2)  # stale, and it lacks nothing so far
    assert one.states()[2] == "stale"
    one.disk.fail(2)
    one.fill()
    one.disk.checkpoint()
    one.disk.return_(2)
    one.disk.settle()
    assert one.bytes("resync") > 0 and scrub(one.disk).clean
    one.disk.fail(0)
    assert one.is_right()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_absent_device_is_rebuilt_after_the_timer_and_a_degraded_one_at_once(
    tracked: Callable[..., TrackedDisk], layout: str
) -> None:
    one = tracked(layout, spares=2)
    one.fill()
    spare = one.disk.geometry.members
    one.disk.fail(1)
    one.clock.seconds = 3599
    one.disk.tick()
    one.disk.settle()
    assert one.states()[1] == "absent"
    one.clock.seconds = 3600
    one.disk.tick()
    assert one.states()[1] == "resyncing" and one.disk.array.members[1].index == spare
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right()
    one.disk.fail(0, "degraded")
    assert one.disk.array.members[0].index == spare + 1
    one.write(10)
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right() and scrub(one.disk).clean
    one.disk.return_(1)  # late: it is a spare now
    assert [device for device, _ in one.disk.array.spares] == [1]


def test_a_missing_spare_is_not_used(tracked: Callable[..., TrackedDisk]) -> None:
    one = tracked("raid5-2+1", spares=2)
    one.fill()
    (one.folder / "device-3").unlink()
    one.disk.fail(1, "degraded")
    one.write(5)
    one.disk.settle()
    assert one.disk.array.redundant and one.disk.array.members[1].index == 4 and one.is_right()
    one.disk.fail(0, "degraded")
    one.write(5)
    one.disk.settle()
    assert one.states()[0] == "degraded" and one.is_right()


def test_a_rebuild_takes_its_share_of_device_ios(tracked: Callable[..., TrackedDisk]) -> None:
    one = tracked("raid6-4+2", segment_blocks=4, repair_share=20)
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(5, "degraded")
    one.disk.replace(5)
    before = one.disk.array.performance.ios + one.disk.array.capacity.ios
    writes = 0
    while not one.disk.array.redundant:
        steps = one.disk.resync.steps
        one.write()
        assert one.disk.resync.steps <= steps + 1  # no write pays for what many have earned
        writes += 1
    assert writes > 10 and one.is_right()
    all_ios = one.disk.array.performance.ios + one.disk.array.capacity.ios - before
    found = counters(one.disk)
    repair = sum(
        count
        for name, count in found.items()
        if name.endswith((".reads.rebuild", ".writes.rebuild"))
    )
    assert 0.1 * all_ios < repair <= 0.2 * all_ios + 64


def test_a_rebuild_continues_after_a_crash_where_the_last_checkpoint_was(
    tracked: Callable[..., TrackedDisk],
) -> None:
    one = tracked("raid5-4+1", segment_blocks=4)
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(4, "degraded")
    one.disk.replace(4)
    for _ in range(8):
        assert one.disk.resync.step()
    one.disk.checkpoint()
    left = one.disk.resync.progress()[4]
    one.reopen()
    assert one.states()[4] == "stale" and one.disk.resync.progress()[4] <= left + 1
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right() and scrub(one.disk).repaired.total() == 0


@pytest.mark.parametrize(
    "engine, shape",
    [("log-structured", {"layout": "raid5-2+1", "write_back": True}), ("in-place-raid5", {})],
)
def test_a_write_lost_in_a_crash_does_not_come_back_with_a_returning_member(
    folder: Path, engine: str, shape: dict[str, Any]
) -> None:
    """A crash leaves a write in flight only on a device that is resyncing.

    Nobody reads it there, neither before the device is active nor after.
    """
    registry.create(
        folder, registry.plan(engine, BLOCKS, block_bytes=512, repair_share=1, **shape), sync=False
    )
    disk = registry.open_disk(folder, sync=False)
    assert isinstance(disk, ArrayDisk)
    for lba in range(0, BLOCKS, 4):
        disk.write(lba, block(1))
    disk.checkpoint()
    disk.fail(0)
    disk.replace(0)
    disk.write(0, block(2))
    disk.flush()
    others = {file: file.read_bytes() for file in folder.iterdir() if file.name != "device-0"}
    disk.write(1, block(3))
    assert str(disk.array.members[0].state) == "resyncing"
    disk.abandon()
    for file, content in others.items():
        file.write_bytes(content)
    for _ in range(2):
        disk = registry.open_disk(folder, sync=False)
        assert isinstance(disk, ArrayDisk)
        assert disk.read(0, 2) == block(2) + bytes(512)
        disk.settle()
        assert disk.array.redundant
        disk.abandon()


def test_a_spare_that_left_beyond_tolerance_comes_back_after_a_crash(
    tracked: Callable[..., TrackedDisk],
) -> None:
    """Beyond tolerance nothing is put on record, so the record still says that it is a spare."""
    one = tracked("raid5-2+1", spares=1)
    one.fill()
    one.disk.fail(0)
    one.disk.fail(1)
    one.disk.fail(3)
    one.disk.abandon()
    put_back(one.folder, 0)
    put_back(one.folder, 1)
    one.open()
    one.disk.return_(3)
    assert [device for device, _ in one.disk.array.spares] == [3] and one.is_right()
    with pytest.raises(BadRequest):
        one.disk.return_(3)
    assert (one.folder / "device-3").exists()
    one.disk.settle()
    one.disk.fail(2, "degraded")
    one.disk.settle()
    assert one.states() == ["active"] * 3 and one.is_right()
