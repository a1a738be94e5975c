"""Faults of devices, by name: what flash, firmware and cables do, put between a disk and its devices from outside.

`bit-flip` hits one member of the disk, the same one all its life; `bit-flip@all` hits every device. Which member, and which of its writes,
follows from a seed.
"""

import errno
import random
from collections.abc import Callable
from typing import NamedTuple

from refmodel.core.errors import BadRequest
from refmodel.media.device import Device
from refmodel.media.power_supply import SECTOR, PowerSupply, VolatileDevice

EVERYWHERE = "@all"
ODDS = 1 / 6  # that a write is hit
MOST_IOS = 60  # of a device before it vanishes


class Ill(NamedTuple):
    """A device that has faults: `device` below it, and what is random in it."""

    device: VolatileDevice
    choose: random.Random
    state: dict[str, int]  # lasts as long as the device


def _lying_flush(ill: Ill) -> None:
    """It says that it has flushed, and has not."""
    ill.device.flush = lambda: None


def _bit_flip(ill: Ill) -> None:
    """A bit of what is written is another on the medium."""

    def flipped(offset: int, data: bytes, write: Callable[[int, bytes], None]) -> None:
        wrong = bytearray(data)
        wrong[ill.choose.randrange(len(data))] ^= 1 << ill.choose.randrange(8)
        write(offset, bytes(wrong))

    _hit(ill, flipped)


def _lost_write(ill: Ill) -> None:
    """It says that it has written, and has not."""
    _hit(ill, lambda offset, data, write: None)


def _misdirected_write(ill: Ill) -> None:
    """What is written lands beside where it belongs."""

    def elsewhere(offset: int, data: bytes, write: Callable[[int, bytes], None]) -> None:
        steps = ill.choose.choice((-2, -1, 1, 2))
        write(abs(offset + steps * max(len(data), SECTOR)), data)

    _hit(ill, elsewhere)


def _vanishing_device(ill: Ill) -> None:
    """In the middle of anything it answers nothing any more."""
    ill.state.setdefault("left", ill.choose.randrange(1, MOST_IOS))

    def until_gone(method):
        def called(*arguments):
            ill.state["left"] -= 1
            if ill.state["left"] < 0:
                raise OSError(errno.ENODEV, f"{ill.device.name} has vanished")
            return method(*arguments)

        return called

    for name in ("read", "write", "flush"):
        setattr(ill.device, name, until_gone(getattr(ill.device, name)))


def _hit(ill: Ill, wrong: Callable[[int, bytes, Callable[[int, bytes], None]], None]) -> None:
    """Some writes go wrong."""
    write = ill.device.write

    def written(offset: int, data: bytes) -> None:
        if ill.choose.random() < ODDS:
            wrong(offset, data, write)
        else:
            write(offset, data)

    ill.device.write = written


FAULTS: dict[str, Callable[[Ill], None]] = {
    "lying-flush": _lying_flush,
    "bit-flip": _bit_flip,
    "lost-write": _lost_write,
    "misdirected-write": _misdirected_write,
    "vanishing-device": _vanishing_device,
}


def parse(text: str) -> list[tuple[str, bool]]:
    """The faults of a comma list, and whether each hits every device. Raises BadRequest."""
    named = [
        (part.removesuffix(EVERYWHERE), part.endswith(EVERYWHERE))
        for part in text.split(",")
        if part
    ]
    for name, _ in named:
        if name not in FAULTS:
            raise BadRequest(
                f"there is no fault {name!r}: use {', '.join(FAULTS)}, each with {EVERYWHERE} for every device"
            )
    return named


class FaultySupply(PowerSupply):
    """Feeds devices some of which have faults: of the first `members`, one, chosen by the seed."""

    def __init__(
        self, sector_bytes: int, faults: list[tuple[str, bool]], members: int, seed: int
    ) -> None:
        super().__init__(sector_bytes)
        self._faults, self._seed = faults, seed
        self._ill = f"device-{seed % members}"
        self._states: dict[str, tuple[random.Random, dict[str, int]]] = {}

    def feed(self, device: Device) -> VolatileDevice:
        fed = super().feed(device)
        choose, state = self._states.setdefault(
            device.name, (random.Random(f"{self._seed} {device.name}"), {})
        )
        for name, everywhere in self._faults:
            if everywhere or device.name == self._ill:
                FAULTS[name](Ill(fed, choose, state))
        return fed
