"""A disk behind its read cache: the actions of specs/CachedDisk.tla.

Live reads are answered from the cache where it holds them; what is read from or written to the disk is put into it. Snapshots are read from the
disk. A write goes to the disk first and is acknowledged by it, so the cache never holds anything that the disk does not.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from refmodel.array.component import Meter
from refmodel.cache.flash import Flash
from refmodel.cache.settings import CacheSettings
from refmodel.core.errors import BadRequest, NoSpace, OutOfRange, Unsupported
from refmodel.core.histogram import Histogram
from refmodel.core.operation_stats import OperationStats
from refmodel.media.device import FileDevice

LEG = "cache"
HIT, MISS, PARTIAL = "hit", "miss", "partial"


class CachedDisk:
    """A refmodel.registry.Disk: what it does not do itself is the disk's behind it."""

    def __init__(self, disk: Any, folder: Path, settings: CacheSettings) -> None:
        self.disk = disk
        self.geometry = disk.geometry
        self.operations = (
            OperationStats()
        )  # as users see it; disk.operations is what reached the disk
        self.settings = settings
        self.blocks: Counter[str] = (
            Counter()
        )  # read from live, by whether they were a hit or a miss
        self.reads: dict[str, Histogram] = {
            outcome: Histogram() for outcome in (HIT, MISS, PARTIAL)
        }  # nanoseconds
        self.evicted = 0  # by hosts that were left
        self._folder = folder
        self._meter = Meter()
        self._copy: Flash | None = (
            None  # on the host that the virtual machine moves to, while it moves
        )
        self._flash = self._cold()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.disk, name)

    @property
    def meters(self) -> dict[tuple[str, int], Meter]:
        return {**self.disk.meters, (LEG, 0): self._meter}

    @property
    def events(self) -> list[dict] | None:
        return self.disk.events

    @events.setter
    def events(self, events: list[dict] | None) -> None:
        self.disk.events = events

    # OperationStats of the contract.

    def write(self, lba: int, data: bytes) -> None:
        self.write_many([(lba, data)])

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        started = perf_counter_ns()
        self._through(lambda: self.disk.write_many(writes))
        for lba, data in writes:
            self._changed(lba, data)
            self.operations.add("write", started, len(data) // self.geometry.block_bytes)

    def unmap(self, lba: int, count: int) -> None:
        started = perf_counter_ns()
        self._through(lambda: self.disk.unmap(lba, count))
        for flash in self._caches:
            flash.drop(lba, count)
        self.operations.add("unmap", started, count)

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        started = perf_counter_ns()
        if (
            view is not None
            or not self._is_open
            or not 0 <= lba < lba + count <= self.geometry.blocks
        ):
            data = self.disk.read(lba, count, view)  # which refuses what is to be refused
        else:
            data = self._read(lba, count, started)
        self.operations.add("read", started, count)
        return data

    def read_many(self, reads: list[tuple[int, int]], view: str | None = None) -> list[bytes]:
        """Reads that are in flight together, each an LBA and a count of blocks: through the cache, as one by one."""
        return [self.read(lba, count, view) for lba, count in reads]

    def snapshot(self, name: str) -> None:
        self._timed("snapshot", name)

    def delete(self, name: str) -> None:
        self._timed("delete", name)

    def revert(self, name: str) -> None:
        """Live is another disk now: all that is held may be stale."""
        try:
            self._timed("revert", name)
        finally:
            self._emptied()

    def flush(self) -> None:
        self._timed("flush")

    def close(self) -> None:
        self.disk.close()
        self._let_go()

    def abandon(self) -> None:
        self.disk.abandon()
        self._let_go()

    # The cache.

    def resize(self, bytes: int, block_bytes: int | None = None) -> None:
        """Another size, or another block, from now on and after the next opening. The cache is empty then: slots come to mean other blocks."""
        if self._copy is not None:
            raise BadRequest("the cache cannot be resized while the virtual machine moves")
        settings = CacheSettings.of(self.geometry, bytes, block_bytes or self.settings.block_bytes)
        settings.save(self._folder)
        self._leave(self._flash)
        self.settings = settings
        self._flash = self._cold()

    def move(self) -> None:
        """The virtual machine begins to move to another host, whose cache is cold."""
        if self._copy is not None:
            raise BadRequest("the virtual machine moves already")
        self._copy = self._cold()

    def copy_slot(self, slot: int) -> None:
        """Take a slot along."""
        if self._copy is None:
            raise BadRequest("the virtual machine does not move")
        if slot in self._flash.used:
            self._flash.copy_slot(slot, self._copy)

    def arrive(self) -> None:
        """It runs on the other host from now on, with what was taken along."""
        if self._copy is None:
            raise BadRequest("the virtual machine does not move")
        self._leave(self._flash)
        self._flash, self._copy = self._copy, None

    def migrate(self, *, contents: bool) -> int:
        """Move at once, with the cache's contents or without. Returns how many slots were taken along."""
        self.move()
        slots = sorted(self._flash.used) if contents else []
        for slot in slots:
            self.copy_slot(slot)
        self.arrive()
        return len(slots)

    @property
    def slots(self) -> int:
        return self._flash.slots

    @property
    def used_slots(self) -> int:
        return len(self._flash.used)

    @property
    def held_blocks(self) -> int:
        return self._flash.held_blocks

    @property
    def evictions(self) -> int:
        return self.evicted + self._flash.evicted

    # How it is done.

    @property
    def _caches(self) -> list[Flash]:
        return [self._flash] if self._copy is None else [self._flash, self._copy]

    def _read(self, lba: int, count: int, started: int) -> bytes:
        parts, fills = [], []
        for hit, run in groupby(range(lba, lba + count), self._flash.hit):
            lbas = list(run)
            parts.append(
                self._flash.read(lbas[0], len(lbas)) if hit else self.disk.read(lbas[0], len(lbas))
            )
            self.blocks[HIT if hit else MISS] += len(lbas)
            if not hit:
                fills.append((lbas[0], parts[-1]))
        for at, data in fills:  # not before all was read: it may evict what was a hit
            self._flash.fill(at, data)
        outcome = HIT if not fills else MISS if len(fills) == len(parts) else PARTIAL
        self.reads[outcome].add(perf_counter_ns() - started)
        return b"".join(parts)

    def _changed(self, lba: int, data: bytes) -> None:
        """Written through: what is written is held; on the host that it moves to, what was held there follows."""
        self._flash.fill(lba, data)
        if self._copy is not None:
            self._copy.drop(lba, len(data) // self.geometry.block_bytes)

    def _emptied(self) -> None:
        for flash in self._caches:
            flash.empty()

    def _through(self, work: Callable[[], None]) -> None:
        """Have the disk do it. What is refused changed nothing; after anything worse nobody knows what the disk holds."""
        try:
            work()
        except (BadRequest, OutOfRange, NoSpace, Unsupported):
            raise
        except BaseException:
            self._emptied()
            raise

    def _timed(self, name: str, *arguments: str) -> None:
        started = perf_counter_ns()
        getattr(self.disk, name)(*arguments)
        self.operations.add(name, started)

    def _cold(self) -> Flash:
        """An empty cache on a device of its own, that nobody finds again once it was left."""
        handle, path = tempfile.mkstemp(prefix="cache-", dir=self._folder)
        os.close(handle)
        os.truncate(path, self.settings.slots * self.settings.block_bytes)
        device = FileDevice(Path(path), sync=False)
        os.unlink(path)
        per_slot = self.settings.block_bytes // self.geometry.block_bytes
        return Flash(device, self.settings.slots, per_slot, self.geometry.block_bytes, self._meter)

    @property
    def _is_open(self) -> bool:
        return not self.disk._broken

    def _leave(self, flash: Flash) -> None:
        self.evicted += flash.evicted
        flash.close()

    def _let_go(self) -> None:
        for flash in self._caches:
            flash.empty()
            flash.close()
