"""Power cuts that are real: unflushed writes survive in any combination, torn at 512 bytes.

A `PowerSupply` feeds the devices of one disk. It can be told to fail at the n-th device write from now. From then
on every device raises PowerCut, until `restore` decides by a seed what the media kept and the disk is opened again.
"""

import random
from dataclasses import dataclass

from refmodel.core.errors import PowerCut
from refmodel.media.device import Device

SECTOR = 512  # bytes that a device writes whole or not at all, unless an engine asks for more


@dataclass(slots=True)
class Unflushed:
    """One write that a flush has not covered yet, and what it wrote over."""

    number: int  # of the supply's writes, from 0
    offset: int
    before: bytes
    after: bytes


class PowerSupply:
    """Power for the devices of one disk. It counts their writes and fails where it is told to."""

    def __init__(self, sector_bytes: int = SECTOR) -> None:
        self.on = True
        self.sector_bytes = sector_bytes
        self.writes = 0
        self._cut_at: int | None = None
        self._devices: dict[str, VolatileDevice] = {}

    def feed(self, device: Device) -> "VolatileDevice":
        """The device, with a write cache that loses power when this supply does.

        A device opened again still has in its cache what no flush covered before.
        """
        if (earlier := self._devices.get(device.name)) is not None:
            earlier.let_go()
        fed = VolatileDevice(device, self, earlier.unflushed if earlier else [])
        self._devices[device.name] = fed
        return fed

    def forget(self, name: str) -> None:
        """A device was pulled: it has power of its own, and keeps what it was given."""
        if (pulled := self._devices.pop(name, None)) is not None:
            pulled.let_go()

    def cut_at(self, writes_from_now: int | None) -> None:
        """Fail in the middle of the n-th device write from now (1 is the next); None disarms."""
        self._cut_at = None if writes_from_now is None else self.writes + writes_from_now

    def cut(self) -> None:
        """Fail now, between two device writes."""
        self.on = False
        self._cut_at = None

    def restore(self, seed: int, kept: list[int] | None = None) -> None:
        """Settle what each medium kept, let go of the devices, and switch on again.

        By the seed; or by `kept`, which has a number for each write that no flush has covered, oldest first over all devices: bit i
        says whether its sector i was kept. What has no number was lost. The disk has to be opened anew: its devices come to life with
        no write in flight.
        """
        choose = random.Random(seed)
        self._cut_at = None
        self.on = True
        unflushed = sorted(
            write.number for device in self._devices.values() for write in device.unflushed
        )
        masks = None if kept is None else dict(zip(unflushed, kept))
        for device in self._devices.values():
            device.settle(choose, masks)
            device.let_go()
        self._devices.clear()

    def require(self) -> None:
        if not self.on:
            raise PowerCut

    def spend_write(self) -> None:
        """Count one device write; the one that the supply fails at is cut after it reached the cache."""
        self.writes += 1
        if self.writes == self._cut_at:
            self.cut()
            raise PowerCut


class VolatileDevice:
    """A device whose unflushed writes a power cut may lose, keep, or tear."""

    def __init__(self, device: Device, supply: PowerSupply, unflushed: list[Unflushed]) -> None:
        self.name = device.name
        self.unflushed = unflushed
        self._device = device
        self._supply = supply

    def read(self, offset: int, length: int) -> bytes:
        self._supply.require()
        return self._device.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        self._supply.require()
        self.unflushed.append(
            Unflushed(
                self._supply.writes, offset, self._device.read(offset, len(data)), bytes(data)
            )
        )
        self._device.write(offset, data)
        self._supply.spend_write()

    def flush(self) -> None:
        self._supply.require()
        self._device.flush()
        self.unflushed.clear()

    def close(self) -> None:
        if self._supply.on and not self.unflushed:  # else `settle` still has to be done to it
            self.let_go()

    def let_go(self) -> None:
        """Close the device below."""
        self._device.close()

    def settle(self, choose: random.Random, masks: dict[int, int] | None = None) -> None:
        """Undo every unflushed write, then redo a random part of them in a random order; or the sectors that the masks name."""
        for write in reversed(self.unflushed):
            self._device.write(write.offset, write.before)
        if masks is not None:
            for write in self.unflushed:
                self._keep(write, masks.get(write.number, 0))
            self.unflushed.clear()
            return
        kept = [write for write in self.unflushed if choose.random() < 0.5]
        choose.shuffle(kept)
        for write in kept:
            if choose.random() < 0.5:
                self._device.write(write.offset, write.after)
            else:
                self._tear(write, choose)
        self.unflushed.clear()

    def _tear(self, write: Unflushed, choose: random.Random) -> None:
        sectors = -(-len(write.after) // self._supply.sector_bytes)
        self._keep(write, sum((choose.random() < 0.5) << sector for sector in range(sectors)))

    def _keep(self, write: Unflushed, mask: int) -> None:
        size = self._supply.sector_bytes
        for sector, at in enumerate(range(0, len(write.after), size)):
            if mask >> sector & 1:
                self._device.write(write.offset + at, write.after[at : at + size])
