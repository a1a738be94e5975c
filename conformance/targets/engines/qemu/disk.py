"""The common parts of targets in qemu-storage-daemon: data over NBD, and the meaning of qemu's
messages.

Several requests may be in flight: reads and writes on several connections, and one command of the
monitor meanwhile. Writes to the same block wait for each other where the kit cuts the power: of two
that are in flight together, the log of writes does not say which came last.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Any

from conformance.media import nbd
from conformance.targets.base import Message, TargetFailure, Unusable
from conformance.targets.engines.qemu import storage_daemon
from conformance.targets.engines.qemu.window import connected
from conformance.targets.engines.recorded_disk import BLOCK, RecordedDisk, Refusal
from conformance.targets.threads import IN_FLIGHT, Gate, Ranges


class QemuDisk(RecordedDisk):
    """A disk whose live view is an NBD device, in a daemon that `setup` has prepared.

    It declares `block`: qemu promises what a disk with a volatile write cache promises. What was
    flushed stays; each sector that was written since may be there or not. A request of several
    blocks takes effect block by block: nothing else is promised of requests that overlap.

    With `power` "stays", the kit cuts no power, and writes to the same block race."""

    export = "live"  # name of the export of the live disk
    power = ("fails", "fails", "stays")  # values of the option `power`, for knobs

    def __init__(self, name: str, setup: storage_daemon.Setup, power: str) -> None:
        if power not in self.power:
            raise Unusable(f"power fails or stays, not {power}")
        self._races = power == "stays"  # writes to the same block
        version = f"qemu {storage_daemon.version()}"
        profile = None if self._races else "block"
        super().__init__(name, version, profile, atomic="block", most=IN_FLIGHT)
        self._setup, self._daemon = setup, storage_daemon.borrow(setup)
        self._folder = self._daemon.folder
        self._device: nbd.Connections | None = None
        self._overlapped = False  # several connections have written
        self._sound = True  # the daemon may be used again
        self._gate, self._ranges = Gate(), Ranges()
        self._monitor = threading.Lock()  # held by the request that gives commands to the daemon
        self._opening = threading.Lock()

    def _answer(self, message: Message) -> Message:
        op = message["op"]
        try:
            return super()._answer(message)
        except (nbd.NbdError, storage_daemon.QmpError) as error:
            self._sound = False
            raise self._daemon.failure("protocol", f"{op}: {error}") from None
        except TimeoutError as error:
            self._sound = False
            raise self._daemon.failure("hang", f"{op}: {error}") from None
        except TargetFailure:
            self._sound = False
            raise

    def _carry_out(self, message: Message) -> Message:
        kind = "view" if message.get("view") is not None else message["op"]
        with ExitStack() as held:
            held.enter_context(
                self._gate.alone() if kind in self._alone_in else self._gate.together()
            )
            if kind in ("view", "snapshot", "delete", "revert"):
                held.enter_context(self._monitor)
            if kind in ("write", "unmap") and not self._races:
                length = len(message["data"]) if kind == "write" else message["count"] * BLOCK
                held.enter_context(self._ranges.held(message["lba"], length // BLOCK))
            return self._answer(message)

    def close(self) -> None:
        try:
            if self._sound:
                self._shut()
                storage_daemon.give_back(self._daemon, self._setup)
                return
        except (storage_daemon.QmpError, TargetFailure):
            pass
        self._daemon.close()

    def connect(self) -> nbd.Connections:
        """Return one more connection to the live disk.

        The power may fail after the next flush; before it, the log may have another order."""
        self._opened()
        self._overlapped = True
        return connected(self._daemon, self.export, 1)

    def _write(self, message: Message) -> None:
        data, device = bytes(message["data"]), self._opened()
        self._asked(message, len(data), lambda at: device.write(at, data))

    def _unmap(self, message: Message) -> None:
        length, device = message["count"] * BLOCK, self._opened()
        self._asked(message, length, lambda at: device.zero(at, length))

    def _read(self, message: Message) -> Message:
        length = message["count"] * BLOCK
        if message.get("view") is None:
            device = self._opened()
            return {"data": self._asked(message, length, lambda at: device.read(at, length))}
        at, view = message["lba"] * BLOCK, self._view(message["view"])
        if at + length > len(view):
            raise Refusal("out-of-range", "the view ends before")
        return {"data": view[at : at + length]}

    def _flush(self, message: Message) -> None:
        self._opened().flush()
        if self._overlapped:
            self._written().settle()
            self._overlapped = False

    def _open_again(self) -> None:
        try:
            self._opened()
        except storage_daemon.QmpError as error:
            raise Refusal("data-lost", str(error)) from None

    def _opened(self) -> nbd.Connections:
        with self._opening:
            if self._device is None:
                self._device = self._open()
            return self._device

    @property
    @abstractmethod
    def _alone_in(self) -> Collection[str]:
        """Requests with which no other is carried out: operations, or "view" for its reads."""

    @abstractmethod
    def _open(self) -> nbd.Connections:
        """Open the disk, which is shut; its live view. Raises QmpError."""

    @abstractmethod
    def _view(self, name: str) -> bytes:
        """Return what the snapshot reads as. Raises Refusal."""

    def _asked(self, message: Message, length: int, ask: Callable[[int], Any]) -> Any:
        """Return what the device answers.

        Any error is right for a request past the end of the disk.
        """
        at = message["lba"] * BLOCK
        try:
            return ask(at)
        except nbd.NbdError as error:
            if at + length > self._blocks * BLOCK:
                raise Refusal("out-of-range", str(error)) from None
            raise


def refusal(error: storage_daemon.QmpError) -> Exception:
    """Return the refusal that a complaint of qemu's means.

    The complaint itself if it means none.
    """
    text = str(error)
    if "already exists" in text:
        return Refusal("snapshot-exists", text)
    if "does not exist" in text or "No such file" in text or "Can't find" in text:
        return Refusal("no-such-snapshot", text)
    if "No space" in text:
        return Refusal("no-space", text)
    return error
