"""The durable log: where it ends after a crash, and that old records never count as new ones."""

from pathlib import Path
from typing import Any

import pytest

from refmodel import create, open_disk, plan
from refmodel.array.component import Component
from refmodel.core.errors import DataLost
from refmodel.journal.record import Record, RecordKind, decode, encode, stored_bytes
from refmodel.media.power_supply import PowerSupply
from support.disks import TINY, block

WRITE = Record(RecordKind.WRITE, lba=3, count=2, data=b"x" * 1024, sequence=9, generation=2)
WRITES = Record(
    RecordKind.WRITES,
    count=3,
    sequence=9,
    generation=2,
    writes=[(3, b"x" * 1024), (1 << 40, b"y" * 512)],
)
MANY = Record(RecordKind.WRITES, count=64, writes=[(lba, b"z" * 512) for lba in range(64)])


@pytest.mark.parametrize("record", [WRITE, WRITES, MANY])
def test_a_damaged_record_is_not_decoded(record: Record) -> None:
    raw = encode(record)
    assert len(raw) == record.stored_bytes == stored_bytes(raw) and len(raw) % 512 == 0
    assert decode(raw) == record
    for at in range(0, len(raw), 37):
        torn = bytearray(raw)
        torn[at] ^= 0x80
        assert decode(bytes(torn)) is None


def test_a_record_that_one_mirror_lacks_is_copied_to_it(folder: Path) -> None:
    create(folder, plan(8, **TINY), sync=False)
    disk = open_disk(folder, sync=False)
    start = disk.geometry.performance_base + disk.geometry.log_base
    disk.write(0, block(1))
    disk.abandon()
    device = folder / "device-0"
    data = bytearray(device.read_bytes())
    data[start + 512 : start + 1024] = bytes(512)  # the write's record is torn on one mirror
    device.write_bytes(data)
    disk = open_disk(folder, sync=False)
    assert disk.state.log.remirrored == 1
    assert disk.read(0) == block(1)
    disk.abandon()
    (folder / "device-1").write_bytes(bytes(len(data)))  # the other mirror is lost
    disk = open_disk(folder, sync=False)
    assert disk.read(0) == block(1)
    disk.abandon()


def test_the_log_continues_over_a_torn_tail(folder: Path) -> None:
    """A whole record behind the torn one must not count behind the record that replaces it."""
    create(folder, plan(8, **TINY, write_back=True), sync=False)
    for seed in range(60):
        power = PowerSupply()
        disk = open_disk(folder, sync=False, power=power)
        before = disk.read(0, 8)
        disk.flush()
        for lba in range(4):
            disk.write(lba, block(100 * seed + lba + 1))
        power.cut()
        disk.abandon()
        power.restore(seed)
        disk = open_disk(folder, sync=False, power=power)
        found = disk.read(0, 8)
        kept = [found[at * 512 : at * 512 + 512] == block(100 * seed + at + 1) for at in range(4)]
        assert kept == sorted(kept, reverse=True), "writes survive as a prefix"
        assert all(
            kept[at] or found[at * 512 :][:512] == before[at * 512 :][:512] for at in range(4)
        )
        disk.write(7, block(100 * seed + 9))
        expected = disk.read(0, 8)
        disk.flush()
        power.cut()
        disk.abandon()
        power.restore(seed)
        disk = open_disk(folder, sync=False)
        assert disk.read(0, 8) == expected
        disk.close()


def test_an_acknowledged_record_that_is_damaged_is_data_lost(folder: Path) -> None:
    """A damaged record must not end the log like a record that was in flight."""
    create(folder, plan(8, **TINY), sync=False)
    disk = open_disk(folder, sync=False)
    start = disk.geometry.performance_base + disk.geometry.log_base
    for lba in range(3):  # two units each, behind the record that begins the generation
        disk.write(lba, block(lba + 1))
    disk.abandon()
    whole = {name: (folder / name).read_bytes() for name in ("device-0", "device-1")}

    def damage(number: int, mirrors: int) -> None:
        at = start + 512 + 1024 * number + 700
        for mirror, (name, data) in enumerate(whole.items()):
            damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            (folder / name).write_bytes(damaged if mirror < mirrors else data)

    for number in (0, 1):
        damage(number, 2)
        with pytest.raises(
            DataLost, match=f"record {number + 2} of the durable log is whole on no mirror"
        ):
            open_disk(folder, sync=False)
        damage(number, 1)
        disk = open_disk(folder, sync=False)
        assert disk.read(0, 3) == block(1) + block(2) + block(3)
        disk.abandon()
    damage(2, 2)  # no record behind it says that it was durable
    disk = open_disk(folder, sync=False)
    assert disk.read(0, 3) == block(1) + block(2) + bytes(512)
    disk.abandon()


def test_the_ring_wraps(folder: Path) -> None:
    create(folder, plan(8, **TINY, log_bytes=8192), sync=False)
    for round in range(12):
        disk = open_disk(folder, sync=False)
        for number in range(5):
            disk.write(number, block(10 * round + number + 1) * 2)
        assert disk.state.log.used() <= 8192
        expected = disk.read(0, 8)
        disk.abandon()
        disk = open_disk(folder, sync=False)
        assert disk.read(0, 8) == expected
        disk.abandon()


def test_a_session_that_changes_nothing_writes_nothing(folder: Path) -> None:
    create(folder, plan(8, **TINY), sync=False)
    before = (folder / "device-0").read_bytes()
    disk = open_disk(folder, sync=False)
    disk.read(0, 8)
    disk.close()
    assert (folder / "device-0").read_bytes() == before


def test_a_record_that_only_one_mirror_took_is_replaced(folder: Path) -> None:
    """Resync begins a generation. If that fails, the disk goes on, and the log has no gap."""
    create(folder, plan(8, **TINY), sync=False)
    disk = open_disk(folder, sync=False)
    log, leg = disk.state.log, disk.state.performance
    write = leg.write_component

    def fail_behind_the_first(component: Component, *arguments: Any) -> bool:
        if component is leg.components[0]:
            return write(component, *arguments)
        raise DataLost("too many devices are gone")

    leg.write_component = fail_behind_the_first  # type: ignore[assignment, method-assign]
    with pytest.raises(DataLost):
        disk.guarded(log.begin)
    leg.write_component = write  # type: ignore[method-assign]
    disk.write(0, block(1))
    disk.abandon()
    again = open_disk(folder, sync=False)
    assert again.read(0) == block(1)
    again.abandon()


def test_room_for_a_record_is_kept_on_both_sides_of_the_end_of_the_ring(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(folder, plan(8, **{**TINY, "log_bytes": 5 << 19}), sync=False)
    disk = open_disk(folder, sync=False)
    log = disk.state.log
    kept: list[int] = []
    base = log._base

    def allocate(component: Component, offset: int, length: int) -> None:
        kept.extend(range(offset - base, offset - base + length, 512))

    monkeypatch.setattr(Component, "allocate", allocate)
    log.head = log.size - 1024
    log.allocate(4096)
    assert {log.size - 1024, log.size - 512, 0, 512, 4096} <= {*kept}
    disk.abandon()
