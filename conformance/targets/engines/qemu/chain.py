"""Chains of qcow2 or VMDK files in qemu-storage-daemon: redo logs.

A snapshot is a file that is not written any more.

- `snapshot` puts a new file over the live one. `revert` puts a new file over the snapshot's, and
  drops the live one. So the files are a tree, all of it open; a snapshot is read from its own file.
- `delete` merges a file that has no name, is not live and has one child: by `block-commit` (the
  child is written into it, and takes its place) or by `block-stream` (it is copied into the child).
  A file with several children stays, without a name.
- The flush that the contract asks of `delete` comes before the merge, so that merging must not lose
  what was durable.
- This module knows which file is which, as libvirt or a `.vmsd` file would; that is durable.

Blocks have 512 bytes, for the reason given in qcow2.py. Under each file lies a `blklogwrites` of
its own. Files know nothing of each other's flushes, so the power fails between operations, or in an
operation that writes to the live file only.
"""

from dataclasses import dataclass
from itertools import count
from typing import Any

from conformance.media import nbd
from conformance.media.recorded import Recorded
from conformance.targets.base import Message, Unusable
from conformance.targets.engines.qemu import storage_daemon
from conformance.targets.engines.qemu.disk import QemuDisk
from conformance.targets.engines.qemu.window import connected
from conformance.targets.engines.recorded_disk import BLOCK, Refusal
from conformance.targets.threads import Done


@dataclass(eq=False)
class Layer:
    """One file, and the log of what was written to it."""

    number: int
    under: "Layer | None"
    recorded: Recorded

    @property
    def node(self) -> str:
        """The name of the image's node."""
        return f"q{self.number}"

    @property
    def device(self) -> str:
        """The node that the file is written through.

        It stays writable, because blklogwrites cannot be opened again."""
        return f"w{self.number}"

    @property
    def depth(self) -> int:
        """Number of files down to the base, this one included."""
        return 1 + self.under.depth if self.under else 0


