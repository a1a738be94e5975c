"""A disk as a chain of redo logs: the actions of specs/RedoLogChain.tla on a real device.

What is not flushed may be lost, a block at a time
(crash profile `block`); operations on snapshots flush, and count when the descriptor is durable.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns
from typing import Self

from refmodel.array import label as labels
from refmodel.array.array import RepairClock
from refmodel.array.component import Meter
from refmodel.core.errors import (
    DataLost,
    DiskError,
    NoSpace,
    NotADisk,
    SnapshotExists,
    UnknownOutcome,
)
from refmodel.core.validation import require_name, require_range, whole_blocks
from refmodel.engine.open_disk import OpenDisk
from refmodel.media.enclosure import Enclosure
from refmodel.redolog import chain
from refmodel.redolog import descriptor as descriptors
from refmodel.redolog.consolidation import Job
from refmodel.redolog.descriptor import BASE, Descriptor, Snapshot
from refmodel.redolog.geometry import RedoLogGeometry
from refmodel.redolog.layer import ABSENT, ZERO, Base, Blocks, Delta, Layer, TableCache
from refmodel.redolog.store import Store


class RedoLogDisk(OpenDisk):
    """One open disk: a refmodel.registry.Disk."""

    def __init__(self, enclosure: Enclosure, geometry: RedoLogGeometry) -> None:
        super().__init__(enclosure, geometry)
        self.store = Store(enclosure.device(0))
        self.tables = TableCache(geometry.table_cache)
        self.layers: dict[int, Layer] = {BASE: Base(geometry, self.store)}
        self.descriptor = Descriptor()
        self.job: Job | None = None  # the consolidation
        self.merged = 0  # blocks that consolidations moved
        self.dropped = 0  # layers that went at the end of one
        self._chains: dict[str | None, list[Layer]] = {}  # by view, the topmost layer first

    @classmethod
    def create(cls, path: Path, geometry: RedoLogGeometry, *, sync: bool = True) -> None:
        """Make a new disk in an empty or absent folder. Raises NotADisk if the folder is in use."""
        Enclosure.build(path, geometry.devices, geometry.device_bytes, 0)
        enclosure = Enclosure(path, sync=sync)
        try:
            disk = cls(enclosure, geometry)
            descriptors.write(disk.store, disk.descriptor, "foreground")
            disk.store.flush("foreground")
            labels.write(
                enclosure.device(0), labels.Label(uuid.uuid4().hex, uuid.uuid4().hex, 0, geometry)
            )
        finally:
            enclosure.close()

    @classmethod
    def _found(cls, enclosure: Enclosure, now: RepairClock) -> Self:
        if 0 not in enclosure.present():
            raise DataLost("the only device was pulled; bring it back")
        label = labels.read(enclosure.device(0))
        if label is None or not isinstance(label.geometry, RedoLogGeometry):
            raise NotADisk("the device has no good label of a redo-log chain")
        return cls(enclosure, label.geometry)

    def recover(self) -> None:
        """Load the newest descriptor and the directories that it needs. Raises DataLost."""
        self.descriptor = descriptors.newest(self.store)
        for slot in self.descriptor.used - {BASE}:
            self.layers[slot] = Delta(slot, self.geometry, self.store, self.tables)
            self.layers[slot].load("recovery")

    @property
    def meters(self) -> dict[tuple[str, int], Meter]:
        return self.store.meters

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        self.write_many([(lba, data)])

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Writes that are in flight together: their entries become durable together. Of one block the last counts."""
        started = perf_counter_ns()
        size = self.geometry.block_bytes
        counts = whole_blocks(self.geometry, writes)
        blocks: dict[int, bytes | None] = {}
        for (lba, data), count in zip(writes, counts):
            blocks |= {lba + at: data[at * size : (at + 1) * size] for at in range(count)}
        self._change("write", lambda: self._put(blocks))
        for count in counts:
            self.operations.add("write", started, count)

    def unmap(self, lba: int, count: int) -> None:
        """Zeroes that hide what is below. Raises Unsupported for a format that has none."""
        started = perf_counter_ns()
        if "unmap" not in self.geometry.capabilities:
            raise self._lacks("unmap")
        require_range(self.geometry, lba, count)
        self._change("unmap", lambda: self._put(dict.fromkeys(range(lba, lba + count))))
        self.operations.add("unmap", started, count)

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        started = perf_counter_ns()
        self._require_usable()
        layers = self._chain(view)
        require_range(self.geometry, lba, count)
        data = self._guarded(self._read, layers, range(lba, lba + count))
        self.operations.add("read", started, count)
        return b"".join(data.values())

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """Which blocks are not unmapped: the base is flat, so it maps what was never written."""
        self._require_usable()
        layers = self._chain(view)
        require_range(self.geometry, lba, count)
        places = self._guarded(chain.places, layers, range(lba, lba + count), "foreground")
        return [at for at, place in places.items() if place != ZERO]

    def snapshots(self) -> list[str]:
        return list(self.descriptor.snapshots)

    def identity(self, name: str) -> int:
        return self.descriptor.snapshot(name).id

    def snapshot(self, name: str) -> None:
        """Live goes on in a new delta. Raises NoSpace if there are as many layers as there may be."""
        require_name(name)
        if name in self.descriptor.snapshots:
            raise SnapshotExists(f"a snapshot named {name!r} exists")
        self._timed("snapshot", self._snapshot, name)

    def delete(self, name: str) -> None:
        """Forget a snapshot. A layer that nobody else needs is forgotten with it, or consolidated in the background."""
        require_name(name)
        self.descriptor.snapshot(name)
        self._timed("delete", self._delete, name)

    def revert(self, name: str) -> None:
        """Live goes on in an empty delta on the snapshot."""
        require_name(name)
        self.descriptor.snapshot(name)
        self._timed("revert", self._revert, name)

    def flush(self) -> None:
        started = perf_counter_ns()
        self._require_usable()
        self._guarded(self.store.flush, "foreground")
        self.operations.add("flush", started)

    def close(self) -> None:
        if not self._broken:
            self.store.flush("foreground")
        self.abandon()

    # What otherwise happens by itself.

    def checkpoint(self) -> None:
        """There is none: the tables are written through."""
        self.flush()

    def clean(self) -> bool:
        """Finish one consolidation. Says whether there was any."""
        self._require_usable()
        dropped = self.dropped
        while self.dropped == dropped and self._guarded(self._step):
            pass
        return self.dropped > dropped

    def settle(self) -> None:
        """Finish all consolidations."""
        self._require_usable()
        while self._guarded(self._step):
            pass

    def background(self) -> bool:
        """One step of a consolidation. Says whether there was anything to do."""
        self._require_usable()
        return self._guarded(self._step)

    # How it is done.

    def _read(self, layers: list[Layer], lbas: range) -> dict[int, bytes]:
        return chain.read(
            self.store,
            chain.places(layers, lbas, "foreground"),
            self.geometry.block_bytes,
            "foreground",
        )

    def _put(self, blocks: Blocks) -> None:
        self.layers[self.descriptor.live].put(blocks, "foreground")
        self._redone(blocks)

    def _redone(self, blocks: Blocks) -> None:
        """What of live has changed has to be merged again."""
        if self.job is not None and self.job.upper == self.descriptor.live:
            for lba in blocks:
                self.job.redone(lba)

    def _snapshot(self, name: str) -> None:
        top = self._fresh(reserve=1)
        old = self.descriptor
        snapshots = {**old.snapshots, name: Snapshot(old.live, old.next_id)}
        self._replace(
            replace(
                old,
                live=top,
                snapshots=snapshots,
                parents={**old.parents, top: old.live},
                next_id=old.next_id + 1,
            ),
            "foreground",
        )

    def _delete(self, name: str) -> None:
        snapshots = {
            other: kept for other, kept in self.descriptor.snapshots.items() if other != name
        }
        self._replace(replace(self.descriptor, snapshots=snapshots), "foreground")

    def _revert(self, name: str) -> None:
        top = self._fresh(reserve=0)
        old = self.descriptor
        self._replace(
            replace(old, live=top, parents={**old.parents, top: old.snapshot(name).top}),
            "foreground",
        )

    def _fresh(self, reserve: int) -> int:
        """An empty layer. Raises NoSpace if no more than a reserve of slots is free, whatever is consolidated."""
        while len(self.layers) + reserve >= self.geometry.layers:
            if not self._step():
                raise NoSpace(
                    f"the chain has {len(self.layers)} layers, of {self.geometry.layers} that it may have"
                )
        slot = min(set(range(self.geometry.layers)) - set(self.layers))
        layer = Delta(slot, self.geometry, self.store, self.tables)
        layer.begin("foreground")
        self.layers[slot] = layer
        return slot

    def _replace(self, new: Descriptor, cause: str) -> None:
        """Make another descriptor count, after everything that came before, and forget what it does not need."""
        self.store.flush(cause)
        new = replace(new, sequence=self.descriptor.sequence + 1)
        new = replace(new, parents={layer: new.parents[layer] for layer in new.used - {BASE}})
        descriptors.write(self.store, new, cause)
        self.store.flush(cause)
        self.descriptor = new
        self.layers = {slot: layer for slot, layer in self.layers.items() if slot in new.used}
        self._chains.clear()
        if self.job is not None and not {self.job.lower, self.job.upper} <= new.used:
            self.job = None

    def _step(self) -> bool:
        """One step of a consolidation, if there is any to be made."""
        if self.job is None:
            return self._consolidate()
        if self.job.done:
            self._drop()
        else:
            self._merge()
        return True

    def _consolidate(self) -> bool:
        pair = self.descriptor.lone()
        if pair is None:
            return False
        self.job = Job(*pair, self.geometry.blocks)
        self._emit("consolidate", way="down", lower=pair[0], upper=pair[1])
        return True

    def _merge(self) -> None:
        """A step: the lower layer takes some of what the upper one has."""
        places = chain.places(
            [self.layers[self.job.upper]], self.job.due(self.layers[self.job.upper]), "consolidate"
        )
        held = {lba: place for lba, place in places.items() if place is not ABSENT}
        data = chain.read(self.store, held, self.geometry.block_bytes, "consolidate")
        if held:
            self.layers[self.job.lower].put(
                {lba: None if held[lba] == ZERO else data[lba] for lba in held}, "consolidate"
            )
        self.merged += len(held)

    def _drop(self) -> None:
        """The upper layer goes; what stood or ended on it stands or ends on the lower one."""
        old, lower, upper = self.descriptor, self.job.lower, self.job.upper
        moved = {
            slot: lower if parent == upper else parent
            for slot, parent in old.parents.items()
            if slot != upper
        }
        snapshots = {
            name: replace(held, top=lower) if held.top == upper else held
            for name, held in old.snapshots.items()
        }
        self.job = None
        self._replace(
            replace(
                old,
                live=lower if old.live == upper else old.live,
                snapshots=snapshots,
                parents=moved,
            ),
            "consolidate",
        )
        self.dropped += 1
        self._emit("drop", lower=lower, upper=upper)

    def _chain(self, view: str | None) -> list[Layer]:
        """The layers that a view reads through, the topmost first. Raises NoSuchSnapshot."""
        if view not in self._chains:
            self._chains[view] = [self.layers[slot] for slot in self.descriptor.chain(view)]
        return self._chains[view]

    def _timed(self, name: str, work: Callable[..., None], *arguments: str) -> None:
        started = perf_counter_ns()
        self._change(name, lambda: work(*arguments))
        self.operations.add(name, started)

    def _change(self, name: str, work: Callable[[], None]) -> None:
        self._require_usable()
        self._guarded(self._step)
        try:
            work()
        except DiskError:
            raise  # it was refused before anything was changed
        except OSError as error:
            self._broken = True
            raise UnknownOutcome(f"{name} was cut short, open the disk again: {error}") from error
        except BaseException:
            self._broken = True
            raise


create, open_disk = RedoLogDisk.create, RedoLogDisk.open
