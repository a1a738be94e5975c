"""qcow2 with internal snapshots, in qemu-storage-daemon: data over NBD, snapshots over QMP, revert by qemu-img.

What it declares, and why:

- `block`: qemu promises what a disk with a volatile write cache does. What was flushed stays; of what was written
  since, each sector may be there or not. Snapshot operations end with a flush of their own.
- Blocks of 512 bytes, the sector: nothing larger is written whole when the power fails.
- `unmap` is NBD's WRITE_ZEROES: TRIM promises nothing about what is read afterwards.

Under the image lies `blklogwrites`, which records every write and flush that qcow2 sends to its file. A power cut is
made from that log: what was flushed, and some of the rest, is what the image holds when it is opened again.
"""

import random
from collections.abc import Callable
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.engines import qcow2_views, qemu
from conformance.media import nbd
from conformance.media.recorded import Recorded
from conformance.model import NAME
from conformance.targets.base import Message, PowerCut, TargetFailure

BLOCK = 512  # bytes
ROOM = 16 << 20  # bytes of the file: qcow2 finds it large enough for whatever it allocates
CAPABILITIES = ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"]
PATIENCE = 20.0  # seconds
CONFIRM = 16  # one view in so many is read by qemu-img too, and must be the same
FILE = {"driver": "file", "filename": "disk", "discard": "unmap", "locking": "off"}


class Refused(Exception):
    """The request is refused: the code, then what the engine said."""


