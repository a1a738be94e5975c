"""The read cache of a virtual machine: what it holds, on the host that it runs on.

While the virtual machine moves, there is a second cache on the other host. What is put into the
cache goes to the first only, and what changes is taken out of both.
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
from refmodel.cache.settings import NAME, CacheSettings
from refmodel.core.errors import BadRequest, HostRefused
from refmodel.core.histogram import Histogram
from refmodel.engine.shape import Shape
from refmodel.media.device import FileDevice
from refmodel.media.host import explained

HIT, MISS, PARTIAL = "hit", "miss", "partial"
Read = Callable[[int, int], bytes]  # (LBA, count) -> the bytes of these blocks


class ReadCache:
    """A cache of the live view of a disk. `folder` has its settings and its (nameless) file."""

    def __init__(self, geometry: Shape, folder: Path, settings: CacheSettings) -> None:
        self.settings = settings
        self.meter = Meter()  # the I/Os of the cache's own device
        self.blocks: Counter[str] = Counter()  # read from the live disk, by hit or miss
        self.reads = {outcome: Histogram() for outcome in (HIT, MISS, PARTIAL)}  # nanoseconds
        self._geometry = geometry
        self._folder = folder
        self._evicted = 0  # evictions on hosts that the virtual machine has left
        self.flash = self._cold(settings)
        self._copy: Flash | None = None  # the cache on the host that the virtual machine moves to

    def empty(self) -> None:
        """Empty the cache, on every host."""
        for flash in self.caches:
            flash.empty()

    def forget(self, blocks: range) -> None:
        """Take blocks out of the cache, on every host. Blocks beyond the disk are ignored."""
        last = min(blocks.stop, self._geometry.blocks)
        for flash in self.caches if 0 <= blocks.start < last else ():
            flash.invalidate(blocks.start, last - blocks.start)

    def fill(self, lba: int, data: bytes) -> None:
        """Hold blocks of live, on the host that the virtual machine runs on."""
        self.flash.fill(lba, data)

    def held(self, blocks: range) -> bytes | None:
        """Return blocks of live, and count a hit, if the cache holds all of them; else a miss.

        Blocks beyond the disk are not held, and nothing is counted.
        """
        started = perf_counter_ns()
        if not 0 <= blocks.start < blocks.stop <= self._geometry.blocks:
            return None
        if not all(map(self.flash.hit, blocks)):
            self.blocks[MISS] += len(blocks)
            self.reads[MISS].add(perf_counter_ns() - started)
            return None
        data = self.flash.read(blocks.start, len(blocks))
        self.blocks[HIT] += len(blocks)
        self.reads[HIT].add(perf_counter_ns() - started)
        return data

    def read(self, lba: int, count: int, behind: Read) -> bytes:
        """Return blocks of live, and hold what had to be read from the disk behind the cache."""
        started = perf_counter_ns()
        parts, fills = [], []
        for hit, run in groupby(range(lba, lba + count), self.flash.hit):
            lbas = list(run)
            source = self.flash.read if hit else behind
            parts.append(source(lbas[0], len(lbas)))
            self.blocks[HIT if hit else MISS] += len(lbas)
            if not hit:
                fills.append((lbas[0], parts[-1]))
        for at, data in fills:  # after all reads: a fill may evict a slot that was a hit
            self.fill(at, data)
        outcome = HIT if not fills else MISS if len(fills) == len(parts) else PARTIAL
        self.reads[outcome].add(perf_counter_ns() - started)
        return b"".join(parts)

    def close(self) -> None:
        """Let go of the cache, on every host."""
        for flash in self.caches:
            flash.empty()
            flash.close()

    # Its size, and the host.

    def resize(self, bytes: int, block_bytes: int | None = None) -> None:
        """Change the size of the cache, or of its blocks, for this opening and later ones.

        The cache is empty then, since a slot holds other blocks. Raises BadRequest for an
        impossible size, or while the virtual machine moves; HostRefused and OSError, if nothing
        changed because the host has no file for it.
        """
        if self.moving:
            raise BadRequest("the cache cannot be resized while the virtual machine moves")
        settings = CacheSettings.of(self._geometry, bytes, block_bytes or self.settings.block_bytes)
        cold = self._cold(settings)
        try:
            settings.save(self._folder)
        except (HostRefused, OSError):
            cold.close()
            raise
        self._leave(self.flash)
        self.settings, self.flash = settings, cold

    def move(self) -> None:
        """Begin to move the virtual machine to another host, whose cache is empty.

        Raises BadRequest if it moves already, HostRefused if it cannot have a file.
        """
        if self.moving:
            raise BadRequest("the virtual machine moves already")
        self._copy = self._cold(self.settings)

    def copy_slot(self, slot: int) -> None:
        """Copy a slot to the other host. Raises BadRequest if the virtual machine does not move."""
        copy = self._destination()
        if slot in self.flash.used:
            self.flash.copy_slot(slot, copy)

    def copy_slots(self) -> int:
        """Copy all slots to the other host. Returns how many. Raises as `copy_slot`."""
        slots = sorted(self.flash.used)
        for slot in slots:
            self.copy_slot(slot)
        return len(slots)

    def arrive(self) -> None:
        """End the move: the other host runs the virtual machine, with the slots that were copied.

        Raises BadRequest if it does not move.
        """
        copy = self._destination()
        self._leave(self.flash)
        self.flash, self._copy = copy, None

    def migrate(self, *, contents: bool) -> int:
        """Move at once, with the content of the cache or without it.

        Returns how many slots were copied. Raises BadRequest if the machine moves already.
        """
        self.move()
        copied = self.copy_slots() if contents else 0
        self.arrive()
        return copied

    @property
    def moving(self) -> bool:
        """True while the virtual machine moves to another host."""
        return self._copy is not None

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
        return self._evicted + self.flash.evicted

    # How it is done.

    @property
    def caches(self) -> list[Flash]:
        """The cache of each host: the one that the virtual machine runs on first."""
        return [self.flash] if self._copy is None else [self.flash, self._copy]

    def _destination(self) -> Flash:
        """Return the cache of the other host.

        Raises BadRequest if the virtual machine does not move.
        """
        if self._copy is None:
            raise BadRequest("the virtual machine does not move")
        return self._copy

    def _cold(self, settings: CacheSettings) -> Flash:
        """Return an empty cache on a device of its own, in a file without a name.

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
            raise explained(error, f"the file of a cache ({NAME} has its size)") from None
        per_slot = settings.block_bytes // self._geometry.block_bytes
        return Flash(device, settings.slots, per_slot, self._geometry.block_bytes, self.meter)

    def _leave(self, flash: Flash) -> None:
        """Let go of the cache of a host that the virtual machine leaves."""
        self._evicted += flash.evicted
        flash.close()
