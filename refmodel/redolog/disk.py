"""A disk as a chain of redo logs: the actions of specs/RedoLogChain.tla on a real device.

A write that is not flushed may be lost, each block separately (crash profile `block`). Operations
on snapshots flush, and count when the descriptor is durable.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter_ns
from typing import Self

from refmodel.array import label as labels
from refmodel.array.array import RepairClock
from refmodel.array.component import Meter
from refmodel.core.errors import DataLost, DiskError, NotADisk, SnapshotExists, UnknownOutcome
from refmodel.core.events import Events
from refmodel.core.validation import require_name, require_range, whole_blocks
from refmodel.engine.open_disk import OpenDisk
from refmodel.media.enclosure import Enclosure, Folder
from refmodel.media.host import reason
from refmodel.redolog import chain
from refmodel.redolog import descriptor as descriptors
from refmodel.redolog.consolidation import Consolidation
from refmodel.redolog.descriptor import Descriptor, Snapshot
from refmodel.redolog.geometry import FLAVOURS, RedoLogGeometry
from refmodel.redolog.layer import ZERO, Blocks, Layer
from refmodel.redolog.layer_tree import LayerTree
from refmodel.redolog.store import Store


class RedoLogDisk(OpenDisk[RedoLogGeometry]):
    """One open disk."""

    engines = tuple(FLAVOURS)

    def __init__(self, enclosure: Enclosure, geometry: RedoLogGeometry) -> None:
        events = Events()
        super().__init__(enclosure, geometry, events)
        self.store = Store(enclosure.device(0))
        self.tree = LayerTree(geometry, self.store)
        self.consolidation = Consolidation(self.tree, self.store, geometry, events)

    @classmethod
    def create(cls, path: Folder, geometry: RedoLogGeometry, *, sync: bool = True) -> None:
        """Make a new disk in an empty or absent folder. Raises NotADisk if the folder is in use."""
        Enclosure.build(path, geometry.devices, geometry.device_bytes, 0)
        enclosure = Enclosure(path, sync=sync)
        try:
            disk = cls(enclosure, geometry)
            descriptors.write(disk.store, disk.tree.descriptor, "foreground")
            disk.store.flush("foreground")
            label = labels.Label(uuid.uuid4().hex, uuid.uuid4().hex, 0, geometry.as_dict())
            labels.write(enclosure.device(0), label)
        finally:
            enclosure.close()

    @classmethod
    def found_in(cls, enclosure: Enclosure, now: RepairClock) -> Self:
        """Return the disk in an enclosure, not yet recovered. Raises NotADisk, DataLost."""
        if 0 not in enclosure.present():
            raise DataLost("the only device was pulled; bring it back")
        label = labels.read(enclosure.device(0))
        if label is None or label.engine not in cls.engines:
            raise NotADisk("the device has no good label of a redo-log chain")
        return cls(enclosure, RedoLogGeometry(**label.geometry))

    def recover(self) -> None:
        """Load the newest descriptor and the directories of its layers. Raises DataLost."""
        self.tree.load()

    @property
    def meters(self) -> dict[tuple[str, int], Meter]:
        """Device I/Os and bytes, by leg ("metadata" or "data") and number of the device."""
        return self.store.meters

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises BadRequest, OutOfRange."""
        self.write_many([(lba, data)])

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do writes that are in flight together, each (LBA, whole blocks).

        Their table entries are written together. If blocks overlap, the last write counts. Raises
        BadRequest, OutOfRange.
        """
        started = perf_counter_ns()
        size = self.geometry.block_bytes
        counts = whole_blocks(self.geometry, writes)
        blocks: dict[int, bytes | None] = {}
        for (lba, data), count in zip(writes, counts, strict=True):
            blocks |= {lba + at: data[at * size : (at + 1) * size] for at in range(count)}
        self._change("write", lambda: self._put(blocks))
        for count in counts:
            self.operations.add("write", started, [count])

    def unmap(self, lba: int, count: int) -> None:
        """Make blocks read as zeroes, whatever is below. Raises OutOfRange.

        Raises Unsupported if the format has no unmap.
        """
        started = perf_counter_ns()
        if "unmap" not in self.geometry.capabilities:
            raise self.lacks("unmap")
        require_range(self.geometry, lba, count)
        self._change("unmap", lambda: self._put(dict.fromkeys(range(lba, lba + count))))
        self.operations.add("unmap", started, [count])

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on. Raises OutOfRange, NoSuchSnapshot, DataLost."""
        started = perf_counter_ns()
        self.require_usable()
        layers = self.tree.chain(view)
        require_range(self.geometry, lba, count)
        data = self.guarded(self._read, layers, range(lba, lba + count))
        self.operations.add("read", started, [count])
        return b"".join(data.values())

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """Return which of `count` blocks from `lba` on are not unmapped.

        The base is flat, so it maps blocks that were never written. Raises as `read` does.
        """
        self.require_usable()
        layers = self.tree.chain(view)
        require_range(self.geometry, lba, count)
        found = self.guarded(chain.look_up, layers, range(lba, lba + count), "foreground")
        return [at for at, offset in found.items() if offset != ZERO]

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots, oldest first."""
        return list(self.tree.descriptor.snapshots)

    def identity(self, name: str) -> int:
        """Return a number that no other snapshot ever has. Raises NoSuchSnapshot."""
        return self.tree.descriptor.snapshot(name).id

    def snapshot(self, name: str) -> None:
        """Take a snapshot: the live disk goes on in a new delta.

        Raises SnapshotExists, BadRequest, NoSpace if there are as many layers as there may be.
        """
        require_name(name)
        if name in self.tree.descriptor.snapshots:
            raise SnapshotExists(f"a snapshot named {name!r} exists")
        self._timed("snapshot", self._snapshot, name)

    def delete(self, name: str) -> None:
        """Delete a snapshot. Raises NoSuchSnapshot.

        A layer that no other view needs goes with it, or is consolidated in the background.
        """
        self.tree.descriptor.snapshot(name)
        self._timed("delete", self._delete, name)

    def revert(self, name: str) -> None:
        """Make the live disk a copy of a snapshot: it goes on in an empty delta on it.

        Raises NoSuchSnapshot, NoSpace.
        """
        self.tree.descriptor.snapshot(name)
        self._timed("revert", self._revert, name)

    def flush(self) -> None:
        """Make every acknowledged write durable."""
        started = perf_counter_ns()
        self.require_usable()
        self.guarded(self.store.flush, "foreground")
        self.operations.add("flush", started)

    def close(self) -> None:
        """Flush, and close the disk."""
        if not self.broken:
            self.store.flush("foreground")
        self.abandon()

    # Background work, on demand.

    def checkpoint(self) -> None:
        """Flush. There is no checkpoint: the tables are written through."""
        self.flush()

    def clean(self) -> bool:
        """Finish one consolidation. Returns whether there was any. Raises DataLost."""
        self.require_usable()
        dropped = self.consolidation.dropped
        while self.consolidation.dropped == dropped and self.guarded(self.consolidation.step):
            pass
        return self.consolidation.dropped > dropped

    def settle(self) -> None:
        """Finish all consolidations. Raises DataLost."""
        self.require_usable()
        while self.guarded(self.consolidation.step):
            pass

    def background(self) -> bool:
        """Do one step of a consolidation. Returns whether there was any. Raises DataLost."""
        self.require_usable()
        return self.guarded(self.consolidation.step)

    # How it is done.

    def _read(self, layers: list[Layer], lbas: range) -> dict[int, bytes]:
        found = chain.look_up(layers, lbas, "foreground")
        return chain.read(self.store, found, self.geometry.block_bytes, "foreground")

    def _put(self, blocks: Blocks) -> None:
        self.tree.live.put(blocks, "foreground")
        self.consolidation.live_changed(blocks)

    def _snapshot(self, name: str) -> None:
        top = self._add_layer(reserve=1)
        old = self.tree.descriptor
        new = replace(
            old,
            live=top,
            snapshots={**old.snapshots, name: Snapshot(old.live, old.next_id)},
            parents={**old.parents, top: old.live},
            next_id=old.next_id + 1,
        )
        self._install(new)

    def _delete(self, name: str) -> None:
        old = self.tree.descriptor
        left = {other: held for other, held in old.snapshots.items() if other != name}
        self._install(replace(old, snapshots=left))

    def _revert(self, name: str) -> None:
        top = self._add_layer(reserve=0)
        old = self.tree.descriptor
        parents = {**old.parents, top: old.snapshot(name).top}
        self._install(replace(old, live=top, parents=parents))

    def _add_layer(self, reserve: int) -> int:
        """Make an empty layer, and return its slot; `reserve` slots stay free.

        Layers are consolidated until there is room. Raises NoSpace if that does not help.
        """
        while not self.tree.has_room(reserve):
            if not self.consolidation.step():
                raise self.tree.full()
        return self.tree.add_layer()

    def _install(self, new: Descriptor) -> None:
        self.tree.install(new, "foreground")
        self.consolidation.layers_changed()

    def _timed(self, name: str, work: Callable[[str], None], snapshot: str) -> None:
        started = perf_counter_ns()
        self._change(name, lambda: work(snapshot))
        self.operations.add(name, started)

    def _change(self, name: str, work: Callable[[], None]) -> None:
        """Do an operation that changes the disk, after one step of a consolidation."""
        self.require_usable()
        self.guarded(self.consolidation.step)
        try:
            work()
        except DiskError:
            raise  # it was refused before anything was changed
        except OSError as error:
            self.broken = True
            raise UnknownOutcome(
                f"{name} was cut short, open the disk again: {reason(error)}"
            ) from error
        except BaseException:
            self.broken = True
            raise


create, open_disk = RedoLogDisk.create, RedoLogDisk.open
