"""Chains of qcow2 or VMDK files in qemu-storage-daemon: the redo-log design. A snapshot is a file that is written no more.

- `snapshot` puts a new file over the live one; `revert` puts one over the snapshot's, and drops the live one. So files make
  a tree, kept open whole; a snapshot is read from the file of its own.
- `delete` merges: what is not named, not live and has one child goes, by `block-commit` (the child is written into it, and
  takes its place) or by `block-stream` (it is copied into the child). With several children it stays, without a name.
- The flush that the contract asks of `delete` comes before the merge, so merging may not lose what was durable.
- Which file is which is known here, as libvirt or a `.vmsd` file would, and is durable.

It declares `block`, and blocks of 512 bytes, as qcow2.py does and for the same reasons: qemu promises what a disk with a
volatile write cache does. Each file has a `blklogwrites` of its own under it. Files know nothing of each other's flushes, so
the power fails between operations, or in a write, an unmap or a flush, which touch the live file alone.
"""

import random
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from conformance.engines import qemu
from conformance.engines.qemu_disk import BLOCK, CAPABILITIES, QemuDisk, Refused
from conformance.media import logwrites, nbd
from conformance.targets.base import Message, PowerCut, TargetFailure, Unusable

CUT_IN = ("write", "unmap", "flush")


@dataclass
class Layer:
    """One file, and the log of what was written to it."""

    number: int
    folder: Path
    under: "Layer | None"
    media: logwrites.Media
    read: int = logwrites.START  # of the log, bytes

    @property
    def node(self) -> str:
        return f"q{self.number}"

    @property
    def device(self) -> str:
        """The node that the file is written through. It stays writable: blklogwrites cannot be opened again otherwise."""
        return f"w{self.number}"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.number}.log"

    def lay(self) -> None:
        """Begin with what is certain; nobody may have the file open."""
        (self.folder / f"{self.number}").write_bytes(self.media.stable)
        self.log.write_bytes(b"")
        self.read = logwrites.START

    def new(self) -> list[logwrites.Write]:
        """What was written since this was asked last."""
        entries, self.read = logwrites.read(self.log, self.read)
        return entries


