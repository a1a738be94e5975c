"""Power cuts: writes that no flush covers survive in any combination, torn at 512 bytes.

A `PowerSupply` feeds the devices of one disk. It can be told to fail at the n-th device write from
now. From then on every device raises PowerCut, until `restore` decides by a seed what the media
kept. Then the disk is opened again.
"""

import random
from dataclasses import dataclass

from refmodel.core.errors import PowerCut
from refmodel.media.device import Device

SECTOR = 512  # bytes that a device writes whole or not at all, unless an engine needs more
ODDS = (0.15, 0.5, 0.85)  # of survival of a write; one value for all writes before a cut,
ODDS_OF_ONE = (0.0, *ODDS, 1.0)  # or, as often, one for each device: a mirror may have it all alone
TORN = (0.0, 0.5, 0.5, 1.0)  # share of the surviving writes that survive in part, likewise


@dataclass(slots=True)
class Unflushed:
    """A write that no flush has covered yet, with what it replaced."""

    number: int  # its number among the supply's writes, from 0
    offset: int  # bytes
    before: bytes
    after: bytes


class PowerSupply:
    """Power for the devices of one disk. It counts their writes, and fails where it is told to."""

    def __init__(self, sector_bytes: int = SECTOR) -> None:
        self.on = True
        self.sector_bytes = sector_bytes
        self.writes = 0
        self._cut_at: int | None = None
        self._devices: dict[str, VolatileDevice] = {}

    def feed(self, device: Device) -> Device:
        """Return the device with a write cache that loses power when this supply does.

        If the device is opened again, its cache still has the writes that no flush covered.
        """
        if (earlier := self._devices.get(device.name)) is not None:
            earlier.release()
        fed = VolatileDevice(device, self, earlier.unflushed if earlier else [])
        self._devices[device.name] = fed
        return fed

    def forget(self, name: str) -> None:
        """Forget a device that was pulled: it keeps everything that was written to it."""
        if (pulled := self._devices.pop(name, None)) is not None:
            pulled.release()

    def cut_at(self, writes_from_now: int | None) -> None:
        """Fail during the n-th device write from now (1 is the next). None: do not fail."""
        self._cut_at = None if writes_from_now is None else self.writes + writes_from_now

    def cut(self) -> None:
        """Fail now, between two device writes."""
        self.on = False
        self._cut_at = None

    def restore(self, seed: int, kept: list[int] | None = None) -> None:
        """Decide what each medium kept, release the devices, and switch the power on.

        The seed decides; or `kept` does, which has one number per write that no flush has covered,
        oldest first over all devices: bit i says whether sector i of the write was kept. Writes
        without a number are lost. The disk has to be opened again.
        """
        choose = random.Random(seed)
        self._cut_at = None
        self.on = True
        unflushed = sorted(
            write.number for device in self._devices.values() for write in device.unflushed
        )
        masks = None if kept is None else dict(zip(unflushed, kept, strict=False))
        odds, alike = choose.choice(ODDS), choose.random() < 0.5
        for device in self._devices.values():
            of_one = odds if alike else choose.choice(ODDS_OF_ONE)
            torn = 0.5 if alike else choose.choice(TORN)
            device.lose_unflushed(choose, of_one, torn, masks)
            device.release()
        self._devices.clear()

    def off_and_on(self) -> None:
        """Switch the power off and on while the disk is closed: what was not flushed may be lost.

        A failure that is still to come stays.
        """
        cut_at = self._cut_at
        self.cut()
        self.restore(self.writes)
        self._cut_at = cut_at

    def require(self) -> None:
        """Raises PowerCut if the power is off."""
        if not self.on:
            raise PowerCut

    def spend_write(self) -> None:
        """Count one device write. If the power fails at it, raises PowerCut.

        That write has reached the device's cache.
        """
        self.writes += 1
        if self.writes == self._cut_at:
            self.cut()
            raise PowerCut


class VolatileDevice:
    """A device whose unflushed writes a power cut may lose, keep, or tear.

    Every method but `close` raises PowerCut while the power is off.
    """

    def __init__(self, device: Device, supply: PowerSupply, unflushed: list[Unflushed]) -> None:
        self.name = device.name
        self.unflushed = unflushed
        self._device = device
        self._supply = supply

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from a byte offset on."""
        self._supply.require()
        return self._device.read(offset, length)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes at a byte offset."""
        self._supply.require()
        before = self._device.read(offset, len(data))
        self.unflushed.append(Unflushed(self._supply.writes, offset, before, bytes(data)))
        self._device.write(offset, data)
        self._supply.spend_write()

    def allocate(self, offset: int, length: int) -> None:
        """Have the host keep room for bytes."""
        self._supply.require()
        self._device.allocate(offset, length)

    def flush(self) -> None:
        """Make every earlier write durable."""
        self._supply.require()
        self._device.flush()
        self.unflushed.clear()

    def close(self) -> None:
        """Close the device, unless a power cut still has to decide about its writes."""
        if self._supply.on and not self.unflushed:
            self.release()

    def release(self) -> None:
        """Close the device below."""
        self._device.close()

    def lose_unflushed(
        self, choose: random.Random, odds: float, torn: float, masks: dict[int, int] | None
    ) -> None:
        """Undo every unflushed write, then redo some of them.

        `masks` says which sectors to redo, by the number of the write. If it is None, each write is
        redone with these odds, in a random order, and of them a share of `torn` in part: some
        sectors, or the first ones.
        """
        for write in reversed(self.unflushed):
            self._device.write(write.offset, write.before)
        if masks is not None:
            for write in self.unflushed:
                self._redo(write, masks.get(write.number, 0))
            self.unflushed.clear()
            return
        kept = [write for write in self.unflushed if choose.random() < odds]
        choose.shuffle(kept)
        for write in kept:
            if choose.random() >= torn:
                self._device.write(write.offset, write.after)
            else:
                self._redo(write, self._random_mask(write, choose))
        self.unflushed.clear()

    def _random_mask(self, write: Unflushed, choose: random.Random) -> int:
        sectors = -(-len(write.after) // self._supply.sector_bytes)
        if choose.random() < 0.5:  # as a disk writes them, one after another
            return (1 << choose.randrange(sectors + 1)) - 1
        return sum((choose.random() < 0.5) << sector for sector in range(sectors))

    def _redo(self, write: Unflushed, mask: int) -> None:
        """Write the sectors that the bits of a mask name."""
        size = self._supply.sector_bytes
        for sector, at in enumerate(range(0, len(write.after), size)):
            if mask >> sector & 1:
                self._device.write(write.offset + at, write.after[at : at + size])
