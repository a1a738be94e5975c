"""The disk in memory: its maps, chunks and views, and the actions of the specs that change them.

A method that is named as an action of specs/LogStructuredDisk.tla does what that action does:
`submit`, `log_append`, `freeze`, `checkpoint_nodes`, `checkpoint_commit`, `truncate`, `free`.
(`destage` is in chunks/chunk_store.py, `clean` in chunks/cleaner.py, `reclaim` in reclaim.py, and
`load`, `replay`, `recover` in recovery.py.)
"""

import errno
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from refmodel.array.array import Array
from refmodel.core.errors import HostRefused, NoSpace
from refmodel.journal import checkpoint as checkpoints
from refmodel.journal.checkpoint import Checkpoint
from refmodel.journal.durable_log import DurableLog
from refmodel.journal.record import ONE_WRITE, SEVERAL_WRITES, Record, RecordKind
from refmodel.log_structured.chunks.chunk_store import ChunkStore
from refmodel.log_structured.chunks.large_writes import LargeWrites
from refmodel.log_structured.chunks.segments import Segments
from refmodel.log_structured.chunks.space_usage import SpaceUsage
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.increments import Increments
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.maps.page_marking import LITTLE_AHEAD, READ_AHEAD
from refmodel.log_structured.maps.page_store import PageStore
from refmodel.log_structured.snapshots.reclaim import Reclaimer
from refmodel.log_structured.snapshots.tree_events import TreeEvents
from refmodel.log_structured.snapshots.views import View, Views
from refmodel.log_structured.survey import Survey, TreeAt

OF_VIEWS = frozenset((RecordKind.SNAPSHOT, RecordKind.DELETE, RecordKind.REVERT))
MERGED = 16  # changes that an operation merges for each block that it changes
MERGED_BEFORE_RECLAIM = 32  # changes that one step of reclaim merges
# The same numbers where nodes are small, so that a small disk is like a large one.
LEAST_MERGED, LEAST_MERGED_BEFORE_RECLAIM = 1, 4


