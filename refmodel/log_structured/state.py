"""The disk in memory: its maps, chunks and views, and what each operation makes of them.

`apply` is the one place where an operation takes effect: for a request that was just logged and for a record that is replayed.
"""

from collections.abc import Callable, Iterable, Sequence

from refmodel.array.array import Array
from refmodel.core.errors import DataLost
from refmodel.journal import checkpoint as checkpoints
from refmodel.journal.checkpoint import Checkpoint
from refmodel.journal.durable_log import DurableLog
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.chunks.chunk_store import Chunks
from refmodel.log_structured.chunks.segments import Segments
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.cow_btree import LAST, Tree
from refmodel.log_structured.maps.page_store import Pages
from refmodel.log_structured.reclaim import Reclaim
from refmodel.log_structured.views import Views


class State:
    def __init__(self, array: Array[Geometry]) -> None:
        self.geometry = geometry = array.geometry
        self.performance = performance = array.performance
        self.capacity = capacity = array.capacity
        self.emit = emit = array.events.emit
        self.clock = array.clock
        self.log = DurableLog(performance, geometry.log_base, geometry.log_bytes, array.events)
        self.pages = Pages(performance, geometry, self.clock)
        self.segments = Segments(self.pages, geometry)
        self.chunks = Chunks(capacity, self.pages, self.segments, geometry, emit)
        self.views = Views(self.pages, geometry.fanout)
        self.reclaim = Reclaim(self.views, self.pages, self.chunks, emit)
        self.checkpoint_number = 0
        self._made: list[int] = []  # by the operation that is being applied: MBAs,
        self._taken: list[int] = []  # segments that were placed
        self._dropped: list[int] = []  # and MBAs again
        self.on_checkpoint: Callable[[], None] = lambda: None  # called when one counts

    # What operations do.

    def apply(self, record: Record) -> None:
        """Make the operation of a durable record happen."""
        match record.kind:
            case RecordKind.WRITES:
                self._write(record.writes, record.count)
            case RecordKind.WRITE:
                self._write([(record.lba, record.data)], record.count)
            case RecordKind.PLACE:
                self._place(record.lba, record.data)
            case RecordKind.UNMAP:
                self._unmap(record.lba, record.count)
            case RecordKind.SNAPSHOT:
                self.views.snapshot(record.name)
            case RecordKind.DELETE:
                self.views.delete(record.name)
            case RecordKind.REVERT:
                self.views.revert(record.name)
        self.emit("apply", mbas=self._made, segments=self._taken, dropped=self._dropped)
        self._made, self._taken, self._dropped = [], [], []

    def _write(self, writes: Sequence[tuple[int, bytes]], count: int) -> None:
        """Make writes of so many blocks happen, one after another: of a block only the last counts."""
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
        replaced = self.views.live.map.replace(lbas, mbas)
        self.chunks.add(mbas, data.values(), replaced)
        self._drop(lbas, replaced)
        self._made += mbas

    def _place(self, lba: int, payload: bytes) -> None:
        """A write whose whole segments are on the capacity leg already; the rest of its data follows their table."""
        placed, data = self.chunks.placed(payload)
        for segment, checksums in placed:
            first = self.clock.advance(len(checksums))
            mbas = range(first, first + len(checksums))
            self._made += mbas
            self._taken.append(segment)
            self.chunks.take(segment, mbas, checksums)
            lbas = range(lba, lba + len(mbas))
            self._drop(lbas, self.views.live.map.replace(lbas, mbas))
            lba = lbas.stop
        if data:
            self._write([(lba, data)], len(data) // self.geometry.block_bytes)

    def _unmap(self, lba: int, count: int) -> None:
        for mapped in [lba for lba, _ in self.views.live.map.items(lba, lba + count)]:
            self._drop([mapped], [self.views.live.map.remove(mapped)])

    def _drop(self, lbas: Iterable[int], mbas: Iterable[int | None]) -> None:
        """Live no longer holds the chunks at the blocks."""
        alone, owns_alone = self.views.live_alone, self.views.owns_alone
        dropped = [
            mba
            for lba, mba in zip(lbas, mbas)
            if mba is not None and (alone or owns_alone(lba, mba))
        ]
        self.chunks.drop(dropped)
        self._dropped += dropped

    def settle(self) -> None:
        """Put what waits in memory into the maps, for whoever looks at them."""
        self.chunks.settle()
        self.views.live.map.settle()

    @property
    def service_maps(self) -> tuple[Tree, ...]:
        """All maps but the logical ones."""
        return (
            self.views.table,
            self.chunks.middle,
            self.segments.owners,
            self.segments.table,
            *self.chunks.sharing.maps,
        )

    # The steps of a checkpoint.

    def checkpoint(self) -> None:
        """Make the maps durable, so that the log may be forgotten and what only older checkpoints needed is free."""
        self.chunks.destage_all()
        self.write_maps()
        slot = self.describe()
        self.commit(slot)
        self.emit("checkpoint_commit", number=slot.number)
        self.log.truncate()
        self.pages.checkpointed()
        self.emit("truncate")
        for segment in self.segments.checkpointed():
            self.emit("free", segment=segment)
        self.on_checkpoint()

    def write_maps(self) -> None:
        """Write everything that the slot will refer to, and wait until it is durable."""
        self.segments.store()
        self.views.store()
        self.pages.write_dirty()
        self.capacity.flush("checkpoint")
        self.log.flush("checkpoint")
        self.emit(
            "checkpoint_nodes",
            number=self.checkpoint_number + 1,
            usage=self.segments.usage,
            pages=self.pages.stripes,
        )

    def describe(self) -> Checkpoint:
        """The checkpoint of this moment."""
        return Checkpoint(
            number=self.checkpoint_number + 1,
            clock=self.clock.now,
            log_tail=self.log.head,
            log_sequence=self.log.sequence,
            log_generation=self.log.generation,
            next_view=self.views.next_id,
            middle=self.chunks.middle.root,
            owners=self.segments.owners.root,
            usage=self.segments.table.root,
            views=self.views.table.root,
            fingerprints=self.chunks.sharing.index.root,
            references=self.chunks.sharing.references.root,
        )

    def commit(self, slot: Checkpoint) -> None:
        """The moment at which the checkpoint counts."""
        checkpoints.write(self.performance, slot)
        self.performance.flush("checkpoint")
        self.checkpoint_number = slot.number

    # Recovery.

    def recover(self, loaded: Callable[[], None]) -> None:
        """Load the newest checkpoint, then replay the log behind it, one record a step.

        `loaded` is called between the two.
        """
        slot = self.load()
        loaded()
        replayed = 0
        for record in self.log.recover(slot.log_tail, slot.log_sequence, slot.log_generation):
            self.emit("replay", **record.facts)
            if record.kind is not RecordKind.OPEN:
                self.apply(record)
            replayed += 1
        self.emit("recover", checkpoint=slot.number, replayed=replayed)

    def load(self) -> Checkpoint:
        """Take over the newest checkpoint. Raises DataLost if none is whole."""
        slot = checkpoints.recover_newest(self.performance)
        self.checkpoint_number = slot.number
        self.clock.now = slot.clock
        self.clock.durable = self.clock.tick()
        self.segments.load(slot.owners, slot.usage)
        self.chunks.middle.root = slot.middle
        self.chunks.sharing.index.root, self.chunks.sharing.references.root = (
            slot.fingerprints,
            slot.references,
        )
        self.views.load(slot.views, slot.next_view)
        for tree in self.service_maps:
            self._mark(tree, tree.root, 0, LAST)
        for view in self.views.by_id.values():
            self._mark(view.map, view.map.root, view.cursor, LAST)
        self.pages.marked()
        self.emit(
            "load",
            number=slot.number,
            sequence=slot.log_sequence,
            deleted=len(self.views.deleted),
            usage=self.segments.usage,
            pages=self.pages.stripes,
        )
        return slot

    def _mark(self, tree: Tree, page: int, low: int, end: int) -> None:
        """Mark the pages of a tree as in use, but for what a reclaim below `low` has freed."""
        if not page:
            return
        try:
            node = self.pages.get(page, tree.kind, "recovery")
        except DataLost:
            self.pages.mark_damaged(page, tree.kind)
            return
        if not self.pages.mark(node) or node.level == 0:
            return
        for at, child in enumerate(node.values):
            child_end = node.keys[at + 1] if at + 1 < len(node.keys) else end
            if child_end > low:
                self._mark(tree, child, low, child_end)
