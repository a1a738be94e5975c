"""Devices of device-mapper in the guest, one target each, numbered here as there is no udev."""

from collections.abc import Callable

from conformance.targets.engines.kernel.machine.line import GuestError

SECTOR = 512  # bytes


class Mapper:
    """The devices that there are in the guest that `ask` asks: `path` says where one is."""

    def __init__(self, ask: Callable[..., str]) -> None:
        self._ask = ask
        self._minors: dict[str, int] = {}
        self._next = 0

    def __contains__(self, name: str) -> bool:
        return name in self._minors

    def clear(self, but: tuple[str, ...] = ()) -> None:
        """Remove all devices but these, the newest first, since it may use older ones."""
        for name in reversed(list(self._minors)):
            if name not in but:
                self.remove(name)

    def path(self, name: str) -> str:
        """Return the path of the device in the guest."""
        return f"/dev/dm-{self._minors[name]}"

    def add(self, name: str, length: int, target: str, *parameters: object) -> None:
        """Add a device of `length` bytes. Raises GuestError; then there is none."""
        self._next += 1
        self._ask("dm-create", name, self._next)
        self._minors[name] = self._next
        try:
            self.turn(name, length, target, *parameters)
        except GuestError:
            self.remove(name)
            raise

    def turn(self, name: str, length: int, target: str, *parameters: object) -> None:
        """Give the device another table, which comes into force at once."""
        self._ask("dm-load", name, length // SECTOR, target, *parameters)
        self._ask("dm-resume", name)

    def remove(self, name: str) -> None:
        """Remove a device, which must not be in use by another."""
        self._ask("close", self.path(name))
        self._ask("dm-remove", name)
        del self._minors[name]

    def suspend(self, name: str, *how: str) -> None:
        """Let no more I/O through the device. Raises GuestError."""
        self._ask("dm-suspend", name, *how)

    def resume(self, name: str) -> None:
        """Let I/O through the device again. Raises GuestError."""
        self._ask("dm-resume", name)

    def status(self, name: str) -> str:
        """Return what the device's target says of itself."""
        return self._ask("dm-status", name)

    def message(self, name: str, *words: object) -> None:
        """Send the words to the device's target, at sector 0."""
        self._ask("dm-message", name, *words)
