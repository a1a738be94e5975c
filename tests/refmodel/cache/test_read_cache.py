"""The read cache: hits and misses, what must not stay in it, resizing and migration."""

import errno
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from refmodel.cache.disk import CachedDisk
from refmodel.cache.read_cache import ReadCache
from refmodel.cache.settings import CacheSettings
from refmodel.core.errors import BadRequest, HostRefused, NoSuchSnapshot, NotADisk, OutOfRange
from refmodel.observe.counters import counters, work
from refmodel.registry import create, open_disk, plan
from refmodel.runtime.scheduler import Schedule
from support.disks import block

BLOCKS = 256


@pytest.fixture
def cached(folder: Path) -> Iterator[Callable[..., CachedDisk]]:
    """Makes a disk with a cache, and opens it."""
    opened: list[CachedDisk] = []

    def make(
        bytes: int = 1 << 16, block_bytes: int = 4096, *, engine: str = "redo-se", size: int = 512
    ) -> CachedDisk:
        shape = plan(engine, BLOCKS, block_bytes=size)
        create(folder, shape, sync=False, cache=CacheSettings.of(shape, bytes, block_bytes))
        disk = open_disk(folder, sync=False)
        assert isinstance(disk, CachedDisk)
        opened.append(disk)
        return disk

    yield make
    for disk in opened:
        disk.abandon()


def backend_reads(disk: CachedDisk) -> int:
    """Return the device reads of the disk behind the cache."""
    return sum(
        count
        for name, count in work(disk).items()
        if ".reads." in name and not name.startswith("device.cache")
    )


def test_blocks_that_were_read_or_written_are_hits(cached: Callable[..., CachedDisk]) -> None:
    disk = cached()
    disk.write(3, block(1))
    before = backend_reads(disk)
    assert disk.read(3) == block(1)
    disk.read(40, 4)
    missed = backend_reads(disk)
    assert missed > before
    assert disk.read(40, 4) == bytes(4 * 512) and disk.read(41) == bytes(512)
    assert backend_reads(disk) == missed
    found = counters(disk)
    assert found["cache.blocks.hit"] == 1 + 4 + 1 and found["cache.blocks.miss"] == 4
    assert found["cache.hit_rate"] == 0.6
    assert [disk.cache.reads[outcome].count for outcome in ("hit", "miss", "partial")] == [3, 1, 0]
    disk.read(43, 4)
    assert disk.cache.reads["partial"].count == 1


def test_a_full_cache_evicts(cached: Callable[..., CachedDisk]) -> None:
    disk = cached(bytes=2 * 4096)  # two slots of 8 blocks
    disk.read(0, 16)
    assert counters(disk)["cache.evictions"] == 0
    disk.read(16)
    assert counters(disk)["cache.evictions"] == 1
    before = backend_reads(disk)
    disk.read(8, 8)
    assert backend_reads(disk) == before
    disk.read(0)
    assert backend_reads(disk) == before + 1


def test_a_read_whose_fill_evicts_its_own_hit_is_right(cached: Callable[..., CachedDisk]) -> None:
    disk = cached(bytes=4096)
    disk.write(12, block(1))
    assert disk.read(4, 12) == bytes(8 * 512) + block(1) + bytes(3 * 512)


def test_large_cache_blocks_hold_only_what_was_requested(cached: Callable[..., CachedDisk]) -> None:
    disk = cached(bytes=1 << 16, block_bytes=1 << 14)  # 4 slots of 32 blocks
    for lba in range(0, BLOCKS, 32):
        disk.read(lba)
    assert counters(disk)["cache.held_blocks"] == 4 == counters(disk)["cache.used_slots"]


