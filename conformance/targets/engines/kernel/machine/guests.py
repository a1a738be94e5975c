"""Guests that have booted and wait for their next use: a boot takes seconds."""

from pathlib import Path

from conformance.targets.engines.kernel.machine.guest import Guest
from conformance.targets.engines.kernel.machine.qemu_guest import QemuGuest

_idle: dict[tuple[int, str], list[Guest]] = {}


def borrow(size: int, linux: str = "") -> Guest:
    """Return a guest with a disk of `size` bytes and no device on it; give it back, or close it.

    It is user-mode Linux, or the kernel in the folder `linux`, in QEMU. Raises Unusable."""
    idle = _idle.setdefault((size, linux), [])
    if idle:
        return idle.pop()
    return QemuGuest(Path(linux), size) if linux else Guest(size)


def give_back(guest: Guest, linux: str = "") -> None:
    """Keep the guest for the next use. `linux` is as it was in `borrow`."""
    _idle[guest.size, linux].append(guest)