class ChainTarget(QemuDisk):
    """A chain of files as a disk.

    Options: `format` ("qcow2" or "vmdk"); with qcow2 also `merge` ("commit" or "stream") and
    `cluster_size` (bytes); `power` ("fails" or "stays")."""

    knobs: dict[str, list[Any]] = {
        "power": list(QemuDisk.power),
        "merge": ["commit", "stream"],
        "cluster_size": [512, 512, 4096, 65536],
    }
    fixed_options = ("format",)
    cut_in = ("write", "unmap", "flush", "crash")
    _alone_in = ("revert",)

    def __init__(self, options: dict[str, Any]) -> None:
        self._format, self._merge_by = (
            options.get("format", "qcow2"),
            options.get("merge", "commit"),
        )
        self._cluster_size = options.get("cluster_size", 65536)
        if self._format not in ("qcow2", "vmdk") or self._merge_by not in ("commit", "stream"):
            raise Unusable("format is qcow2 or vmdk, merge is commit or stream")
        if self._format == "vmdk":
            self._merge_by = "commit"  # qemu cannot stream into a VMDK: "Operation not supported"
        super().__init__(f"{self._format} chain", _nothing, options.get("power", "fails"))
        self._layers: list[Layer] = []
        self._names: dict[str, Layer] = {}
        self._live: Layer | None = None
        self._numbers = count()

    # The operations.

    def _snapshot(self, message: Message) -> None:
        self._opened()
        if message["name"] in self._names:
            raise Refusal("snapshot-exists", "")
        below = self._live
        assert below is not None, "the disk is made"
        live = self._live = self._made(below)
        self._add(live, backing=False)
        self._daemon.do(("blockdev-snapshot", {"node": below.node, "overlay": live.node}))
        self._names[message["name"]] = below

    def _delete(self, message: Message) -> None:
        layer = self._existing(message["name"])
        self._opened().flush()  # merging alone does not flush the live file
        del self._names[message["name"]]
        self._tidy(layer)

    def _revert(self, message: Message) -> None:
        target, old = self._existing(message["name"]), self._live
        self._opened()
        self._unexport()
        self._live = self._made(target)
        self._add(self._live)
        self._device = self._export()
        self._tidy(old)

    # How they are done.

    def call(self, message: Message, done: Done) -> None:
        """Call a request. Power does not fail at a write here: it might fail in several files."""
        super().call({key: value for key, value in message.items() if key != "cut"}, done)

    def _cut_in_flight(self) -> None:
        """Cut the power when all that was in flight has ended."""
        self._threads.cut()
        self._threads.wait()

    def _files(self) -> list[Recorded]:
        return [layer.recorded for layer in self._layers]

    def _written(self) -> Recorded:
        assert self._live is not None, "the disk is made"
        return self._live.recorded

    def _make(self) -> None:
        self._layers, self._names = [], {}
        self._live = self._made(None)

    def _view(self, name: str) -> bytes:
        """Read through an export of the layer's own."""
        node = self._existing(name).node
        self._opened()
        self._daemon.do(("block-export-add", {"type": "nbd", "id": "v", "node-name": node}))
        device = connected(self._daemon, node, 1)
        try:
            return device.read(0, device.size)
        finally:
            device.close()
            self._daemon.do(("block-export-del", {"id": "v", "mode": "hard"}))

    def _existing(self, name: str) -> Layer:
        if name not in self._names:
            raise Refusal("no-such-snapshot", "")
        return self._names[name]

    def _made(self, under: Layer | None) -> Layer:
        """Return a new, empty file over another."""
        number = next(self._numbers)
        if self._format == "qcow2":
            settings = ["-o", f"cluster_size={self._cluster_size}"]
        else:
            settings = ["-o", "subformat=monolithicSparse"]
        if under is not None:
            # -u: a merge leaves a name of the backing file that only the daemon can open.
            settings += ["-u", "-b", str(under.number), "-F", self._format]
        storage_daemon.image_tool(
            "create",
            "-q",
            "-f",
            self._format,
            *settings,
            str(number),
            str(self._blocks * BLOCK),
            folder=self._folder,
        )
        layer = Layer(
            number, under, Recorded(self._folder / f"{number}", self._folder / f"{number}.log")
        )
        self._layers.append(layer)
        return layer

    def _tidy(self, layer: Layer | None) -> None:
        """Merge the file away if no view needs it by itself, and then perhaps the one under it."""
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
        """Copy what the file holds into the one over it, which then lies on what is below.

        What is below is named, here and in _committed: the name that qemu makes up describes the
        nodes of a whole chain, and does not fit into the file if the chain is long.
        """
        below = layer.under
        base = {"base-node": below.node, "backing-file": str(below.number)} if below else {}
        self._daemon.job("block-stream", {"device": over.node, **base})
        self._remove(layer)
        over.under = layer.under
        self._layers.remove(layer)

    def _committed(self, layer: Layer, over: Layer) -> None:
        """Write what the file over it holds into this one, which then takes its place."""
        top = self._highest(over)
        name = {"backing-file": str(layer.number)} if top is not over else {}
        nodes = {"device": top.node, "top-node": over.node, "base-node": layer.node}
        self._daemon.job("block-commit", {**nodes, **name})
        self._remove(over)
        for other in self._layers:
            if other.under is over:
                other.under = layer
        self._names = {
            name: layer if named is over else named for name, named in self._names.items()
        }
        self._live = layer if self._live is over else self._live
        self._layers.remove(over)

    def _highest(self, layer: Layer) -> Layer:
        """Return a file at the end of a chain that goes through this one."""
        while above := [other for other in self._layers if other.under is layer]:
            layer = above[0]
        return layer

    def _open(self) -> nbd.Connections:
        for layer in sorted(self._layers, key=lambda layer: layer.depth):
            self._add(layer)
        return self._export()

    def _add(self, layer: Layer, backing: bool = True) -> None:
        file = {
            "driver": "file",
            "filename": str(layer.number),
            "discard": "unmap",
            "locking": "off",
        }
        log = {"driver": "file", "filename": f"{layer.number}.log", "locking": "off"}
        node = {
            "driver": self._format,
            "node-name": layer.node,
            "read-only": layer is not self._live,
            "discard": "unmap",
            "file": layer.device,
            "backing": layer.under.node if backing and layer.under else None,
        }
        layer.recorded.begin_log()
        self._daemon.do(
            (
                "blockdev-add",
                {"driver": "blklogwrites", "node-name": layer.device, "file": file, "log": log},
            ),
            ("blockdev-add", node),
        )

    def _remove(self, layer: Layer) -> None:
        """Close the file."""
        self._daemon.do(
            ("blockdev-del", {"node-name": layer.node}),
            ("blockdev-del", {"node-name": layer.device}),
        )

    def _export(self) -> nbd.Connections:
        assert self._live is not None, "the disk is made"
        self._daemon.do(
            (
                "block-export-add",
                {
                    "type": "nbd",
                    "id": "e",
                    "node-name": self._live.node,
                    "name": self.export,
                    "writable": True,
                },
            )
        )
        return connected(self._daemon, self.export)

    def _unexport(self) -> None:
        assert self._device is not None, "it is exported"
        self._device.close()
        self._device = None
        self._daemon.do(("block-export-del", {"id": "e", "mode": "hard"}))

    def _shut(self) -> None:
        if self._device is not None:
            self._unexport()
            for layer in sorted(self._layers, key=lambda layer: -layer.depth):
                self._remove(layer)


def _nothing(daemon: storage_daemon.Daemon) -> None:
    """Do nothing: there is nothing to set up."""
