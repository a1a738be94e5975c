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
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.engines import qcow2_views, qemu
from conformance.engines.qemu_disk import BLOCK, CAPABILITIES, QemuDisk, Refused, refusal
from conformance.media import nbd
from conformance.media.recorded import Recorded
from conformance.targets.base import Message, PowerCut, TargetFailure

ROOM = 16 << 20  # bytes of the file: qcow2 finds it large enough for whatever it allocates
CONFIRM = 16  # one view in so many is read by qemu-img too, and must be the same
FILE = {"driver": "file", "filename": "disk", "discard": "unmap", "locking": "off"}


class Qcow2Target(QemuDisk):
    """Options: those of `qemu-img create -o`; `discard` (whether freed clusters are given back to the file); `views`
    (who reads snapshots: "daemon", which is fast, or "tool", qemu-img for every one)."""

    knobs: dict[str, list[Any]] = {
        "cluster_size": [512, 512, 2048, 4096, 65536], "lazy_refcounts": ["off", "off", "on"],
        "refcount_bits": [16, 64], "discard": ["ignore", "unmap"],
    }
    cuts = True

    def __init__(self, options: dict[str, Any]) -> None:
        self.hello: Message = {
            "ok": True, "name": "qcow2", "version": f"qemu {qemu.version()}", "block_size": BLOCK,
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
        if message["op"] != "read":
            self._views = {}
        if "cut" in message and message["op"] != "crash":
            self._recorded.take()
        answer = super().request(message)
        cut = message.get("cut")
        if cut is not None and message["op"] != "crash" and self._recorded.cut(cut["after"]):
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
            raise refusal(error) from None
        finally:
            self._recorded.read(log)

    # How they are done.

    def _snapshots(self, command: str, name: str) -> None:
        try:
            self._daemon.do((command, {"device": "q", "name": name}))
        except qemu.QmpError as error:
            raise refusal(error) from None

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
        with qcow2_views.active(disk, table):
            self._daemon.do(("blockdev-add", {"driver": "qcow2", "node-name": "r", "read-only": True, "file": FILE}))
        try:
            return self._exported("r")
        finally:
            self._daemon.do(("blockdev-del", {"node-name": "r"}))

    def _by_tool(self, name: str) -> bytes:
        """The view, read by qemu-img."""
        try:
            qemu.image_tool("convert", "-f", "qcow2", "-O", "raw", "-l", f"snapshot.name={name}", "disk", "view",
                            folder=self._folder)
        except qemu.QmpError as error:
            raise refusal(error) from None
        return (self._folder / "view").read_bytes()

    def _opened(self) -> nbd.Device:
        """The live disk, open."""
        if self._device is None:
            node = {"driver": "qcow2", "node-name": "q", "file": "w", "discard": self._discard}
            export = {"type": "nbd", "id": "e", "node-name": "q", "writable": True}
            self._daemon.do(("blockdev-add", node), ("block-export-add", export))
            self._device = self._connected("q")
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


@cache
def _image(length: int, options: tuple[tuple[str, Any], ...]) -> bytes:
    """An empty image of so many bytes."""
    with TemporaryDirectory() as folder:
        settings = ",".join(f"{key}={value}" for key, value in options)
        chosen = ["-o", settings] if settings else []
        qemu.image_tool("create", "-q", "-f", "qcow2", *chosen, "image", str(length), folder=Path(folder))
        return (Path(folder) / "image").read_bytes()
