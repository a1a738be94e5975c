"""Consolidation: two layers become one in the background, so that chains get shorter.

A layer that no view ends in, and that has one layer directly above it, takes over the blocks of
that upper layer, which then goes (specs/RedoLogChain.tla calls it the way "down").

It is done in steps of a few blocks. Writes, snapshots and crashes come in between: a block that the
live disk writes to the upper layer is merged again. After a crash the consolidation begins anew: a
block of the lower layer is hidden where the upper layer has one.
"""

from collections.abc import Iterable
from dataclasses import replace

from refmodel.core.events import Events
from refmodel.redolog import chain
from refmodel.redolog.geometry import RedoLogGeometry
from refmodel.redolog.layer import ABSENT, ZERO, Layer
from refmodel.redolog.layer_tree import LayerTree
from refmodel.redolog.store import Store

STEP = 16  # blocks that a step looks at
CAUSE = "consolidate"  # device I/O is counted under it


class Job:
    """The merge of the layer `upper` into `lower`: which blocks are done."""

    def __init__(self, lower: int, upper: int, blocks: int) -> None:
        self.lower = lower
        self.upper = upper
        self._blocks = blocks
        self._cursor = 0  # blocks before it are done,
        self._again: set[int] = set()  # except these

    @property
    def done(self) -> bool:
        """True if every block is done."""
        return self._cursor >= self._blocks and not self._again

    def redo(self, lba: int) -> None:
        """Note that a block of the upper layer has changed and has to be merged again."""
        if lba < self._cursor:
            self._again.add(lba)

    def advance(self, upper: Layer) -> list[int]:
        """Return the blocks of the next step, which count as done from now on."""
        if self._cursor < self._blocks:
            first = upper.next_extent(self._cursor)
            self._cursor = min(first + STEP, self._blocks)
            return list(range(first, self._cursor))
        due = sorted(self._again)[:STEP]
        self._again.difference_update(due)
        return due


class Consolidation:
    """The consolidations of one open disk, one after another."""

    def __init__(
        self, tree: LayerTree, store: Store, geometry: RedoLogGeometry, events: Events
    ) -> None:
        self._tree = tree
        self._store = store
        self._geometry = geometry
        self._events = events
        self._job: Job | None = None
        self.merged = 0  # blocks that were copied to a lower layer
        self.dropped = 0  # layers that went at the end of a consolidation

    def step(self) -> bool:
        """Do one step. Returns whether there was any to do. Raises DataLost."""
        job = self._job
        if job is None:
            return self._begin()
        if job.done:
            self._drop(job)
        else:
            blocks = self.next_blocks(job)
            if blocks:
                self._tree.layers[job.lower].put(blocks, CAUSE)
            self.merged += len(blocks)
        return True

    def choose(self) -> tuple[int, int] | None:
        """Return the layers (lower, upper) to merge next; None if there are none."""
        return self._tree.descriptor.mergeable()

    def next_blocks(self, job: Job) -> dict[int, bytes | None]:
        """Return the blocks of the next step with their data, None for unmapped ones.

        They count as done from now on. Raises DataLost.
        """
        upper = self._tree.layers[job.upper]
        found = chain.look_up([upper], job.advance(upper), CAUSE)
        held = {lba: offset for lba, offset in found.items() if offset is not ABSENT}
        data = chain.read(self._store, held, self._geometry.block_bytes, CAUSE)
        return {lba: None if held[lba] == ZERO else data[lba] for lba in held}

    def live_changed(self, lbas: Iterable[int]) -> None:
        """Note that blocks of the live disk have changed; those merged already are merged again."""
        if self._job is not None and self._job.upper == self._tree.descriptor.live:
            for lba in lbas:
                self._job.redo(lba)

    def layers_changed(self) -> None:
        """Note that layers may have gone: a consolidation of one that is gone ends."""
        job = self._job
        if job is not None and not {job.lower, job.upper} <= self._tree.descriptor.used:
            self._job = None

    def _begin(self) -> bool:
        pair = self.choose()
        if pair is None:
            return False
        self._job = Job(*pair, self._geometry.blocks)
        self._events.emit("consolidate", way="down", lower=pair[0], upper=pair[1])
        return True

    def _drop(self, job: Job) -> None:
        """Remove the upper layer: what stood on it, or ended in it, moves to the lower one."""
        old, lower, upper = self._tree.descriptor, job.lower, job.upper
        parents = {
            slot: lower if parent == upper else parent
            for slot, parent in old.parents.items()
            if slot != upper
        }
        snapshots = {
            name: replace(held, top=lower) if held.top == upper else held
            for name, held in old.snapshots.items()
        }
        live = lower if old.live == upper else old.live
        self._job = None
        self._tree.install(replace(old, live=live, snapshots=snapshots, parents=parents), CAUSE)
        self.dropped += 1
        self._events.emit("drop", lower=lower, upper=upper)
