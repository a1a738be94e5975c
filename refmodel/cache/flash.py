"""The cache itself: slots on a fast device, and in memory what each slot holds.

It is direct-mapped: a cache block can only be in the slot of its number modulo the number of slots;
the quotient is the slot's tag. A slot is filled as far as requests reach. So large cache blocks
waste room on small requests, and small ones need more slots.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from refmodel.array.component import Meter
from refmodel.media.device import Device

CAUSE = "cache"  # hits and fills are counted under it


@dataclass(slots=True)
class Slot:
    """The content of a slot."""

    tag: int
    held: int = 0  # bit i: block i of the cache block is valid


class Flash:
    """The cache of one host. Blocks are the disk's; a cache block is `per_slot` of them."""

    def __init__(
        self, device: Device, slots: int, per_slot: int, block_bytes: int, meter: Meter
    ) -> None:
        self.slots = slots
        self.per_slot = per_slot
        self._device = device
        self._size = block_bytes
        self._meter = meter
        self.used: dict[int, Slot] = {}  # slot number -> slot
        self.evicted = 0

    def hit(self, lba: int) -> bool:
        """Return whether the cache holds a block."""
        slot, tag, at = self.locate(lba)
        found = self.used.get(slot)
        return found is not None and found.tag == tag and bool(found.held >> at & 1)

    def read(self, lba: int, count: int, cause: str = CAUSE) -> bytes:
        """Return blocks that are all held, with one device I/O per slot."""
        return b"".join(
            self._read(slot, at, part, cause) for slot, _, at, part in self._slot_ranges(lba, count)
        )

    def fill(self, lba: int, data: bytes, cause: str = CAUSE) -> None:
        """Hold blocks, in place of what their slots held."""
        done = 0
        for slot, tag, at, part in self._slot_ranges(lba, len(data) // self._size):
            held = self.used.get(slot)
            if held is None or held.tag != tag:
                self.evict(slot)
                held = self.used[slot] = Slot(tag)
            held.held |= (1 << part) - 1 << at
            raw = data[done * self._size : (done + part) * self._size]
            self._meter[cause].writes += 1
            self._meter[cause].bytes_written += len(raw)
            self._device.write((slot * self.per_slot + at) * self._size, raw)
            done += part

    def invalidate(self, lba: int, count: int) -> None:
        """Forget blocks."""
        for slot, tag, at, part in self._slot_ranges(lba, count):
            held = self.used.get(slot)
            if held is not None and held.tag == tag:
                held.held &= ~((1 << part) - 1 << at)

    def evict(self, slot: int) -> None:
        """Forget what a slot holds, and count that, if it holds anything."""
        if self.used.pop(slot, None) is not None:
            self.evicted += 1

    def empty(self) -> None:
        """Forget everything."""
        self.used.clear()

    def copy_slot(self, slot: int, to: "Flash") -> None:
        """Copy what a slot holds to another cache of the same shape."""
        held = self.used[slot]
        first = (held.tag * self.slots + slot) * self.per_slot
        to.evict(slot)
        for at in range(self.per_slot):
            if held.held >> at & 1:
                to.fill(first + at, self._read(slot, at, 1, "migrate"), "migrate")

    @property
    def held_blocks(self) -> int:
        """Number of blocks that the cache holds."""
        return sum(slot.held.bit_count() for slot in self.used.values())

    def close(self) -> None:
        """Close the device."""
        self._device.close()

    def _read(self, slot: int, at: int, count: int, cause: str) -> bytes:
        self._meter[cause].reads += 1
        self._meter[cause].bytes_read += count * self._size
        return self._device.read((slot * self.per_slot + at) * self._size, count * self._size)

    def locate(self, lba: int) -> tuple[int, int, int]:
        """Return slot and tag of a block's cache block, and the block's place in it."""
        number, at = divmod(lba, self.per_slot)
        return number % self.slots, number // self.slots, at

    def _slot_ranges(self, lba: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """Divide a range by slots: (slot, tag, first block in it, count) of each."""
        while count:
            slot, tag, at = self.locate(lba)
            part = min(count, self.per_slot - at)
            yield slot, tag, at, part
            lba, count = lba + part, count - part