@pytest.mark.parametrize("engine", ["log-structured", "redo-se", "redo-vmfs", "in-place-raid6"])
def test_a_cached_disk_reads_like_the_disk_behind_it(
    cached: Callable[..., CachedDisk], engine: str
) -> None:
    choose, disk = random.Random(3), cached(bytes=1 << 14, engine=engine)
    content = [0] * BLOCKS
    names: dict[str, list[int]] = {}
    can = disk.geometry.capabilities
    for tag in range(1, 400):
        lba, count = choose.randrange(BLOCKS - 9), choose.choice((1, 2, 9))
        roll = choose.random()
        if roll < 0.4:
            disk.write(lba, block(tag) * count)
            content[lba : lba + count] = [tag] * count
        elif roll < 0.45 and "unmap" in can:
            disk.unmap(lba, count)
            content[lba : lba + count] = [0] * count
        elif roll < 0.5 and "snapshot" in can and len(names) < 5:
            disk.snapshot(f"s{tag}")
            names[f"s{tag}"] = list(content)
        elif roll < 0.53 and names:
            name = choose.choice(list(names))
            disk.revert(name)
            content = list(names[name])
        elif roll < 0.54:
            disk.cache.resize(choose.choice((8192, 1 << 15)), choose.choice((4096, 8192)))
        elif roll < 0.56:
            disk.cache.migrate(contents=True)
        else:
            assert disk.read(lba, count) == b"".join(
                block(tag) if tag else bytes(512) for tag in content[lba : lba + count]
            )
    assert counters(disk)["cache.blocks.hit"] > 0


def test_a_revert_empties_the_cache(cached: Callable[..., CachedDisk]) -> None:
    disk = cached()
    disk.write(0, block(1))
    disk.snapshot("s")
    disk.write(0, block(2))
    assert disk.read(0) == block(2)
    disk.revert("s")
    assert counters(disk)["cache.used_slots"] == 0
    assert disk.read(0) == block(1)


@pytest.mark.parametrize("engine", ["log-structured", "redo-se"])
def test_reads_in_flight_together_go_through_the_cache(
    cached: Callable[..., CachedDisk], engine: str
) -> None:
    disk = cached(engine=engine)
    disk.write(0, block(1) * 8)
    disk.snapshot("s")
    disk.write(2, block(2))
    assert disk.read_many([(0, 4), (6, 4), (2, 1)]) == [
        block(1) * 2 + block(2) + block(1),
        block(1) * 2 + bytes(2 * 512),
        block(2),
    ]
    found = counters(disk)
    assert (found["cache.blocks.hit"], found["cache.blocks.miss"]) == (
        4 + 2 + 1,
        2,
    )  # blocks 8 and 9 were never written
    assert disk.read_many([(2, 1), (8, 2)], "s") == [
        block(1),
        bytes(2 * 512),
    ]  # of a snapshot, from the disk
    assert counters(disk)["cache.blocks.hit"] == 7
    disk.revert("s")
    assert disk.read_many([(2, 1), (0, 3)]) == [block(1), block(1) * 3]


def test_reads_in_flight_together_are_refused_like_one_read(
    cached: Callable[..., CachedDisk],
) -> None:
    disk = cached()
    with pytest.raises(OutOfRange):
        disk.read_many([(0, 1), (BLOCKS, 1)])
    with pytest.raises(NoSuchSnapshot):
        disk.read_many([(0, 1)], "none")


def test_resizing_empties_the_cache_and_is_stored(
    cached: Callable[..., CachedDisk], folder: Path
) -> None:
    disk = cached()
    disk.read(0, 32)
    disk.cache.resize(1 << 17, 8192)
    assert counters(disk)["cache.used_slots"] == 0 and counters(disk)["cache.slots"] == 16
    before = backend_reads(disk)
    disk.read(0)
    assert backend_reads(disk) == before + 1
    disk.close()
    assert CacheSettings.load(folder) == CacheSettings(1 << 17, 8192)
    with closing(open_disk(folder, sync=False)) as again:
        assert counters(again)["cache.slots"] == 16 and counters(again)["cache.used_slots"] == 0


@pytest.mark.parametrize("contents", [True, False])
def test_migration_with_and_without_the_contents(
    cached: Callable[..., CachedDisk], contents: bool
) -> None:
    disk = cached()
    for lba in range(32):
        disk.write(lba, block(lba + 1))
    held = counters(disk)["cache.held_blocks"]
    assert disk.cache.migrate(contents=contents) == (4 if contents else 0)
    assert counters(disk)["cache.held_blocks"] == (held if contents else 0)
    before = backend_reads(disk)
    assert disk.read(0, 32) == b"".join(block(lba + 1) for lba in range(32))
    assert (backend_reads(disk) == before) == contents


