"""Faults of devices, by name: mistakes of flash, firmware and cables.

A faulty device stands between a disk and a good device. `bit-flip` hits one member of the disk, for
its whole life; `bit-flip@all` hits every device. A seed decides which member it is, and which of
its writes go wrong. A fault may also begin and end on request.
"""

import errno
import random
from abc import abstractmethod
from collections import defaultdict

from refmodel.core.errors import BadRequest
from refmodel.media.device import Device
from refmodel.media.power_supply import SECTOR, PowerSupply

EVERYWHERE = "@all"
WRONG_ONE_IN = 6  # writes
WRONG_WHILE_ASKED_ONE_IN = (1, 2, 6)  # the same for a fault that begins on request
MOST_IOS = 60  # the I/Os of a device before it vanishes, at most
AT_OPENING = 6  # the same, where it vanishes next to a power cut


class FaultyDevice:
    """A device that passes everything on to the one below; each fault changes some of that.

    `state` has what a fault remembers. It lasts as long as the device, however often it is opened.
    """

    def __init__(self, below: Device, choose: random.Random, state: dict[str, int]) -> None:
        self.name = below.name
        self.below = below
        self.choose = choose
        self.state = state

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from a byte offset on."""
        return self.below.read(offset, length)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes at a byte offset."""
        self.below.write(offset, data)

    def allocate(self, offset: int, length: int) -> None:
        """Have the host keep room for bytes."""
        self.below.allocate(offset, length)

    def flush(self) -> None:
        """Make every earlier write durable."""
        self.below.flush()

    def close(self) -> None:
        """Close the device."""
        self.below.close()


class LyingFlush(FaultyDevice):
    """A device that acknowledges a flush and does nothing."""

    def flush(self) -> None:
        """Do nothing."""


class WrongWrites(FaultyDevice):
    """A device of which some writes go wrong."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes at a byte offset, or go wrong."""
        if self.choose.randrange(self.state.get("wrong one in", WRONG_ONE_IN)) == 0:
            self.write_wrong(offset, data)
        else:
            self.below.write(offset, data)

    @abstractmethod
    def write_wrong(self, offset: int, data: bytes | memoryview) -> None:
        """Do what the fault does instead of a write."""


class BitFlip(WrongWrites):
    """A device that inverts one bit of a write on the medium."""

    def write_wrong(self, offset: int, data: bytes | memoryview) -> None:
        """Write the data with one bit inverted."""
        wrong = bytearray(data)
        wrong[self.choose.randrange(len(data))] ^= 1 << self.choose.randrange(8)
        self.below.write(offset, bytes(wrong))


class LostWrite(WrongWrites):
    """A device that acknowledges a write that does not reach the medium."""

    def write_wrong(self, offset: int, data: bytes | memoryview) -> None:
        """Do nothing."""


class MisdirectedWrite(WrongWrites):
    """A device that writes to a place near the right one."""

    def write_wrong(self, offset: int, data: bytes | memoryview) -> None:
        """Write the data one or two lengths before or behind its place."""
        steps = self.choose.choice((-2, -1, 1, 2))
        self.below.write(abs(offset + steps * max(len(data), SECTOR)), data)


class VanishingDevice(FaultyDevice):
    """A device that stops answering after some I/Os: every method raises OSError."""

    def __init__(self, below: Device, choose: random.Random, state: dict[str, int]) -> None:
        super().__init__(below, choose, state)
        most = max(2, MOST_IOS >> choose.randrange(MOST_IOS.bit_length()))  # often in a few
        state.setdefault("left", choose.randrange(1, most))

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from a byte offset on. Raises OSError once it has vanished."""
        self._spend()
        return self.below.read(offset, length)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes at a byte offset. Raises OSError once it has vanished."""
        self._spend()
        self.below.write(offset, data)

    def flush(self) -> None:
        """Make every earlier write durable. Raises OSError once it has vanished."""
        self._spend()
        self.below.flush()

    def _spend(self) -> None:
        self.state["left"] -= 1
        if self.state["left"] < 0:
            raise OSError(errno.ENODEV, f"{self.name} has vanished")


VANISHES = "vanishing-device"
FAULTS: dict[str, type[FaultyDevice]] = {
    "lying-flush": LyingFlush,
    "bit-flip": BitFlip,
    "lost-write": LostWrite,
    "misdirected-write": MisdirectedWrite,
    VANISHES: VanishingDevice,
}


def parse(text: str) -> list[tuple[str, bool]]:
    """Return the faults of a comma list, each with whether it hits every device.

    Raises BadRequest if a name is unknown.
    """
    named = [
        (part.removesuffix(EVERYWHERE), part.endswith(EVERYWHERE))
        for part in text.split(",")
        if part
    ]
    for name, _ in named:
        if name not in FAULTS:
            raise BadRequest(
                f"there is no fault {name!r}: use {', '.join(FAULTS)}, "
                f"each with {EVERYWHERE} for every device"
            )
    return named


class FaultySupply(PowerSupply):
    """Feeds devices some of which have faults.

    A fault that does not hit every device hits one of the first `members`, chosen by the seed.
    """

    def __init__(
        self, sector_bytes: int, faults: list[tuple[str, bool]], members: int, seed: int
    ) -> None:
        super().__init__(sector_bytes)
        self._seed = seed
        self._everywhere = [name for name, everywhere in faults if everywhere]
        self._faults: defaultdict[str, list[str]] = defaultdict(list)  # by the name of the device
        for name, everywhere in faults:
            if not everywhere:
                self._faults[_name(seed % members)].append(name)
        self._states: dict[str, tuple[random.Random, dict[str, int]]] = {}
        self._fed: dict[str, tuple[Device, FaultyDevice]] = {}  # good devices, and what is used

    def feed(self, device: Device) -> Device:
        """Return the device with a write cache and its faults."""
        fed = super().feed(device)
        choose, state = self._states.setdefault(
            device.name, (random.Random(f"{self._seed} {device.name}"), {})
        )
        used = FaultyDevice(fed, choose, state)
        self._fed[device.name] = fed, used
        self._put_between(device.name)
        return used

    def begin(self, index: int, fault: str) -> None:
        """Add a fault to the device with a number."""
        name = _name(index)
        choose, state = self._states[name]
        state["wrong one in"] = choose.choice(WRONG_WHILE_ASKED_ONE_IN)
        self._faults[name].append(fault)
        self._put_between(name)

    def restore(self, seed: int, kept: list[int] | None = None) -> None:
        """Switch the power on. A device that was to vanish often does so while the disk is opened:
        then it alone may have what was in flight, and nobody knows. One that had vanished often
        answers again, for a while.
        """
        super().restore(seed, kept)
        for name, (choose, state) in self._states.items():
            if VANISHES in self._faults[name] and choose.randrange(2):
                most = AT_OPENING if state.get("left", -1) >= 0 else MOST_IOS
                state["left"] = choose.randrange(most)

    def end(self, index: int) -> None:
        """Remove the faults of one device; what went wrong stays wrong."""
        name = _name(index)
        self._faults[name].clear()
        self._states[name][1].clear()
        self._put_between(name)

    def _put_between(self, device: str) -> None:
        """Put the faults of a device between it and its user, if it was fed."""
        fed, used = self._fed[device]
        used.below = fed
        for name in (*self._everywhere, *self._faults[device]):
            used.below = FAULTS[name](used.below, used.choose, used.state)


def _name(index: int) -> str:
    return f"device-{index}"