class DiskState:
    """The state of one disk.

    Every action may raise DataLost, if devices cannot give what is needed.
    """

    def __init__(self, array: Array[Geometry]) -> None:
        self.array = array
        self.geometry = geometry = array.geometry
        self.performance = performance = array.performance
        self.capacity = capacity = array.capacity
        self.events = array.events
        self.emit = emit = array.events.emit
        self.clock = array.clock
        self.log = DurableLog(performance, geometry.log_base, geometry.log_bytes, array.events)
        self.pages = PageStore(performance, geometry, self.clock)
        self.segments = Segments(self.pages, geometry)
        self.chunks = ChunkStore(capacity, self.pages, self.segments, geometry, emit)
        self.large_writes = LargeWrites(capacity, self.chunks, geometry, emit)
        self.space_usage = SpaceUsage(self.chunks, geometry)
        self.views = Views(self.pages, geometry.fanout)
        leaves_ahead = LITTLE_AHEAD if geometry.fanout else READ_AHEAD
        self.survey = Survey(self.pages, self.segments, READ_AHEAD, leaves_ahead)
        self._merge_step = LEAST_MERGED if geometry.fanout else MERGED
        derived = (self.views.table, self.segments.owners)
        maps = [tree for tree in self.service_maps if tree not in derived]
        self.increments = Increments(array, self.pages, self.views, maps)
        self.trees = TreeEvents(self.views, self.pages, array.events)
        self.reclaimer = Reclaimer(
            self.views,
            self.pages,
            self.chunks,
            emit,
            self.trees,
            LEAST_MERGED_BEFORE_RECLAIM if geometry.fanout else MERGED_BEFORE_RECLAIM,
        )
        self.in_flight: deque[Record] = deque()  # in the log, and not yet applied; oldest first
        self.checkpoint_number = 0
        # For the event of a checkpoint: the stripes of the last whole one, and what was in use.
        self._whole_stripes: list[int] = []
        self._frozen_usage: list[tuple[int, int]] = []
        # What the operation that is being applied did, for its event.
        self._made: list[int] = []  # MBAs
        self._adopted: list[int] = []  # segments of a large write
        self._dropped: list[int] = []  # MBAs

    # Operations.

    def submit(self, record: Record) -> None:
        """Write the record of an operation to the log. With write-back, the operation happens."""
        self.log.append(record)
        if self.geometry.write_back:
            self.apply(record)
        else:
            self.in_flight.append(record)

    def log_append(self) -> None:
        """Make the operation of the oldest record in flight happen, which is durable by now."""
        self.apply(self.in_flight[0])
        self.in_flight.popleft()

    def awaits(self, record: Record) -> bool:
        """Return whether a record that was submitted is still in flight."""
        return bool(self.in_flight) and self.in_flight[0].sequence <= record.sequence

    def speaks_of(self, name: str) -> bool:
        """Return whether a record in flight is about a snapshot of this name."""
        return any([record.name == name for record in self.in_flight])

    def apply(self, record: Record) -> None:
        """Make the operation of a record happen in the maps: the only place where one takes effect.

        Raises NoSpace, DataLost, SnapshotExists, NoSuchSnapshot.
        """
        if record.kind in OF_VIEWS:
            self.trees.tell("merge")
        if (kind := record.kind) is ONE_WRITE:
            self._write([(record.lba, record.data)], record.count)
        elif kind is SEVERAL_WRITES:
            self._write(record.writes, record.count)
        elif kind is RecordKind.PLACE:
            self._adopt(record.lba, record.data)
        elif kind is RecordKind.UNMAP:
            self.unmap(record.lba, record.count)
        elif kind is RecordKind.SNAPSHOT:
            self.views.snapshot(record.name)
        elif kind is RecordKind.DELETE:
            self.views.delete(record.name)
        elif kind is RecordKind.REVERT:
            self.views.revert(record.name)
        if record.kind in OF_VIEWS:
            self.trees.tell(record.kind.name.lower())
        if self.events.record is not None:
            self.emit("apply", mbas=self._made, segments=self._adopted, dropped=self._dropped)
        self._made, self._adopted, self._dropped = [], [], []

    def _write(self, writes: Sequence[tuple[int, bytes]], count: int) -> None:
        """Make writes of `count` blocks happen, one after another: the last one to a block wins."""
        if count > len(writes):
            size = self.geometry.block_bytes
            writes = [
                (lba + at // size, data[at : at + size])
                for lba, data in writes
                for at in range(0, len(data), size)
            ]
        data = dict(writes)
        first = self.clock.advance(len(data))
        mbas = range(first, first + len(data))
        lbas = list(data)
        replaced = self.views.live_map.replace(lbas, mbas)
        self.chunks.add(mbas, data.values(), replaced)
        self.drop_from_live(lbas, replaced)
        self._made += mbas

    def _adopt(self, lba: int, payload: bytes) -> None:
        """Make a large write happen: its segments are on the capacity leg, the rest in the log."""
        placed, data = self.large_writes.parse(payload)
        for segment, checksums in placed:
            first = self.clock.advance(len(checksums))
            mbas = range(first, first + len(checksums))
            self._made += mbas
            self._adopted.append(segment)
            self.large_writes.adopt(segment, mbas, checksums)
            lbas = range(lba, lba + len(mbas))
            self.drop_from_live(lbas, self.views.live_map.replace(lbas, mbas))
            lba = lbas.stop
        if data:
            self._write([(lba, data)], len(data) // self.geometry.block_bytes)

    def unmap(self, lba: int, count: int) -> None:
        """Unmap `count` blocks of live from `lba` on."""
        live = self.views.live_map
        mapped = [lba for lba, _ in live.items(lba, lba + count)]
        self.drop_from_live(mapped, live.replace(mapped, [None] * len(mapped)))

    def drop_from_live(self, lbas: Iterable[int], mbas: Iterable[int | None]) -> None:
        """Drop chunks that live no longer maps at the LBAs, unless another view holds them."""
        if self.views.live_alone():
            dropped = [*filter(None, mbas)]  # no MBA is 0
        else:
            owns_alone = self.views.owns_alone
            dropped = [
                mba
                for lba, mba in zip(lbas, mbas, strict=True)
                if mba is not None and owns_alone(lba, mba)
            ]
        self.chunks.drop(dropped)
        self._dropped += dropped

    def update_maps(self) -> None:
        """Put into the maps what waits in memory. Raises NoSpace, DataLost."""
        self.chunks.remove_dropped()
        self.views.merge_all()

    def merge(self, blocks: int) -> bool:
        """Merge some of the changes that wait: as much as an operation on `blocks` blocks earns.

        Of the dropped chunks that wait to be removed, likewise. The price rises with the number of
        maps that wait, so it stays small. Returns whether nothing is left that has to be merged.
        Raises NoSpace, DataLost.
        """
        self.chunks.remove_if_many((1 + self._merge_step) * (blocks or 1))
        if not (frozen := len(self.views.frozen_maps)) and not self.views.live_map.is_merging():
            return True
        price = 1 + frozen // 4
        return self.views.merge(self._merge_step * price * (blocks or 1))

    @property
    def service_maps(self) -> tuple[Tree[Any], ...]:
        """All maps but the logical ones."""
        return (
            self.views.table,
            self.chunks.middle,
            self.segments.owners,
            self.segments.table,
            *self.chunks.deduplication.maps,
        )

    # A checkpoint; refmodel.log_structured.checkpointing takes it in steps.

    def freeze(self, *, whole: bool = False) -> Checkpoint:
        """Begin a checkpoint of this moment; the action Freeze of the specs. Returns its slot.

        It may be an increment of an earlier one if it need not be `whole`. The bank is destaged, so
        that the maps know where all data is. Raises NoSpace, DataLost; OSError if no segment is
        free: the host has refused checkpoints again and again. What they would have freed is free
        when the disk is opened again.
        """
        try:
            self.chunks.destage_all()
        except HostRefused:
            raise
        except NoSpace as error:
            raise OSError(errno.ENOSPC, str(error)) from error
        self.segments.store()
        self.views.merge_all()
        whole = whole or not self.increments.may_be_next()
        if whole:
            self.views.store()
            self.pages.freeze()
            self.increments.record()
        self.segments.freeze()
        frozen = self.describe()
        if whole:
            self.clock.freeze()
        else:
            frozen = self.increments.freeze(frozen)
            self.clock.tick()
        if self.events.record is not None:
            self._frozen_usage = self.segments.usage()
        if whole:
            self.note_whole()
        number, sequence = frozen.number, frozen.log_sequence
        self.emit("freeze", number=number, sequence=sequence, usage=self.segments.usage)
        if whole:
            self.trees.tell("freeze", number=frozen.number)
        else:
            self.trees.tell("merge")
        return frozen

    def note_whole(self) -> None:
        """Note which pages a whole checkpoint has, for the events of its increments."""
        if self.events.record is not None:
            self._whole_stripes = self.pages.stripes()

    @property
    def unwritten(self) -> int:
        """Number of pages of the frozen checkpoint that are left to write, at most."""
        return self.pages.frozen_count or self.increments.left

    def write_frozen(self, frozen: Checkpoint, most: int) -> None:
        """Write at most `most` pages of a frozen checkpoint. Raises DataLost.

        Then they may be written again.
        """
        if frozen.is_increment:
            self.increments.write(most, frozen.number)
        else:
            self.pages.write_frozen(most)

    def checkpoint_nodes(self, frozen: Checkpoint) -> None:
        """Wait until everything that the checkpoint refers to is durable; its nodes are written.

        The event names all that is in use: by the checkpoint, or by the maps as they are now.
        """
        self.flush_for_checkpoint()
        if self.events.record is not None:
            usage = {**dict(self._frozen_usage), **dict(self.segments.usage())}
            pages = sorted({*self._whole_stripes, *self.pages.stored_stripes()})
            self.emit("checkpoint_nodes", number=frozen.number, usage=[*usage.items()], pages=pages)

    def flush_for_checkpoint(self) -> None:
        """Make the segments, the pages and the log durable."""
        self.capacity.flush("checkpoint")
        self.log.flush("checkpoint")

    def describe(self) -> Checkpoint:
        """Return the checkpoint of this moment: the log behind it begins with what is in flight."""
        first = self.in_flight[0] if self.in_flight else None
        return Checkpoint(
            number=self.checkpoint_number + 1,
            clock=self.clock.now,
            log_tail=first.position if first else self.log.head,
            log_sequence=first.sequence if first else self.log.sequence,
            log_generation=first.generation if first else self.log.generation,
            next_view=self.views.next_id,
            middle=self.chunks.middle.root,
            owners=self.segments.owners.root,
            usage=self.segments.table.root,
            views=self.views.table.root,
            fingerprints=self.chunks.deduplication.index.root,
            references=self.chunks.deduplication.references.root,
            first_unused_page=self.pages.unused.first_unused,
            first_unused_segment=self.segments.first_fresh,
            sealed=self.segments.sealed_count,
            live=self.segments.live,
            pages=tuple(self.pages.used[kind] for kind in MapKind),
        )

    def checkpoint_commit(self, checkpoint: Checkpoint) -> None:
        """Write the slot of a checkpoint and make it durable: from then on it counts."""
        if checkpoint.is_increment:
            slot = self.increments.slot(checkpoint)
        else:
            slot = checkpoints.with_roots(checkpoint, self.pages.checksums.pointer)
        checkpoints.write(self.performance, slot)
        self.performance.flush("checkpoint")
        self.trees.tell("merge")
        self.checkpoint_number = checkpoint.number
        if not checkpoint.is_increment:
            self.increments.follow(slot)
        whole = checkpoint.whole or checkpoint.number
        self.emit("checkpoint_commit", number=checkpoint.number, whole=whole)

    def truncate(self, checkpoint: Checkpoint) -> None:
        """Let the log forget what the checkpoint holds, and free pages that waited for it."""
        self.log.truncate(checkpoint.log_tail)
        if not checkpoint.is_increment:
            self.pages.checkpoint_commit()
        self.emit("truncate")

    def free(self) -> None:
        """Free every segment that was dead when the newest checkpoint was frozen."""
        for segment in self.segments.free():
            self.emit("free", segment=segment)

    def trees_in_use(self) -> list[TreeAt]:
        """Return all maps, after they were loaded: roots, kinds, and the first keys that count."""
        service = [(tree.root, tree.kind, 0) for tree in self.service_maps]
        return service + [self.tree_of(view) for view in self.views.by_id.values()]

    def tree_of(self, view: View) -> TreeAt:
        """Return the map of a view, but what reclaim has freed of it."""
        root, kind = view.map.root, MapKind.LOGICAL
        if view.cursor:
            self.pages.lead_to(root, kind, view.cursor)
        return root, kind, view.cursor
