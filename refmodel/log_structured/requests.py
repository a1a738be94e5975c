"""The requests of a disk as processes: what users ask, in steps between which others may come.

A change is admitted alone: room is found for it, and its record goes to the log. Then others are
admitted while it waits for the log process, which makes all records that wait durable with one
flush, and their operations happen one after another in the order of the log. A read notes where
its chunks are, in one step, and pins their segments until it has read them.

Changes that are not yet durable are invisible: a request whose answer depends on a record in flight
waits until that has happened.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter_ns

from refmodel.core.errors import (
    DiskError,
    HostRefused,
    NoSpace,
    NoSuchSnapshot,
    SnapshotExists,
    UnknownOutcome,
)
from refmodel.core.time_spent import ROOM, spent_on
from refmodel.core.validation import (
    COUNT,
    LBA,
    block_count,
    require_name,
    require_range,
    require_ranges,
    whole_blocks,
)
from refmodel.engine.array_disk import ArrayDisk
from refmodel.engine.requests import joined
from refmodel.journal.record import (
    ONE_WRITE,
    OPERATIONS,
    SEVERAL_WRITES,
    Record,
    RecordKind,
)
from refmodel.log_structured.checkpointing import Checkpointer
from refmodel.log_structured.chunks.large_writes import payload_bytes
from refmodel.log_structured.cleaning import WRITES, Cleaning
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.loading import loaded
from refmodel.log_structured.space_reservation import SpaceReservation
from refmodel.log_structured.state import OF_VIEWS, DiskState
from refmodel.media.host import reason
from refmodel.runtime.effects import FLUSH, READ, TURN, WRITE, Effect, Process

RECLAIM_STEPS = 1  # steps of background reclaim before each change
# Deleted views that may wait before operations on views do background work, too: they leave it to
# writes, so what they cost does not depend on the size of the disk.
MOST_OWED = 32
FEW_OWED = 2  # the same, where nodes are small so that a small disk is like a large one


class Requests:
    """The requests of one disk, each a process, which raises what the disk's method raises.

    An error behind the point of no return makes the disk unusable, and every request in flight ends
    with UnknownOutcome.
    """

    def __init__(
        self,
        disk: ArrayDisk[Geometry],
        state: DiskState,
        space: SpaceReservation,
        cleaning: Cleaning,
        checkpoints: Checkpointer,
    ) -> None:
        self._disk = disk
        self._state = state
        self._space = space
        self._cleaning = cleaning
        self._checkpoints = checkpoints
        self._most_owed = FEW_OWED if state.geometry.fanout else MOST_OWED
        self._admitting = False  # whether a change is being admitted
        self._error: Exception | None = None  # the error that made the disk unusable

    # What users ask.

    def write(self, lba: int, data: bytes) -> Process[None]:
        """Write whole blocks from `lba` on."""
        geometry = self._state.geometry
        count = block_count(geometry, len(data))
        require_range(geometry, lba, count)
        record = Record(ONE_WRITE, lba, count, data=data)
        if (
            len(data) < geometry.segment_bytes
            or geometry.reduces
            and self._state.log.could_ever_fit(record.stored_bytes)
        ):
            yield from self._change(record, [count])
        else:
            yield from self._write_large(record)

    def write_many(self, writes: list[tuple[int, bytes]]) -> Process[None]:
        """Write several extents, each an LBA and whole blocks, in one record of the log."""
        counts = whole_blocks(self._state.geometry, writes)
        yield from self._change(Record(SEVERAL_WRITES, count=sum(counts), writes=writes), counts)

    def unmap(self, lba: int, count: int) -> Process[None]:
        """Let `count` blocks from `lba` on read as zeroes."""
        require_range(self._state.geometry, lba, count)
        yield from self._change(Record(RecordKind.UNMAP, lba, count), [count])

    def read_many(
        self, reads: list[tuple[int, int]], view: str | None = None
    ) -> Process[list[bytes]]:
        """Return the data of extents, each an LBA and a count."""
        started = perf_counter_ns()
        chunks, segments = self._state.chunks, self._state.segments
        if not self._state.pages.has_all():
            yield READ  # others may come before nodes are read
        counts = [*map(COUNT, reads)]
        found, extents = chunks.locate(self._chunks_of(reads, counts, view))
        if extents:
            pinned = segments.pin(extents)
            try:
                yield READ
                found = chunks.fetch(found, extents)
            finally:
                segments.unpin(pinned)
        self._disk.operations.add("read", started, counts)
        return joined(found, counts)

    def read(self, lba: int, count: int = 1, view: str | None = None) -> Process[bytes]:
        """Return `count` blocks from `lba` on, of a snapshot, or of live if `view` is None."""
        return (yield from self.read_many([(lba, count)], view))[0]

    def snapshot(self, name: str) -> Process[None]:
        """Take a snapshot of live."""
        require_name(name)

        def check() -> None:
            if name in self._state.views.names:
                raise SnapshotExists(f"a snapshot named {name!r} exists")

        yield from self._change(Record(RecordKind.SNAPSHOT, name=name), check=check)

    def delete(self, name: str) -> Process[None]:
        """Delete a snapshot; what only it held is freed later."""
        record = Record(RecordKind.DELETE, name=name)
        yield from self._change(record, refusable=False, check=lambda: self._require(name))

    def revert(self, name: str) -> Process[None]:
        """Make live what the snapshot is; every snapshot stays."""
        record = Record(RecordKind.REVERT, name=name)
        yield from self._change(record, check=lambda: self._require(name))

    def flush(self) -> Process[None]:
        """Make everything durable that was called before. What happens at its flush has done so."""
        started = perf_counter_ns()
        self._disk.require_usable()
        state, last = self._state, self._state.log.sequence - 1
        if state.in_flight:
            yield self._until(
                "applied", lambda: not state.in_flight or state.in_flight[0].sequence > last
            )
            self._disk.require_usable()
        yield FLUSH
        state.log.flush()
        self._disk.operations.add("flush", started)

    # Background.

    def log(self) -> Process[None]:
        """Make records durable, all that wait together, and let them happen in their order."""
        state = self._state
        records = Effect("records", lambda: bool(state.in_flight) and not self._disk.broken)
        while True:
            yield records
            yield FLUSH
            last = state.log.sequence - 1
            try:
                state.log.flush()
                while state.in_flight and state.in_flight[0].sequence <= last:
                    state.log_append()
                    if state.in_flight:
                        yield TURN
            except (DiskError, OSError) as error:
                self._disk.broken, self._error = True, error
            except (Exception, KeyboardInterrupt):
                self._disk.broken = True
                raise

    # How it is done.

    def _chunks_of(
        self, reads: list[tuple[int, int]], counts: list[int], view: str | None
    ) -> list[int | None]:
        """Return the chunk of each block of extents of `counts` blocks each, as it is now."""
        self._disk.require_usable()
        views = self._state.views
        source = views.live if view is None else views.named(view)
        require_ranges(self._state.geometry, reads)
        lbas = (
            [at for lba, count in reads for at in range(lba, lba + count)]
            if sum(counts) > len(counts)
            else [*map(LBA, reads)]
        )
        return source.map.get_many(lbas)

    def _write_large(self, write: Record) -> Process[None]:
        """Write a segment or more to the capacity leg, and only where it is to the log."""
        large_writes = self._state.large_writes
        payload = bytes(payload_bytes(self._state.geometry, len(write.data)))
        record = Record(RecordKind.PLACE, write.lba, write.count, data=payload)

        def place() -> None:
            record.data = large_writes.place(write.data)

        yield from self._change(record, [write.count], place=place)

    def _change(
        self,
        record: Record,
        counts: Sequence[int] = (),
        *,
        refusable: bool = True,
        check: Callable[[], None] | None = None,
        place: Callable[[], None] | None = None,
    ) -> Process[None]:
        """Log an operation and make it happen. `counts` says how many blocks each of its parts has.

        `check` says why it has to be refused. `place` runs when there is space, and before the
        operation is logged.
        """
        started, state = perf_counter_ns(), self._state
        kind = OPERATIONS[record.kind]
        while self._admitting:
            yield Effect("turn", lambda: not self._admitting)
        self._admitting = True
        try:
            if not state.pages.has_all():
                yield from loaded(self._disk, state, record)
            if check is not None:
                if state.speaks_of(record.name):
                    yield self._until("names", lambda: not state.in_flight)
                check()
            self._disk.require_writable()
            if not self._disk.guarded(self._work, record, refusable):
                yield from self._room(record, refusable)
            if place is not None:
                yield WRITE
                self._disk.guarded(place)
            try:
                state.submit(record)
            except (DiskError, OSError) as error:
                raise self._cut_short(kind, error) from error
            except (Exception, KeyboardInterrupt):
                self._disk.broken = True
                raise
        finally:
            self._admitting = False
        if state.in_flight:
            disk = self._disk
            yield Effect("applied", lambda: not state.awaits(record) or disk.broken)
        if self._disk.broken:
            raise self._cut_short(kind, self._error) from self._error
        if state.chunks.may_fill_segment():
            try:
                with suppress(HostRefused):  # data that the host refuses stays in the bank
                    for _ in state.chunks.destages():
                        yield WRITE
            except (DiskError, OSError) as error:
                raise self._cut_short(kind, error) from error
        self._disk.operations.add(kind, started, counts)

    def _room(self, record: Record, refusable: bool) -> Process[None]:
        """Wait until there is space for an operation: those in flight happen first, or end."""
        state, disk, found = self._state, self._disk, False
        reserve = spent_on(ROOM)(self._reserve)  # called by `_work`, it is measured already
        while not found:
            if state.in_flight:
                yield self._until("room", lambda: not state.in_flight)
            else:
                yield self._until("reads", lambda: not state.segments.held_by_reads)
            disk.require_writable()
            found = disk.guarded(reserve, record, refusable)

    @spent_on(ROOM)
    def _work(self, record: Record, refusable: bool) -> bool:
        """Do the background work that a change earns, then find space for it.

        An operation on views earns none, until many deleted views wait. Returns False if something
        in flight has to end before.
        """
        state = self._state
        pays = record.kind not in OF_VIEWS or len(state.views.deleted) > self._most_owed
        if pays:
            state.survey.keep_up()
            state.merge(record.count)
        else:
            state.survey.finish_if_scarce()
        try:
            if not self._cleaning.step(record):
                writes, soon = record.kind in WRITES, self._space.soon_lacking(record)
                self._checkpoints.step(
                    record.stored_bytes, soon, blocks=record.count, freezes=writes
                )
        except HostRefused:
            pass  # it is tried again, and must be done only when the log is full
        for _ in range(RECLAIM_STEPS if pays and state.views.deleted else 0):
            state.reclaimer.reclaim()
        if not state.in_flight:
            return self._reserve(record, refusable)
        if not self._disk.array.redundant or not self._space.has_room(record, refusable):
            return False
        state.log.allocate(record.stored_bytes)
        return True

    def _reserve(self, record: Record, refusable: bool) -> bool:
        """Find space while nothing is in flight; False if reads hold what might be freed."""
        if not self._disk.array.redundant:
            self._disk.repair()  # before space is reserved: its checkpoint takes a segment
        try:
            self._space.reserve(record, refusable)
        except NoSpace:
            if not self._state.segments.held_by_reads:
                raise
            return False
        return True

    def _until(self, what: str, ready: Callable[[], bool]) -> Effect:
        """Wait until something holds, or the disk has become unusable."""
        return Effect(what, lambda: ready() or self._disk.broken)

    def _cut_short(self, kind: str, error: Exception | None) -> UnknownOutcome:
        """Return the end of an operation that may have happened: the disk is unusable."""
        self._disk.broken, self._error = True, error
        return UnknownOutcome(f"{kind} was cut short, open the disk again: {reason(error)}")

    def _require(self, name: str) -> None:
        if name not in self._state.views.names:
            raise NoSuchSnapshot(f"there is no snapshot named {name!r}")