@pytest.mark.parametrize("move", [ReadCache.move, lambda cache: cache.resize(1 << 17)])
def test_a_host_that_refuses_a_file_changes_nothing(
    cached: Callable[..., CachedDisk],
    monkeypatch: pytest.MonkeyPatch,
    move: Callable[[ReadCache], None],
) -> None:
    disk = cached()
    disk.write(3, block(1))
    before = backend_reads(disk)

    def too_many(**_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tempfile, "mkstemp", too_many)
    with pytest.raises(HostRefused, match="the host refuses the file of a cache"):
        move(disk.cache)
    assert disk.read(3) == block(1) and backend_reads(disk) == before
    monkeypatch.undo()
    move(disk.cache)


def test_settings_that_cannot_be_stored_leave_the_cache_and_no_file_open(
    cached: Callable[..., CachedDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = cached()
    disk.write(3, block(1))
    before, files = backend_reads(disk), len(os.listdir("/proc/self/fd"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(CacheSettings, "save", full)
    with pytest.raises(OSError, match="No space left"):
        disk.cache.resize(1 << 17)
    assert len(os.listdir("/proc/self/fd")) == files
    assert disk.read(3) == block(1) and backend_reads(disk) == before


def test_a_write_during_a_migration_is_not_stale_on_the_other_host(
    cached: Callable[..., CachedDisk],
) -> None:
    disk = cached()
    disk.write(0, block(1) * 32)
    disk.snapshot("s")
    disk.cache.move()
    for slot in range(4):
        disk.cache.copy_slot(slot)
    disk.write(0, block(2))
    disk.unmap(9, 1)
    with pytest.raises(BadRequest):
        disk.cache.resize(1 << 17)
    disk.cache.arrive()
    assert disk.read(0, 32) == block(2) + block(1) * 8 + bytes(512) + block(1) * 22
    disk.cache.move()
    disk.cache.copy_slot(0)
    disk.revert("s")
    disk.cache.arrive()
    assert disk.read(0, 32) == block(1) * 32


def test_writes_in_flight_to_one_block_leave_in_the_cache_what_the_disk_has(
    cached: Callable[..., CachedDisk],
) -> None:
    disk = cached(engine="log-structured")
    assert disk.requests is not None
    choose = random.Random(1)
    for _ in range(200):
        schedule = choose.randrange(8**20)
        disk.scheduler.choose = Schedule(schedule)
        for tag in (1, 2):
            disk.scheduler.start(disk.requests.write(3, block(tag)), lambda *end: None)
        while disk.scheduler.in_flight:
            assert disk.scheduler.step()
        assert disk.read(3) == disk.disk.read(3), oct(schedule)


def test_the_content_is_gone_when_the_disk_is_opened_again(
    cached: Callable[..., CachedDisk], folder: Path
) -> None:
    disk = cached()
    disk.read(0, 32)
    disk.abandon()
    with closing(open_disk(folder, sync=False)) as again:
        assert counters(again)["cache.used_slots"] == 0
    assert sorted(file.name for file in folder.iterdir()) == ["cache.json", "device-0"]


@pytest.mark.parametrize(
    "bytes, block_bytes", [(1 << 16, 2048), (1 << 16, 1 << 21), (1 << 16, 12288), (4096, 8192)]
)
def test_impossible_sizes_are_refused(bytes: int, block_bytes: int) -> None:
    with pytest.raises(BadRequest):
        CacheSettings.of(plan("redo-se", BLOCKS), bytes, block_bytes)


def test_damaged_settings_are_reported(cached: Callable[..., CachedDisk], folder: Path) -> None:
    cached().close()
    (folder / "cache.json").write_text("{")
    with pytest.raises(NotADisk, match="cache.json"):
        open_disk(folder, sync=False)