class ChainTarget(QemuDisk):
    """Options: `format` ("qcow2" or "vmdk"), and, of qcow2, `merge` ("commit" or "stream") and `cluster_size`."""

    knobs: dict[str, list[Any]] = {"merge": ["commit", "stream"], "cluster_size": [512, 512, 4096, 65536]}
    cuts = True

    def __init__(self, options: dict[str, Any]) -> None:
        self._format, self._merge_by = options.get("format", "qcow2"), options.get("merge", "commit")
        self._cluster_size = options.get("cluster_size", 65536)
        if self._format not in ("qcow2", "vmdk") or self._merge_by not in ("commit", "stream"):
            raise Unusable("format is qcow2 or vmdk, merge is commit or stream")
        if self._format == "vmdk":
            self._merge_by = "commit"  # qemu cannot stream into a VMDK: "Operation not supported"
        self.hello: Message = {
            "ok": True, "name": f"{self._format} chain", "version": f"qemu {qemu.version()}", "block_size": BLOCK,
            "crash_profile": "block", "capabilities": CAPABILITIES, "devices": 1, "tolerates": 0,
        }
        self._daemon = qemu.borrow(_nothing)
        self._layers: list[Layer] = []
        self._names: dict[str, Layer] = {}
        self._live: Layer | None = None
        self._device: nbd.Device | None = None
        self._crashes, self._choose = 0, None
        self._numbers = count()

    def request(self, message: Message) -> Message:
        op, cut = message["op"], message.get("cut")
        if cut is not None and op in CUT_IN:
            self._take()
        answer = super().request(message)
        if cut is not None and op in CUT_IN:
            entries = self._live.new()
            moves = [index for index, entry in enumerate(entries) if entry.moves]
            fails = len(moves) >= cut["after"]
            self._live.media.take(entries[: moves[cut["after"] - 1] + 1] if fails else entries)
            if fails:
                self._choose = random.Random(cut["seed"])
                raise PowerCut
        return answer

    def close(self) -> None:
        try:
            if self._sound:
                self._shut()
                qemu.give_back(self._daemon, _nothing)
                return
        except (qemu.QmpError, TargetFailure):
            pass
        self._daemon.close()

    # The operations.

    def _create(self, message: Message) -> None:
        self._shut()
        self._blocks, self._crashes, self._choose = message["blocks"], 0, None
        self._layers, self._names = [], {}
        self._live = self._made(None)
        self._open()

    def _snapshot(self, message: Message) -> None:
        if message["name"] in self._names:
            raise Refused("snapshot-exists", "")
        below, self._live = self._live, self._made(self._live)
        self._add(self._live, backing=False)
        self._daemon.do(("blockdev-snapshot", {"node": below.node, "overlay": self._live.node}))
        self._names[message["name"]] = below

    def _delete(self, message: Message) -> None:
        layer = self._existing(message["name"])
        self._device.flush()  # the contract asks for it; merging alone does not flush the live file
        del self._names[message["name"]]
        self._tidy(layer)

    def _revert(self, message: Message) -> None:
        target, old = self._existing(message["name"]), self._live
        self._unexport()
        self._live = self._made(target)
        self._add(self._live)
        self._export()
        self._tidy(old)

    def _restart(self, message: Message) -> None:
        self._shut()
        self._take()
        self._open()

    def _crash(self, message: Message) -> None:
        choose = self._choose or random.Random(self._crashes)
        if self._choose is None:
            self._take()
        self._crashes, self._choose = self._crashes + 1, None
        self._shut()
        for layer in self._layers:
            layer.media.cut_power(choose)
        try:
            self._open(lay=True)
        except qemu.QmpError as error:
            raise Refused("data-lost", str(error)) from None

    # How they are done.

    def _opened(self) -> nbd.Device:
        return self._device

    def _view(self, name: str) -> bytes:
        return self._exported(self._existing(name).node)

    def _existing(self, name: str) -> Layer:
        if name not in self._names:
            raise Refused("no-such-snapshot", "")
        return self._names[name]

    def _made(self, under: Layer | None) -> Layer:
        """A new, empty file over another."""
        number, folder = next(self._numbers), self._daemon.folder
        if self._format == "qcow2":
            settings = ["-o", f"cluster_size={self._cluster_size}"]
        else:
            settings = ["-o", "subformat=monolithicSparse"]
        if under is not None:
            settings += ["-b", str(under.number), "-F", self._format]
        qemu.image_tool("create", "-q", "-f", self._format, *settings, str(number), str(self._blocks * BLOCK), folder=folder)
        layer = Layer(number, folder, under, logwrites.Media((folder / str(number)).read_bytes()))
        layer.lay()
        self._layers.append(layer)
        return layer

    def _tidy(self, layer: Layer | None) -> None:
        """Merge the file away if nobody needs it by itself, and then perhaps the one under it."""
        while layer is not None and layer is not self._live and layer not in self._names.values():
            over = [other for other in self._layers if other.under is layer]
            if len(over) > 1:
                return
            below = layer.under
            if not over:
                self._remove(layer)
                self._layers.remove(layer)
            elif self._merge_by == "stream":
                self._streamed(layer, over[0])
            else:
                self._committed(layer, over[0])
            layer = below

    def _streamed(self, layer: Layer, over: Layer) -> None:
        """Copy what the file holds into the one over it, which then lies on what is below."""
        base = {"base-node": layer.under.node} if layer.under else {}
        self._daemon.job("block-stream", {"device": over.node, "job-id": "j", **base})
        self._remove(layer)
        over.under = layer.under
        self._layers.remove(layer)

    def _committed(self, layer: Layer, over: Layer) -> None:
        """Write what the file over it holds into this one, which then takes its place."""
        top = over if not any(other.under is over for other in self._layers) else self._highest(over)
        self._daemon.job("block-commit", {"device": top.node, "job-id": "j", "top-node": over.node, "base-node": layer.node})
        self._remove(over)
        for other in self._layers:
            if other.under is over:
                other.under = layer
        self._names = {name: layer if named is over else named for name, named in self._names.items()}
        self._live = layer if self._live is over else self._live
        self._layers.remove(over)

    def _highest(self, layer: Layer) -> Layer:
        """A file at the end of a chain that goes through this one."""
        while above := [other for other in self._layers if other.under is layer]:
            layer = above[0]
        return layer

    def _open(self, lay: bool = False) -> None:
        """Open all files, those below first, and export the live one."""
        for layer in self._layers:
            if lay:
                layer.lay()
        done: list[Layer] = []
        while len(done) < len(self._layers):
            ready = [layer for layer in self._layers if layer not in done and (layer.under is None or layer.under in done)]
            for layer in ready:
                self._add(layer)
            done += ready
        self._export()

    def _add(self, layer: Layer, backing: bool = True) -> None:
        file = {"driver": "file", "filename": str(layer.number), "discard": "unmap", "locking": "off"}
        log = {"driver": "file", "filename": layer.log.name, "locking": "off"}
        node = {"driver": self._format, "node-name": layer.node, "read-only": layer is not self._live, "discard": "unmap",
                "file": layer.device, "backing": layer.under.node if backing and layer.under else None}
        layer.log.write_bytes(b"")
        layer.read = logwrites.START
        self._daemon.do(("blockdev-add", {"driver": "blklogwrites", "node-name": layer.device, "file": file, "log": log}),
                        ("blockdev-add", node))

    def _remove(self, layer: Layer) -> None:
        """Close the file."""
        self._daemon.do(("blockdev-del", {"node-name": layer.node}), ("blockdev-del", {"node-name": layer.device}))

    def _export(self) -> None:
        self._daemon.do(("block-export-add", {"type": "nbd", "id": "e", "node-name": self._live.node, "name": "q",
                                              "writable": True}))
        self._device = self._connected("q")

    def _unexport(self) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None
            self._daemon.do(("block-export-del", {"id": "e", "mode": "hard"}))

    def _shut(self) -> None:
        """Close all files, those above first."""
        if self._device is None:
            return
        self._unexport()
        left = list(self._layers)
        while left:
            ends = [layer for layer in left if not any(other.under is layer for other in left)]
            for layer in ends:
                self._remove(layer)
            left = [layer for layer in left if layer not in ends]

    def _take(self) -> None:
        for layer in self._layers:
            layer.media.take(layer.new())


def _nothing(daemon: qemu.Daemon) -> None:
    """There is nothing to set up."""
