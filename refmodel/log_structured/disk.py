"""The log-structured disk on real files: what users of the engine call.

    create(Path("d"), plan(blocks=1024))
    disk = open_disk(Path("d"))
    disk.write(3, bytes(4096)); disk.snapshot("s1"); disk.close()

An operation is written to the durable log, made durable unless write-back is on, and applied to
the maps in memory. Everything else (cleaning, checkpoints, reclaim) happens before it, when space
is reserved for it. Only destage also happens after it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from time import perf_counter_ns

from refmodel.array.array import Array
from refmodel.array.label import DEFAULT_ENGINE
from refmodel.core.errors import (
    BadRequest,
    DiskError,
    HostRefused,
    NoSuchSnapshot,
    SnapshotExists,
    UnknownOutcome,
)
from refmodel.core.validation import require_name, require_range, require_ranges, whole_blocks
from refmodel.engine.array_disk import ArrayDisk
from refmodel.journal.record import OPERATIONS, Record, RecordKind
from refmodel.log_structured.chunks.cleaner import Cleaner
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.resync import Resync
from refmodel.log_structured.space_reservation import SpaceReservation
from refmodel.log_structured.state import DiskState
from refmodel.media.enclosure import Enclosure

RECLAIM_STEPS = 1  # of background reclaim before each change


class LogStructuredDisk(ArrayDisk[Geometry]):
    """One open disk.

    Every method raises a DiskError if it is refused; then nothing has changed. UnknownOutcome means
    that an operation was cut short: it may or may not have happened, and the disk must be opened
    again. Logical block addresses (LBA) and counts are in blocks.
    """

    engines = (DEFAULT_ENGINE,)
    shape = Geometry
    legs_emit = True
    resync: Resync

    def __init__(self, enclosure: Enclosure, array: Array[Geometry]) -> None:
        super().__init__(enclosure, array)
        emit, policy = array.events.emit, array.geometry.cleaner
        self.state = DiskState(array, self._checkpointed)
        self.cleaner = Cleaner(self.state.chunks, self.state.space_usage, policy, emit)
        self.space = SpaceReservation(self.state, self.cleaner)
        self.resync = Resync(self.state, array)

    def recover(self) -> None:
        """Load the newest checkpoint, and replay the log behind it. Raises DataLost."""
        self.array.emit_members()
        self.state.recover(self.array.record_missing)
        self.resync.begin_all()

    @property
    def from_memory(self) -> Counter[str]:
        """Blocks that were read from the bank and not from a device, by cause."""
        return self.state.chunks.banked

    # The operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises OutOfRange, NoSpace, BadRequest, DataLost."""
        (count,) = whole_blocks(self.geometry, [(lba, data)])
        record = Record(RecordKind.WRITE, lba, count, data=data)
        if (
            len(data) < self.geometry.segment_bytes
            or self.geometry.reduces
            and self.state.log.could_ever_fit(record.stored_bytes)
        ):
            self._perform(record, [count])
        else:
            self._write_large(record)

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Write several extents, each an LBA and whole blocks, in one record of the log.

        After a power cut either all of them have happened, or none. Raises what `write` raises;
        then none of them has happened.
        """
        counts = whole_blocks(self.geometry, writes)
        self._perform(Record(RecordKind.WRITES, count=sum(counts), writes=writes), counts)

    def unmap(self, lba: int, count: int) -> None:
        """Let `count` blocks from `lba` on read as zeroes. Raises OutOfRange, NoSpace, DataLost."""
        require_range(self.geometry, lba, count)
        self._perform(Record(RecordKind.UNMAP, lba, count), [count])

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on, of a snapshot, or of live if `view` is None.

        Raises OutOfRange, NoSuchSnapshot, DataLost.
        """
        return self.read_many([(lba, count)], view)[0]

    def read_many(self, reads: list[tuple[int, int]], view: str | None = None) -> list[bytes]:
        """Return the data of extents, each an LBA and a count. Raises what `read` raises."""
        started = perf_counter_ns()
        self._require_usable()
        source = self.state.views.live if view is None else self.state.views.named(view)
        require_ranges(self.geometry, reads)
        counts = [count for _, count in reads]
        lbas = (
            [at for lba, count in reads for at in range(lba, lba + count)]
            if any([count > 1 for count in counts])
            else [lba for lba, _ in reads]
        )
        found = self.state.chunks.read_many(source.map.get_many(lbas))
        self.operations.add("read", started, *counts)
        if len(found) == len(counts):
            return found
        blocks = iter(found)
        return [b"".join(islice(blocks, count)) for count in counts]

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """Return which of `count` blocks from `lba` on a view maps; the others read as zeroes.

        Raises what `read` raises.
        """
        self._require_usable()
        source = self.state.views.live if view is None else self.state.views.named(view)
        require_range(self.geometry, lba, count)
        return [lba for lba, _ in source.map.items(lba, lba + count)]

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots, the oldest first."""
        return [view.name for view in self.state.views.in_order()]

    def identity(self, name: str) -> int:
        """Return a number that no other snapshot has, not even a later one of the same name.

        Raises NoSuchSnapshot.
        """
        return self.state.views.named(name).id

    def snapshot(self, name: str) -> None:
        """Take a snapshot of live.

        Raises SnapshotExists, BadRequest for a bad name, NoSpace, DataLost.
        """
        require_name(name)
        if name in self.state.views.names:
            raise SnapshotExists(f"a snapshot named {name!r} exists")
        self._perform(Record(RecordKind.SNAPSHOT, name=name))

    def delete(self, name: str) -> None:
        """Delete a snapshot; what only it held is freed later. Raises NoSuchSnapshot."""
        self._require_snapshot(name)
        self._perform(Record(RecordKind.DELETE, name=name), refusable=False)

    def revert(self, name: str) -> None:
        """Make live what the snapshot is; every snapshot stays. Raises NoSuchSnapshot, NoSpace."""
        self._require_snapshot(name)
        self._perform(Record(RecordKind.REVERT, name=name))

    def flush(self) -> None:
        """Make everything durable that was acknowledged."""
        started = perf_counter_ns()
        self._require_usable()
        self.state.log.flush()
        self.operations.add("flush", started)

    def close(self) -> None:
        """Flush, and close the disk."""
        if not self._broken and self.array.writable:
            self.state.log.flush()
        self.abandon()

    # What otherwise happens by itself.

    def checkpoint(self) -> None:
        """Write a checkpoint, and truncate the log. Raises NoSpace, DataLost."""
        self._require_writable()
        self._guarded(self.state.checkpoint)

    def clean(self) -> bool:
        """Finish reclaim, and clean until a segment has become free. Raises NoSpace, DataLost.

        Returns False if there was nothing to gain.
        """
        self._require_writable()
        return self._guarded(self._clean)

    def settle(self) -> None:
        """Finish reclaim, resync and rebuild. Raises DataLost if devices are missing."""
        self._require_writable()
        self._guarded(self._settle)

    def background(self) -> bool:
        """Do one step of reclaim, resync or rebuild. Returns False if there was nothing to do.

        Raises DataLost.
        """
        self._require_writable()
        return self._guarded(self._background)

    # How it is done.

    def _write_large(self, write: Record) -> None:
        """Write a segment or more to the capacity leg, and only where it is to the log."""
        payload = bytes(self.state.large_writes.payload_bytes(len(write.data)))
        record = Record(RecordKind.PLACE, write.lba, write.count, data=payload)

        def place() -> None:
            record.data = self.state.large_writes.place(write.data)

        self._perform(record, [write.count], before=place)

    def _perform(
        self,
        record: Record,
        counts: Sequence[int] = (),
        *,
        refusable: bool = True,
        before: Callable[[], None] | None = None,
    ) -> None:
        """Log an operation and make it happen. `counts` says how many blocks each of its parts has.

        `before` runs when there is space, and before the operation is logged.
        """
        started = perf_counter_ns()
        self._require_writable()
        self._guarded(self._prepare, record, refusable)
        if before is not None:
            self._guarded(before)
        kind = OPERATIONS[record.kind]
        try:
            self.state.submit(record)
            if not self.geometry.write_back:
                self.state.log_append(record)
            with suppress(HostRefused):  # what the host refuses waits in the bank
                self.state.chunks.destage_full()
        except BaseException as error:
            self._broken = True
            if not isinstance(error, DiskError | OSError):
                raise
            raise UnknownOutcome(f"{kind} was cut short, open the disk again: {error}") from error
        self.operations.add(kind, started, *counts)

    def _prepare(self, record: Record, refusable: bool) -> None:
        """Do some background work, and reserve space for an operation."""
        self.state.merge(record.count)
        for _ in range(RECLAIM_STEPS):
            self.state.reclaimer.reclaim()
        if not self.array.redundant:
            self._repair()  # before space is reserved: the checkpoint that ends it takes a segment
        self.space.reserve(record, refusable=refusable)

    def _checkpointed(self) -> None:
        self.resync.keep_progress()

    def _background(self) -> bool:
        self._rebuild()
        return self.state.reclaimer.reclaim() or self.resync.step()

    def _settle(self) -> None:
        self.state.reclaimer.reclaim_all()
        self._rebuild()
        while self.resync.step():
            self._rebuild()

    def _clean(self) -> bool:
        reclaimed = self.state.reclaimer.reclaim_all()
        if reclaimed:
            self.state.checkpoint()
        return self.space.clean() or reclaimed

    def _require_snapshot(self, name: str) -> None:
        require_name(name)
        if name not in self.state.views.names:
            raise NoSuchSnapshot(f"there is no snapshot named {name!r}")


create, open_disk = LogStructuredDisk.create, LogStructuredDisk.open


def put_back(path: Path, device: int) -> None:
    """Put a device back into a disk that cannot be opened without it.

    Raises BadRequest if it was not pulled, NotADisk.
    """
    with closing(Enclosure(path)) as enclosure:
        if not enclosure.insert(device):
            raise BadRequest(f"device {device} is not there to come back")


def take_out(path: Path, device: int) -> None:
    """Pull a device out of a disk that cannot be opened anyway. Raises NotADisk."""
    with closing(Enclosure(path)) as enclosure:
        enclosure.pull(device)
