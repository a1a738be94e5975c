"""Requests as processes: what they share, what they wait for, and what they hold meanwhile."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from refmodel import LogStructuredDisk
from refmodel.core.errors import DataLost, SnapshotExists, UnknownOutcome
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.audit import audit
from support.disks import block

Make = Callable[..., LogStructuredDisk]


def together(disk: LogStructuredDisk, *processes: Any) -> list[Any]:
    """Run processes together, first come first served. Return their results, or their errors."""
    found: dict[int, Any] = {}

    def ended(number: int, result: Any, error: BaseException | None) -> None:
        found[number] = error or result

    for number, process in enumerate(processes):
        disk.scheduler.start(process, partial(ended, number))
    while len(found) < len(processes):
        assert disk.scheduler.step()
    return [found[number] for number in range(len(processes))]


def flushes(disk: LogStructuredDisk) -> int:
    return sum(
        meter["foreground"].flushes
        for (leg, _), meter in disk.meters.items()
        if leg == "performance"
    )


def test_writes_in_flight_share_one_flush(make: Make) -> None:
    disk = make(64, fanout=0)
    disk.write(0, block(1))
    mirrors = len(disk.array.performance.components)
    before = flushes(disk)
    together(disk, *(disk.requests.write(lba, block(lba + 10)) for lba in range(6)))
    assert flushes(disk) - before == mirrors
    assert [disk.read(lba)[:1] for lba in range(6)] == [block(lba + 10)[:1] for lba in range(6)]


@pytest.mark.parametrize("pins", [True, False])
def test_a_read_in_flight_keeps_its_segment(make: Make, pins: bool) -> None:
    disk = make(16, segment_blocks=4, segments=14)
    if not pins:
        pin = disk.state.segments.pin
        disk.state.segments.pin = lambda extents: pin([])  # type: ignore[method-assign]
    for lba in range(4):
        disk.write(lba, block(lba + 1))
    disk.checkpoint()
    read = disk.requests.read(0, 4)
    assert next(read).what == "read"
    for tag in range(200):  # every free segment is used again
        disk.write(tag % 16, block(tag + 50))
    assert disk.state.segments.held_by_reads == pins
    if pins:
        assert disk.scheduler.run(read) == b"".join(block(lba + 1) for lba in range(4))
    else:
        with pytest.raises(DataLost):
            disk.scheduler.run(read)
    disk.checkpoint()
    assert not disk.state.segments.held_by_reads and audit(disk.state) == []


def test_a_checkpoint_while_records_are_in_flight_leaves_them_in_the_log(
    make: Make, folder: Any
) -> None:
    disk = make(64, segments=200)
    for lba in range(8):
        disk.write(lba, block(lba + 1))
    waiting = [disk.requests.write(lba, block(90 + lba)) for lba in range(3)]
    for process in waiting:
        assert next(process).what == "applied"
    assert len(disk.state.in_flight) == 3
    disk.checkpoints.run()
    assert disk.state.log.used() > 0
    while disk.state.in_flight:
        assert disk.scheduler.step()
    for process in waiting:
        disk.scheduler.run(process)
    expected = disk.read(0, 8)
    disk.abandon()
    again = LogStructuredDisk.open(folder, sync=False)
    assert again.read(0, 8) == expected and expected[:1] == block(90)[:1]
    assert audit(again.state) == []
    again.abandon()


def test_two_snapshots_of_one_name_in_flight(make: Make) -> None:
    disk = make(16)
    first, second = together(disk, disk.requests.snapshot("a"), disk.requests.snapshot("a"))
    assert first is None and isinstance(second, SnapshotExists)
    assert disk.snapshots() == ["a"]


def test_room_that_writes_in_flight_need_is_not_given_twice(make: Make) -> None:
    disk = make(16, segment_blocks=4, segments=14, log_bytes=1 << 17)
    record = Record(RecordKind.WRITE, 0, 2, data=block(1) * 2)
    waiting = []
    while disk.space.has_room(record):
        waiting.append(disk.requests.write(0, record.data))
        assert next(waiting[-1]).what == "applied"
    assert 4 < 2 * len(waiting) <= disk.geometry.usable_chunks
    while disk.state.in_flight:
        assert disk.scheduler.step()
    for process in waiting:
        disk.scheduler.run(process)
    assert disk.space.has_room(record) and audit(disk.state) == []


def test_an_error_of_the_log_ends_all_that_is_in_flight(make: Make) -> None:
    disk = make(16)

    def fails(cause: str = "foreground") -> None:
        raise DataLost("no mirror is left")

    disk.state.log.flush = fails  # type: ignore[method-assign]
    found = together(disk, *(disk.requests.write(lba, block(1)) for lba in range(3)))
    assert all(isinstance(error, UnknownOutcome) for error in found), found
    assert not disk.usable
