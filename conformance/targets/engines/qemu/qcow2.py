"""qcow2 with internal snapshots, in qemu-storage-daemon.

Data goes over NBD, snapshots over QMP (the monitor protocol of qemu), and qemu-img reverts. What it
declares beyond what every QemuDisk declares, and why:

- Snapshot operations are durable when acknowledged: they end with a flush of their own.
- Blocks have 512 bytes, a sector: nothing larger is written whole when the power fails.
- `unmap` is NBD's WRITE_ZEROES, because TRIM promises nothing about what is read afterwards.

Under the image lies `blklogwrites`, which logs every write and flush that qcow2 sends to its file.
A power cut is made from that log: the image then holds what was flushed, and some of the rest.
"""

import json
import random
from mmap import mmap
from typing import Any

from conformance.media import nbd
from conformance.media.recorded import Recorded
from conformance.targets.base import Message, TargetFailure
from conformance.targets.engines import recorded_disk
from conformance.targets.engines.qemu import qcow2_views, storage_daemon
from conformance.targets.engines.qemu.disk import QemuDisk, refusal
from conformance.targets.engines.qemu.window import Window
from conformance.targets.engines.recorded_disk import BLOCK, Refusal, file_node

ROOM = 16 << 20  # bytes of the file: qcow2 finds it large enough for whatever it allocates
SIDES = "ab"  # the two sets of files: see _lose
CONFIRM = 64  # one view in so many is read by qemu-img too, and must be the same
_images: dict[tuple[Any, ...], bytes] = {}  # empty ones, by size and options


class Qcow2Target(QemuDisk):
    """A qcow2 image as a disk.

    Options: those of a new image (of qemu's blockdev-create); `discard` (whether freed clusters are
    given back to the file); `views` (who reads snapshots: "daemon", which is fast, or "tool", which
    is qemu-img); `power` ("fails" or "stays")."""

    knobs: dict[str, list[Any]] = {
        "power": list(QemuDisk.power),
        "cluster_size": [512, 512, 2048, 4096, 65536],
        "lazy_refcounts": ["off", "off", "on"],
        "refcount_bits": [16, 64],
        "discard": ["ignore", "unmap"],
    }
    fixed_options = ("views", "version", "extended_l2", "preallocation", "compression_type")

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__("qcow2", _setup, options.get("power", "fails"))
        self._image = {
            key: value for key, value in options.items() if key not in ("discard", "views", "power")
        }
        self._discard = options.get("discard", "unmap")
        self._reader = self._by_tool if options.get("views") == "tool" else self._in_daemon
        self._window, self._view_window, self._mapped = self._daemon.fitted
        self._sides = [
            (side, Recorded(self._folder / f"disk{side}", self._folder / f"log{side}", ROOM))
            for side in SIDES
        ]
        self._views: dict[str, bytes] = {}
        self._read_views = 0

    # While a view is opened, the header of the image says something else: see qcow2_views.
    _alone_in = ("revert", "view")

    def _answer(self, message: Message) -> Message:
        if message["op"] != "read":
            self._views = {}
        return super()._answer(message)

    # The operations.

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
        file = {
            "driver": "blklogwrites",
            "file": file_node(f"disk{self._side}"),
            "log": {"driver": "file", "filename": log.name},
        }
        node = {"driver": "qcow2", "discard": self._discard, "file": file}
        try:
            storage_daemon.image_tool(
                "snapshot", "-a", message["name"], "json:" + json.dumps(node), folder=self._folder
            )
        except storage_daemon.QmpError as error:
            raise refusal(error) from None
        finally:
            self._written().read(log)

    # How they are done.

    def _snapshots(self, command: str, name: str) -> None:
        try:
            self._daemon.do((command, {"device": self._window.name, "name": name}))
        except storage_daemon.QmpError as error:
            raise refusal(error) from None

    def _view(self, name: str) -> bytes:
        """Return what a snapshot reads as; asked again only after something else was done."""
        if name not in self._views:
            self._views[name] = self._reader(name)
            self._read_views += 1
            if self._read_views % CONFIRM == 0 and self._views[name] != self._by_tool(name):
                raise TargetFailure(
                    "protocol", f"qemu-img convert reads {name} otherwise than the daemon does"
                )
        return self._views[name]

    def _in_daemon(self, name: str) -> bytes:
        """Return the view, read by the driver in the daemon."""
        image = self._mapped[self._side]
        table = qcow2_views.l1_table(image, name)
        if table is None:
            raise Refusal("no-such-snapshot", "it is not in the image's list")
        with qcow2_views.active(image, table):
            self._view_window.turn({"driver": "qcow2", "read-only": True, "file": f"r{self._side}"})
        data: bytes = self._view_window.device.read(0, self._blocks * BLOCK)
        return data

    def _by_tool(self, name: str) -> bytes:
        """Return the view, read by qemu-img."""
        try:
            storage_daemon.image_tool(
                "convert",
                "-f",
                "qcow2",
                "-O",
                "raw",
                "-l",
                f"snapshot.name={name}",
                f"disk{self._side}",
                "view",
                folder=self._folder,
            )
        except storage_daemon.QmpError as error:
            raise refusal(error) from None
        return (self._folder / "view").read_bytes()

    @property
    def _side(self) -> str:
        return self._sides[0][0]

    def _files(self) -> list[Recorded]:
        return [self._written()]

    def _written(self) -> Recorded:
        return self._sides[0][1]

    def _lose(self, choose: random.Random) -> None:
        """Lay what survives on the other side: `_open` opens that and closes this one at once.

        That takes half of the commands. What closing writes is lost."""
        content = self._written().survives(choose)
        self._sides.reverse()
        self._written().lay(content)
        self._device = None

    def _make(self) -> None:
        self._written().lay(_empty(self._daemon, self._blocks * BLOCK, self._image))

    def _open(self) -> nbd.Connections:
        self._window.turn({"driver": "qcow2", "file": f"w{self._side}", "discard": self._discard})
        device: nbd.Connections = self._window.device
        return device

    def _shut(self) -> None:
        self._device = None
        self._window.turn(None)


def _setup(daemon: storage_daemon.Daemon) -> tuple[Window, Window, dict[str, mmap]]:
    """Make the files, their logs, and the windows for live and for a view: they stay open."""
    mapped = {}
    for side in SIDES:
        recorded_disk.log_writes(daemon, ROOM, side)
        daemon.do(
            (
                "blockdev-add",
                {**file_node(f"disk{side}"), "node-name": f"r{side}", "read-only": True},
            )
        )
        with (daemon.folder / f"disk{side}").open("r+b") as file:
            mapped[side] = mmap(file.fileno(), ROOM)
    return Window(daemon, QemuDisk.export, True), Window(daemon, "view", False), mapped


def _empty(daemon: storage_daemon.Daemon, length: int, options: dict[str, Any]) -> bytes:
    """Return an empty image of `length` bytes."""
    key = length, *sorted(options.items())
    if key not in _images:
        words = {"on": True, "off": False}
        more = {name.replace("_", "-"): words.get(value, value) for name, value in options.items()}
        image = daemon.folder / "empty"
        image.write_bytes(b"")
        daemon.do(("blockdev-add", {"driver": "file", "node-name": "n", "filename": image.name}))
        try:
            daemon.job(
                "blockdev-create",
                {"options": {"driver": "qcow2", "file": "n", "size": length, **more}},
            )
        finally:
            daemon.do(("blockdev-del", {"node-name": "n"}))
        _images[key] = image.read_bytes()
    return _images[key]
