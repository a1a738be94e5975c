"""Device I/O per operation is as designed, with and without snapshots."""

from collections.abc import Callable

from refmodel import LogStructuredDisk
from refmodel.observe.counters import counters
from support.disks import block


def foreground_writes(disk: LogStructuredDisk) -> int:
    return int(counters(disk)["device.performance.writes.foreground"])


def test_a_write_is_one_record_on_each_mirror_and_one_flush_of_each(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(64, segment_blocks=128, fanout=0)
    disk.write(0, block(1) * 64)
    before = counters(disk)
    for lba in range(50):
        disk.write(lba, block(2))
    after = counters(disk)
    delta = {
        name: after[name] - before.get(name, 0)
        for name in after
        if after[name] != before.get(name, 0)
    }
    del delta["write_amplification.devices"]
    assert delta == {
        "operations.write": 50,
        "operations.bytes.write": 50 * 512,
        "device.performance.writes.foreground": 100,
        "device.performance.flushes.foreground": 100,
        "device.performance.bytes_written.foreground": 2 * 50 * 1024,
        "log.used_bytes": 50 * 1024,
    }


def test_snapshots_change_no_foreground_io(make: Callable[..., LogStructuredDisk]) -> None:
    disk = make(64, segment_blocks=128, segments=20, log_bytes=1 << 20, pages=4000)
    disk.write(0, block(1) * 64)
    costs = []
    for number in range(12):
        before = foreground_writes(disk)
        for lba in range(64):
            disk.write(lba, block(number + 2))
        costs.append(foreground_writes(disk) - before)
        before = foreground_writes(disk)
        disk.snapshot(f"s{number}")
        assert foreground_writes(disk) - before == 2
    assert set(costs) == {2 * 64}


def test_destage_writes_full_stripes_only(make: Callable[..., LogStructuredDisk]) -> None:
    disk = make(64, segment_blocks=4)
    for lba in range(64):
        disk.write(lba, block(lba + 1))
    found = counters(disk)
    assert found["segments.filled"] == 16
    assert found["device.capacity.writes.destage"] == 2 * 16
    assert found["device.capacity.bytes_written.destage"] == 2 * 64 * 512


def test_live_chunks_are_in_segments_or_in_the_bank(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(32, segments=60)
    for number in range(100):
        disk.write(number % 32, block(number + 1))
        if number % 10 == 0:
            disk.snapshot(f"s{number}")
        state = disk.state
        in_segments = sum(usage.live for usage in state.segments.sealed.values())
        assert state.space_usage.live == in_segments + len(state.chunks.bank)
