"""A disk behind its read cache: the actions of specs/CachedDisk.tla.

Reads of the live disk are answered from the cache where it holds the blocks. What is read from or
written to the disk is put into the cache. Snapshots are read from the disk. A write goes to the
disk first, and the disk acknowledges it, so the cache never holds data that the disk does not have.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns

from refmodel.array.component import Meter
from refmodel.cache.flash import Flash
from refmodel.cache.requests import CachedRequests
from refmodel.cache.settings import CacheSettings
from refmodel.core.errors import BadRequest, NoSpace, OutOfRange, Unsupported
from refmodel.core.histogram import Histogram
from refmodel.core.operation_stats import OperationStats
from refmodel.engine.disk import Disk
from refmodel.engine.forwarding_disk import ForwardingDisk
from refmodel.media.device import FileDevice
from refmodel.media.host import explained

LEG = "cache"
HIT, MISS, PARTIAL = "hit", "miss", "partial"


class CachedDisk(ForwardingDisk):
    """A disk with a read cache. `disk` is the disk behind it, `folder` has the cache's settings."""

    def __init__(self, disk: Disk, folder: Path, settings: CacheSettings) -> None:
        super().__init__(disk)
        self.operations = OperationStats()  # disk.operations has what reached the disk
        self.settings = settings
        self.blocks: Counter[str] = Counter()  # read from the live disk, by hit or miss
        self.reads = {outcome: Histogram() for outcome in (HIT, MISS, PARTIAL)}  # nanoseconds
        self.evicted = 0  # by hosts that the virtual machine has left
        self._folder = folder
        self._meter = Meter()
        # on the host that the virtual machine moves to, while it moves
        self._copy: Flash | None = None
        self.flash = self._cold(settings)
        self.requests = None if disk.requests is None else CachedRequests(self, disk.requests)

    @property
    def meters(self) -> dict[tuple[str, int], Meter]:
        """Device I/Os and bytes, by leg and device; the leg "cache" is the cache's own device."""
        return {**self.disk.meters, (LEG, 0): self._meter}

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises what the disk raises."""
        started = perf_counter_ns()
        self._write_through(lambda: self.disk.write(lba, data))
        self._hold_written(lba, data)
        self.operations.add("write", started, len(data) // self.geometry.block_bytes)

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do writes that are in flight together, each (LBA, whole blocks)."""
        started = perf_counter_ns()
        self._write_through(lambda: self.disk.write_many(writes))
        for lba, data in writes:
            self._hold_written(lba, data)
            self.operations.add("write", started, len(data) // self.geometry.block_bytes)

    def unmap(self, lba: int, count: int) -> None:
        """Make `count` blocks from `lba` on read as zeroes. Raises what the disk raises."""
        started = perf_counter_ns()
        self._write_through(lambda: self.disk.unmap(lba, count))
        for flash in self._caches:
            flash.invalidate(lba, count)
        self.operations.add("unmap", started, count)

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on. Raises what the disk raises."""
        started = perf_counter_ns()
        in_range = 0 <= lba < lba + count <= self.geometry.blocks
        if view is not None or not self.disk.usable or not in_range:
            data = self.disk.read(lba, count, view)  # it refuses what has to be refused
        else:
            data = self._read(lba, count, started)
        self.operations.add("read", started, count)
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
        try:
            self._timed("revert", lambda: self.disk.revert(name))
        finally:
            self.empty()

    def flush(self) -> None:
        """Make every acknowledged operation durable."""
        self._timed("flush", self.disk.flush)

    def close(self) -> None:
        """Flush, close the disk, and let go of the cache."""
        self.disk.close()
        self._close_caches()

    def abandon(self) -> None:
        """Close the disk as it is, without a flush, and let go of the cache."""
        self.disk.abandon()
        self._close_caches()

    # The cache.

    def resize(self, bytes: int, block_bytes: int | None = None) -> None:
        """Change the size of the cache, or of its blocks, for this opening and later ones.

        The cache is empty then, since a slot holds other blocks. Raises BadRequest for an
        impossible size, or while the virtual machine moves; HostRefused and OSError, if nothing
        changed because the host has no file for it.
        """
        if self._copy is not None:
            raise BadRequest("the cache cannot be resized while the virtual machine moves")
        settings = CacheSettings.of(self.geometry, bytes, block_bytes or self.settings.block_bytes)
        cold = self._cold(settings)
        try:
            settings.save(self._folder)
        except OSError:
            cold.close()
            raise
        self._leave(self.flash)
        self.settings, self.flash = settings, cold

    def move(self) -> None:
        """Begin to move the virtual machine to another host, whose cache is empty.

        Raises BadRequest if it moves already, HostRefused if it cannot have a file.
        """
        if self._copy is not None:
            raise BadRequest("the virtual machine moves already")
        self._copy = self._cold(self.settings)

    def copy_slot(self, slot: int) -> None:
        """Copy a slot to the other host. Raises BadRequest if the virtual machine does not move."""
        copy = self._moving()
        if slot in self.flash.used:
            self.flash.copy_slot(slot, copy)

    def arrive(self) -> None:
        """End the move: the virtual machine runs on the other host, with the slots that were
        copied.

        Raises BadRequest if it does not move.
        """
        copy = self._moving()
        self._leave(self.flash)
        self.flash, self._copy = copy, None

    def migrate(self, *, contents: bool) -> int:
        """Move at once, with the content of the cache or without it.

        Returns how many slots were copied. Raises BadRequest if the machine moves already.
        """
        self.move()
        slots = sorted(self.flash.used) if contents else []
        for slot in slots:
            self.copy_slot(slot)
        self.arrive()
        return len(slots)

    def empty(self) -> None:
        """Empty the cache, on every host."""
        for flash in self._caches:
            flash.empty()

    def forget(self, blocks: range) -> None:
        """Take blocks out of the cache, on every host."""
        last = min(blocks.stop, self.geometry.blocks)
        for flash in self._caches if 0 <= blocks.start < last else ():
            flash.invalidate(blocks.start, last - blocks.start)

    def held(self, lba: int, count: int) -> bytes | None:
        """Return blocks of live, and count a hit, if the cache holds all of them; else a miss."""
        started = perf_counter_ns()
        if not self.disk.usable or not 0 <= lba < lba + count <= self.geometry.blocks:
            return None
        if not all(map(self.flash.hit, range(lba, lba + count))):
            self.blocks[MISS] += count
            self.reads[MISS].add(perf_counter_ns() - started)
            return None
        data = self.flash.read(lba, count)
        self.blocks[HIT] += count
        self.reads[HIT].add(perf_counter_ns() - started)
        return data

    @property
    def slots(self) -> int:
        """Number of slots of the cache."""
        return self.flash.slots

    @property
    def used_slots(self) -> int:
        """Number of slots that hold something."""
        return len(self.flash.used)

    @property
    def held_blocks(self) -> int:
        """Number of blocks of the disk that the cache holds."""
        return self.flash.held_blocks

    @property
    def evictions(self) -> int:
        """Number of slots that were evicted, on all hosts."""
        return self.evicted + self.flash.evicted

    # How it is done.

    @property
    def _caches(self) -> list[Flash]:
        return [self.flash] if self._copy is None else [self.flash, self._copy]

    def _moving(self) -> Flash:
        """Return the cache of the other host.

        Raises BadRequest if the virtual machine does not move.
        """
        if self._copy is None:
            raise BadRequest("the virtual machine does not move")
        return self._copy

    def _read(self, lba: int, count: int, started: int) -> bytes:
        """Read blocks of the live disk through the cache."""
        parts, fills = [], []
        for hit, run in groupby(range(lba, lba + count), self.flash.hit):
            lbas = list(run)
            source = self.flash if hit else self.disk
            parts.append(source.read(lbas[0], len(lbas)))
            self.blocks[HIT if hit else MISS] += len(lbas)
            if not hit:
                fills.append((lbas[0], parts[-1]))
        for at, data in fills:  # after all reads: a fill may evict a slot that was a hit
            self.flash.fill(at, data)
        outcome = HIT if not fills else MISS if len(fills) == len(parts) else PARTIAL
        self.reads[outcome].add(perf_counter_ns() - started)
        return b"".join(parts)

    def _hold_written(self, lba: int, data: bytes) -> None:
        """Hold blocks that were written; on a host that the machine moves to, forget them."""
        self.flash.fill(lba, data)
        if self._copy is not None:
            self._copy.invalidate(lba, len(data) // self.geometry.block_bytes)

    def _write_through(self, work: Callable[[], None]) -> None:
        """Have the disk do a change.

        A refusal changed nothing. After any other error the content of the disk is not known, so
        the cache is emptied.
        """
        try:
            work()
        except (BadRequest, OutOfRange, NoSpace, Unsupported):
            raise
        except BaseException:
            self.empty()
            raise

    def _timed(self, name: str, work: Callable[[], None]) -> None:
        started = perf_counter_ns()
        work()
        self.operations.add(name, started)

    def _cold(self, settings: CacheSettings) -> Flash:
        """Return an empty cache on a device of its own, whose file has no name: no other process
        finds it.

        Raises HostRefused, OSError.
        """
        try:
            handle, path = tempfile.mkstemp(prefix="cache-", dir=self._folder)
            os.close(handle)
            try:
                os.truncate(path, settings.slots * settings.block_bytes)
                device = FileDevice(Path(path), sync=False)
            finally:
                os.unlink(path)
        except OSError as error:
            raise explained(error, "the file of a cache") from None
        per_slot = settings.block_bytes // self.geometry.block_bytes
        return Flash(device, settings.slots, per_slot, self.geometry.block_bytes, self._meter)

    def _leave(self, flash: Flash) -> None:
        """Let go of the cache of a host that the virtual machine leaves."""
        self.evicted += flash.evicted
        flash.close()

    def _close_caches(self) -> None:
        for flash in self._caches:
            flash.empty()
            flash.close()


def behind_cache(disk: Disk) -> Disk:
    """Return the disk behind a read cache; the disk itself if it has none."""
    return disk.disk if isinstance(disk, CachedDisk) else disk
