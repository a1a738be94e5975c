"""What targets in qemu-storage-daemon share: data over NBD, and the meaning of qemu's messages."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from conformance.media import nbd
from conformance.targets.base import Message, TargetFailure
from conformance.targets.engines.qemu import storage_daemon
from conformance.targets.engines.qemu.window import connected
from conformance.targets.engines.recorded_disk import BLOCK, RecordedDisk, Refusal


class QemuDisk(RecordedDisk):
    """A disk whose live view is an NBD device, in a daemon that `setup` has prepared.

    It declares `block`: qemu promises what a disk with a volatile write cache promises. What was
    flushed stays; each sector that was written since may be there or not."""

    export = "live"  # of the live disk

    def __init__(self, name: str, setup: storage_daemon.Setup) -> None:
        super().__init__(name, f"qemu {storage_daemon.version()}", "block")
        self._setup, self._daemon = setup, storage_daemon.borrow(setup)
        self._folder = self._daemon.folder
        self._device: nbd.NbdDevice | None = None
        self._overlapped = False  # several connections have written
        self._sound = True  # the daemon may be used again

    def request(self, message: Message) -> Message:
        op = message["op"]
        try:
            return super().request(message)
        except (nbd.NbdError, storage_daemon.QmpError) as error:
            self._sound = False
            raise self._daemon.failure("protocol", f"{op}: {error}") from None
        except TimeoutError as error:
            self._sound = False
            raise self._daemon.failure("hang", f"{op}: {error}") from None
        except TargetFailure:
            self._sound = False
            raise

    def close(self) -> None:
        try:
            if self._sound:
                self._shut()
                storage_daemon.give_back(self._daemon, self._setup)
                return
        except (storage_daemon.QmpError, TargetFailure):
            pass
        self._daemon.close()

    def connect(self) -> nbd.NbdDevice:
        """Return one more connection to the live disk.

        The power may fail after the next flush; before it, the log may have another order."""
        self._opened()
        self._overlapped = True
        return connected(self._daemon, self.export)

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

    def _opened(self) -> nbd.NbdDevice:
        if self._device is None:
            self._device = self._open()
        return self._device

    @abstractmethod
    def _open(self) -> nbd.NbdDevice:
        """Open the disk, which is shut; its live view. Raises QmpError."""

    @abstractmethod
    def _view(self, name: str) -> bytes:
        """What the snapshot reads as. Raises Refusal."""

    def _asked(self, message: Message, length: int, ask: Callable[[int], Any]) -> Any:
        """What the device answers. Any error is right for a request past the end of the disk."""
        at = message["lba"] * BLOCK
        try:
            return ask(at)
        except nbd.NbdError as error:
            if at + length > self._blocks * BLOCK:
                raise Refusal("out-of-range", str(error)) from None
            raise


def refusal(error: storage_daemon.QmpError) -> Exception:
    """The refusal that a complaint of qemu's means; the complaint itself if it means none."""
    text = str(error)
    if "already exists" in text:
        return Refusal("snapshot-exists", text)
    if "does not exist" in text or "No such file" in text or "Can't find" in text:
        return Refusal("no-such-snapshot", text)
    if "No space" in text:
        return Refusal("no-space", text)
    return error
