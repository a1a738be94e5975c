"""A disk behind its read cache: the actions of specs/CachedDisk.tla.

Reads of the live disk are answered from the cache where it holds the blocks. What is read from or
written to the disk is put into the cache. Snapshots are read from the disk. A change takes its
blocks out of the cache, then the disk performs it, and then what was written is put into the cache.
So the cache never holds data that the disk does not have, however the change ends.
"""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns

from refmodel.array.component import Meter
from refmodel.cache.read_cache import ReadCache
from refmodel.cache.requests import CachedRequests
from refmodel.cache.settings import CacheSettings
from refmodel.core.operation_stats import OperationStats
from refmodel.engine.disk import Disk
from refmodel.engine.forwarding_disk import ForwardingDisk

LEG = "cache"


class CachedDisk(ForwardingDisk):
    """A disk with a read cache. `disk` is the disk behind it, `folder` has the cache's settings."""

    def __init__(self, disk: Disk, folder: Path, settings: CacheSettings) -> None:
        super().__init__(disk)
        self.operations = OperationStats()  # disk.operations has what reached the disk
        self.cache = ReadCache(disk.geometry, folder, settings)
        self.requests = CachedRequests(disk, self.cache, self.operations) if disk.requests else None

    @property
    def meters(self) -> dict[tuple[str, int], Meter]:
        """Device I/Os and bytes, by leg and device; the leg "cache" is the cache's own device."""
        return {**self.disk.meters, (LEG, 0): self.cache.meter}

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises what the disk raises."""
        started, count = perf_counter_ns(), len(data) // self.geometry.block_bytes
        self.cache.forget(range(lba, lba + count))
        self.disk.write(lba, data)
        self.cache.fill(lba, data)
        self.operations.add("write", started, [count])

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do writes that are in flight together, each (LBA, whole blocks)."""
        started, size = perf_counter_ns(), self.geometry.block_bytes
        for lba, data in writes:
            self.cache.forget(range(lba, lba + len(data) // size))
        self.disk.write_many(writes)
        for lba, data in writes:
            self.cache.fill(lba, data)
            self.operations.add("write", started, [len(data) // size])

    def unmap(self, lba: int, count: int) -> None:
        """Make `count` blocks from `lba` on read as zeroes. Raises what the disk raises."""
        started = perf_counter_ns()
        self.cache.forget(range(lba, lba + count))
        self.disk.unmap(lba, count)
        self.operations.add("unmap", started, [count])

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on. Raises what the disk raises."""
        started = perf_counter_ns()
        in_range = 0 <= lba < lba + count <= self.geometry.blocks
        if view is not None or not self.disk.usable or not in_range:
            data = self.disk.read(lba, count, view)  # it refuses what has to be refused
        else:
            data = self.cache.read(lba, count, self.disk.read)
        self.operations.add("read", started, [count])
        return data

    def snapshot(self, name: str) -> None:
        """Take a snapshot. Raises what the disk raises."""
        self._timed("snapshot", lambda: self.disk.snapshot(name))

    def delete(self, name: str) -> None:
        """Delete a snapshot. Raises what the disk raises."""
        self._timed("delete", lambda: self.disk.delete(name))

    def revert(self, name: str) -> None:
        """Make the live disk a copy of a snapshot. The cache is empty then: it may be stale.

        Raises what the disk raises.
        """
        self.cache.empty()
        self._timed("revert", lambda: self.disk.revert(name))

    def flush(self) -> None:
        """Make every acknowledged operation durable."""
        self._timed("flush", self.disk.flush)

    def close(self) -> None:
        """Flush, close the disk, and let go of the cache."""
        self.disk.close()
        self.cache.close()

    def abandon(self) -> None:
        """Close the disk as it is, without a flush, and let go of the cache."""
        self.disk.abandon()
        self.cache.close()

    def _timed(self, name: str, work: Callable[[], None]) -> None:
        started = perf_counter_ns()
        work()
        self.operations.add(name, started)


def behind_cache(disk: Disk) -> Disk:
    """Return the disk behind a read cache; the disk itself if it has none."""
    return disk.disk if isinstance(disk, CachedDisk) else disk