class Qcow2Target:
    """Options: those of `qemu-img create -o`; `discard` (whether freed clusters are given back to the file); `views`
    (who reads snapshots: "daemon", which is fast, or "tool", qemu-img for every one)."""

    knobs: dict[str, list[Any]] = {
        "cluster_size": [512, 512, 2048, 4096, 65536], "lazy_refcounts": ["off", "off", "on"],
        "refcount_bits": [16, 64], "discard": ["ignore", "unmap"],
    }
    cuts = True

    def __init__(self, options: dict[str, Any]) -> None:
        self.hello: Message = {
            "ok": True, "name": "qcow2", "version": f"qemu {_version()}", "block_size": BLOCK,
            "crash_profile": "block", "capabilities": CAPABILITIES, "devices": 1, "tolerates": 0,
        }
        self._image = tuple(sorted((key, value) for key, value in options.items() if key not in ("discard", "views")))
        self._discard = options.get("discard", "unmap")
        self._reader = self._by_tool if options.get("views") == "tool" else self._in_daemon
        self._daemon = qemu.borrow(_setup)
        self._folder = self._daemon.folder
        self._recorded = Recorded(self._folder / "disk", self._folder / "log", ROOM)
        self._device: nbd.Device | None = None
        self._views: dict[str, bytes] = {}
        self._blocks = self._crashes = self._read_views = 0
        self._choose: random.Random | None = None
        self._sound = True

    def request(self, message: Message) -> Message:
        op, cut = message["op"], message.get("cut")
        if op not in ("create", "write", "read", *CAPABILITIES):
            return {"ok": False, "error": "unsupported"}
        name = message.get("name", message.get("view"))
        if name is not None and not NAME.fullmatch(name):
            return {"ok": False, "error": "bad-request", "message": "no name of the contract; qemu may take it"}
        if cut is not None and op != "crash":
            self._recorded.take()
        if op != "read":
            self._views = {}
        try:
            answer = {"ok": True, **(getattr(self, "_" + op)(message) or {})}
        except Refused as refused:
            answer = {"ok": False, "error": refused.args[0], "message": refused.args[1]}
        except (nbd.Refused, qemu.QmpError) as error:
            self._sound = False
            raise self._daemon.failure("protocol", f"{op}: {error}") from None
        except TimeoutError as error:
            self._sound = False
            raise self._daemon.failure("hang", f"{op}: {error}") from None
        except TargetFailure:
            self._sound = False
            raise
        if cut is not None and self._recorded.cut(cut["after"]):
            self._choose = random.Random(cut["seed"])
            raise PowerCut
        return answer

    def close(self) -> None:
        try:
            if self._sound:
                self._shut()
                qemu.give_back(self._daemon, _setup)
                return
        except (qemu.QmpError, TargetFailure):
            pass
        self._daemon.close()

    # The operations.

    def _create(self, message: Message) -> None:
        self._shut()
        self._blocks, self._crashes, self._choose = message["blocks"], 0, None
        self._recorded.lay(_image(self._blocks * BLOCK, self._image))

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

    def _restart(self, message: Message) -> None:
        self._shut()
        self._opened_again()

    def _crash(self, message: Message) -> None:
        self._recorded.take()
        choose = self._choose or random.Random(self._crashes)
        self._crashes, self._choose = self._crashes + 1, None
        self._shut()
        self._recorded.fail(choose)
        self._opened_again()

    def _snapshot(self, message: Message) -> None:
        self._opened()
        self._snapshots("blockdev-snapshot-internal-sync", message["name"])

    def _delete(self, message: Message) -> None:
        self._opened()
        self._snapshots("blockdev-snapshot-delete-internal-sync", message["name"])

    def _revert(self, message: Message) -> None:
        """qemu has no live revert: close, `qemu-img snapshot -a`, open."""
        self._shut()
        log = self._folder / "revert.log"
        log.write_bytes(b"")
        node = {"driver": "qcow2", "discard": self._discard, "file.driver": "blklogwrites", "file.log.driver": "file",
                "file.log.filename": log.name, **{f"file.file.{key}": value for key, value in FILE.items()}}
        options = ",".join(f"{key}={value}" for key, value in node.items())
        try:
            qemu.image_tool("snapshot", "-a", message["name"], "--image-opts", options, folder=self._folder)
        except qemu.QmpError as error:
            raise _refused(error) from None
        finally:
            self._recorded.read(log)

    # How they are done.

    def _asked(self, message: Message, length: int, ask: Callable[[int], Any]) -> Any:
        """What the device answers. That it refuses what reaches past its end is right, with whatever error."""
        at = message["lba"] * BLOCK
        try:
            return ask(at)
        except nbd.Refused as error:
            if at + length > self._blocks * BLOCK:
                raise Refused("out-of-range", str(error)) from None
            raise

    def _snapshots(self, command: str, name: str) -> None:
        try:
            self._daemon.do((command, {"device": "q", "name": name}))
        except qemu.QmpError as error:
            raise _refused(error) from None

    def _view(self, name: str) -> bytes:
        """What a snapshot reads as; asked again only after something else was done."""
        if name not in self._views:
            self._views[name] = self._reader(name)
            self._read_views += 1
            if self._read_views % CONFIRM == 0 and self._views[name] != self._by_tool(name):
                raise TargetFailure("protocol", f"qemu-img convert reads {name} otherwise than the daemon does")
        return self._views[name]

    def _in_daemon(self, name: str) -> bytes:
        """The view, read by the driver in the daemon."""
        disk = self._folder / "disk"
        with disk.open("rb") as file:
            table = qcow2_views.l1_table(mmap(file.fileno(), 0, access=ACCESS_READ), name)
        if table is None:
            raise Refused("no-such-snapshot", "it is not in the image's list")
        node = {"driver": "qcow2", "node-name": "r", "read-only": True, "file": FILE}
        export = {"type": "nbd", "id": "v", "node-name": "r"}
        with qcow2_views.active(disk, table):
            self._daemon.do(("blockdev-add", node), ("block-export-add", export))
        device = nbd.Device(f"nbd+unix:///r?socket={self._daemon.nbd}", PATIENCE)
        try:
            return device.read(0, device.size)
        finally:
            device.close()
            self._daemon.do(("block-export-del", {"id": "v", "mode": "hard"}), ("blockdev-del", {"node-name": "r"}))

    def _by_tool(self, name: str) -> bytes:
        """The view, read by qemu-img."""
        try:
            qemu.image_tool("convert", "-f", "qcow2", "-O", "raw", "-l", f"snapshot.name={name}", "disk", "view",
                            folder=self._folder)
        except qemu.QmpError as error:
            raise _refused(error) from None
        return (self._folder / "view").read_bytes()

    def _opened(self) -> nbd.Device:
        """The live disk, open."""
        if self._device is None:
            node = {"driver": "qcow2", "node-name": "q", "file": "w", "discard": self._discard}
            export = {"type": "nbd", "id": "e", "node-name": "q", "writable": True}
            self._daemon.do(("blockdev-add", node), ("block-export-add", export))
            self._device = nbd.Device(f"nbd+unix:///q?socket={self._daemon.nbd}", PATIENCE)
        return self._device

    def _opened_again(self) -> None:
        try:
            self._opened()
        except qemu.QmpError as error:
            raise Refused("data-lost", str(error)) from None

    def _shut(self) -> None:
        """Close the image as a clean shutdown does."""
        if self._device is not None:
            self._device.close()
            self._device = None
            self._daemon.do(("block-export-del", {"id": "e", "mode": "hard"}), ("blockdev-del", {"node-name": "q"}))


def _setup(daemon: qemu.Daemon) -> None:
    """The file and the log under it stay for the life of the daemon."""
    for name in ("disk", "log"):
        (daemon.folder / name).write_bytes(b"")
    (daemon.folder / "disk").open("r+b").truncate(ROOM)
    daemon.do(("blockdev-add", {"driver": "blklogwrites", "node-name": "w", "file": FILE,
                                "log": {"driver": "file", "filename": "log"}}))


def _refused(error: qemu.QmpError) -> Exception:
    """The refusal that a complaint of qemu's means; the complaint itself if it means none."""
    text = str(error)
    if "already exists" in text:
        return Refused("snapshot-exists", text)
    if "does not exist" in text or "No such file" in text or "Can't find" in text:
        return Refused("no-such-snapshot", text)
    if "No space" in text:
        return Refused("no-space", text)
    return error


@cache
def _version() -> str:
    return qemu.version()


@cache
def _image(length: int, options: tuple[tuple[str, Any], ...]) -> bytes:
    """An empty image of so many bytes."""
    with TemporaryDirectory() as folder:
        settings = ",".join(f"{key}={value}" for key, value in options)
        chosen = ["-o", settings] if settings else []
        qemu.image_tool("create", "-q", "-f", "qcow2", *chosen, "image", str(length), folder=Path(folder))
        return (Path(folder) / "image").read_bytes()
