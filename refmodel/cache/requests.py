"""The requests of a disk behind its read cache, as processes.

The cache holds no block that a change in flight touches. So a read of such a block goes to the
disk, whose order is the order of all requests. A change takes its blocks out of the cache when it
begins. What was read is put into the cache only if no change of its blocks was in flight meanwhile,
and what was written only if no other was.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns

from refmodel.cache.read_cache import ReadCache
from refmodel.core.operation_stats import OperationStats
from refmodel.engine.disk import Disk
from refmodel.runtime.effects import Process


@dataclass(eq=False, slots=True)
class UnderWay:
    """A read or a change in flight: its blocks, and whether no other change has touched them."""

    blocks: range
    changes: bool
    alone: bool

    def meets(self, blocks: range) -> bool:
        """Return whether it is about any of these blocks."""
        return self.blocks.start < blocks.stop and blocks.start < self.blocks.stop


class CachedRequests:
    """The requests of a disk behind its cache. `operations` counts them."""

    def __init__(self, disk: Disk, cache: ReadCache, operations: OperationStats) -> None:
        assert disk.requests is not None
        self._disk = disk
        self._behind = disk.requests
        self._cache = cache
        self._operations = operations
        self._under_way: list[UnderWay] = []

    def write(self, lba: int, data: bytes) -> Process[None]:
        """Write whole blocks from `lba` on."""
        started, count = perf_counter_ns(), len(data) // self._disk.geometry.block_bytes
        with self._change(range(lba, lba + count)) as change:
            yield from self._behind.write(lba, data)
            if change.alone:
                self._cache.fill(lba, data)
        self._operations.add("write", started, [count])

    def write_many(self, writes: list[tuple[int, bytes]]) -> Process[None]:
        """Write several extents, each an LBA and whole blocks; none of them is held."""
        started, size = perf_counter_ns(), self._disk.geometry.block_bytes
        first = min((lba for lba, _ in writes), default=0)
        stop = max((lba + len(data) // size for lba, data in writes), default=0)
        with self._change(range(first, stop)):
            yield from self._behind.write_many(writes)
        for _, data in writes:
            self._operations.add("write", started, [len(data) // size])

    def unmap(self, lba: int, count: int) -> Process[None]:
        """Let `count` blocks from `lba` on read as zeroes."""
        started = perf_counter_ns()
        with self._change(range(lba, lba + count)):
            yield from self._behind.unmap(lba, count)
        self._operations.add("unmap", started, [count])

    def read(self, lba: int, count: int = 1, view: str | None = None) -> Process[bytes]:
        """Return `count` blocks from `lba` on: of live from the cache, if it holds all of them."""
        started, blocks = perf_counter_ns(), range(lba, lba + count)
        of_live = view is None and self._disk.usable
        data = self._cache.held(blocks) if of_live else None
        if data is None:
            quiet = not any([other.changes and other.meets(blocks) for other in self._under_way])
            reading = UnderWay(blocks, changes=False, alone=quiet and view is None)
            self._under_way.append(reading)
            try:
                data = yield from self._behind.read(lba, count, view)
            finally:
                self._under_way.remove(reading)
            if reading.alone:
                self._cache.fill(lba, data)
        self._operations.add("read", started, [count])
        return data

    def snapshot(self, name: str) -> Process[None]:
        """Take a snapshot of live."""
        started = perf_counter_ns()
        yield from self._behind.snapshot(name)
        self._operations.add("snapshot", started)

    def delete(self, name: str) -> Process[None]:
        """Delete a snapshot."""
        started = perf_counter_ns()
        yield from self._behind.delete(name)
        self._operations.add("delete", started)

    def revert(self, name: str) -> Process[None]:
        """Make live what the snapshot is: a change of all blocks."""
        started = perf_counter_ns()
        with self._change(range(self._disk.geometry.blocks)):
            yield from self._behind.revert(name)
        self._operations.add("revert", started)

    def flush(self) -> Process[None]:
        """Make everything durable that was called before."""
        started = perf_counter_ns()
        yield from self._behind.flush()
        self._operations.add("flush", started)

    def touch(self, blocks: range) -> None:
        """Note that a change of blocks begins: what is under way there is not alone any more."""
        for other in self._under_way:
            if other.meets(blocks):
                other.alone = False

    @contextmanager
    def _change(self, blocks: range) -> Iterator[UnderWay]:
        """Keep blocks out of the cache while they change."""
        alone = not any([other.changes and other.meets(blocks) for other in self._under_way])
        self.touch(blocks)
        self._cache.forget(blocks)
        change = UnderWay(blocks, changes=True, alone=alone)
        self._under_way.append(change)
        try:
            yield change
        finally:
            self._under_way.remove(change)
