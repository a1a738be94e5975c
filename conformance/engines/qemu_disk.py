"""What the targets in qemu-storage-daemon have in common: data over NBD, and what complaints of qemu mean."""

from collections.abc import Callable
from typing import Any

from conformance.engines import qemu
from conformance.media import nbd
from conformance.model import NAME
from conformance.targets.base import Message, TargetFailure

BLOCK = 512  # bytes: nothing larger than a sector is written whole when the power fails
CAPABILITIES = ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"]
PATIENCE = 20.0  # seconds


class Refused(Exception):
    """The request is refused: the code, then what the engine said."""


class QemuDisk:
    """A disk whose live view is the export `q` of a daemon. Whoever inherits opens it: `_opened`; and has the other operations."""

    _daemon: qemu.Daemon
    _blocks = 0
    _sound = True  # the daemon may be used again

    def request(self, message: Message) -> Message:
        op, name = message["op"], message.get("name", message.get("view"))
        if op not in ("create", "write", "read", *CAPABILITIES):
            return {"ok": False, "error": "unsupported"}
        if name is not None and not NAME.fullmatch(name):
            return {"ok": False, "error": "bad-request", "message": "no name of the contract; qemu may take it"}
        try:
            return {"ok": True, **(getattr(self, "_" + op)(message) or {})}
        except Refused as refused:
            return {"ok": False, "error": refused.args[0], "message": refused.args[1]}
        except (nbd.Refused, qemu.QmpError) as error:
            self._sound = False
            raise self._daemon.failure("protocol", f"{op}: {error}") from None
        except TimeoutError as error:
            self._sound = False
            raise self._daemon.failure("hang", f"{op}: {error}") from None
        except TargetFailure:
            self._sound = False
            raise

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
            raise Refused("out-of-range", "the view ends before")
        return {"data": view[at : at + length]}

    def _flush(self, message: Message) -> None:
        self._opened().flush()

    def _opened(self) -> nbd.Device:
        """The live disk, open."""
        raise NotImplementedError

    def _view(self, name: str) -> bytes:
        """What the snapshot reads as."""
        raise NotImplementedError

    def _connected(self, export: str) -> nbd.Device:
        return nbd.Device(f"nbd+unix:///{export}?socket={self._daemon.nbd}", PATIENCE)

    def _exported(self, node: str) -> bytes:
        """All that the node reads as."""
        self._daemon.do(("block-export-add", {"type": "nbd", "id": "v", "node-name": node}))
        device = self._connected(node)
        try:
            return device.read(0, device.size)
        finally:
            device.close()
            self._daemon.do(("block-export-del", {"id": "v", "mode": "hard"}))

    def _asked(self, message: Message, length: int, ask: Callable[[int], Any]) -> Any:
        """What the device answers. That it refuses what reaches past its end is right, with whatever error."""
        at = message["lba"] * BLOCK
        try:
            return ask(at)
        except nbd.Refused as error:
            if at + length > self._blocks * BLOCK:
                raise Refused("out-of-range", str(error)) from None
            raise


def refusal(error: qemu.QmpError) -> Exception:
    """The refusal that a complaint of qemu's means; the complaint itself if it means none."""
    text = str(error)
    if "already exists" in text:
        return Refused("snapshot-exists", text)
    if "does not exist" in text or "No such file" in text or "Can't find" in text:
        return Refused("no-such-snapshot", text)
    if "No space" in text:
        return Refused("no-space", text)
    return error
