"""The log-structured disk on real files: what users of the engine call.

    create(Path("d"), plan(blocks=1024))
    disk = open_disk(Path("d"))
    disk.write(3, bytes(4096)); disk.snapshot("s1"); disk.close()

An operation is appended to the durable log, made durable unless write-back is on, and applied to the maps in memory.
Everything else (destage, cleaning, checkpoints, reclaim) happens before it, when room is made.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from time import perf_counter_ns

from refmodel.array.array import Array
from refmodel.array.label import DEFAULT_ENGINE
from refmodel.core.errors import (
    BadRequest,
    DiskError,
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
from refmodel.log_structured.space_reservation import Room
from refmodel.log_structured.state import State
from refmodel.media.enclosure import Enclosure

RECLAIM_STEPS = 1  # of background reclaim before each change


class LogStructuredDisk(ArrayDisk[Geometry]):
    """One open disk. Every method raises a DiskError that says what it is refused with; then nothing changed."""

    engines = (DEFAULT_ENGINE,)
    shape = Geometry
    legs_emit = True
    resync: Resync

    def __init__(self, enclosure: Enclosure, array: Array[Geometry]) -> None:
        super().__init__(enclosure, array)
        self.state = State(array)
        self.cleaner = Cleaner(self.state.chunks, array.geometry.cleaner, array.events.emit)
        self.resync = Resync(self.state, array)
        self._room = Room(self.state, self.cleaner)
        self.state.on_checkpoint = self.resync.keep_progress

    def recover(self) -> None:
        """Load the newest checkpoint, and replay the log after it."""
        self.array.emit_members()
        self.state.recover(self.array.record_missing)
        self.resync.begin_all()

    @property
    def from_memory(self) -> Counter[str]:
        """Blocks that were read from the bank, by cause."""
        return self.state.chunks.banked

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises OutOfRange, NoSpace, BadRequest."""
        (count,) = whole_blocks(self.geometry, [(lba, data)])
        record = Record(RecordKind.WRITE, lba, count, data=data)
        if (
            len(data) < self.geometry.segment_bytes
            or self.geometry.reduces
            and self.state.log.could_ever_fit(record.stored_bytes)
        ):
            self._perform(record, [count])
        else:
            self._place(record)

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Writes that are in flight together, each an LBA and whole blocks: one record of the log, and acknowledged together.

        In a power cut all of them happen, or none. Raises what `write` does; then none of them happened.
        """
        counts = whole_blocks(self.geometry, writes)
        self._perform(Record(RecordKind.WRITES, count=sum(counts), writes=writes), counts)

    def unmap(self, lba: int, count: int) -> None:
        """From now on `count` blocks from `lba` on read as zeroes. Raises OutOfRange, NoSpace."""
        require_range(self.geometry, lba, count)
        self._perform(Record(RecordKind.UNMAP, lba, count), [count])

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """`count` blocks from `lba` on, of a snapshot or of live. Raises OutOfRange, NoSuchSnapshot, DataLost."""
        return self.read_many([(lba, count)], view)[0]

    def read_many(self, reads: list[tuple[int, int]], view: str | None = None) -> list[bytes]:
        """Reads that are in flight together, each an LBA and a count of blocks. Raises what `read` does."""
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
        """Which of `count` blocks from `lba` on a view maps, in order; the others read as zeroes. Raises as `read` does."""
        self._require_usable()
        source = self.state.views.live if view is None else self.state.views.named(view)
        require_range(self.geometry, lba, count)
        return [lba for lba, _ in source.map.items(lba, lba + count)]

    def snapshots(self) -> list[str]:
        """Their names, the oldest first."""
        return [view.name for view in self.state.views.in_order()]

    def identity(self, name: str) -> int:
        """A number that no other snapshot has, nor a later one of the same name. Raises NoSuchSnapshot."""
        return self.state.views.named(name).id

    def snapshot(self, name: str) -> None:
        """Raises SnapshotExists, BadRequest for a bad name, NoSpace."""
        require_name(name)
        if name in self.state.views.names:
            raise SnapshotExists(f"a snapshot named {name!r} exists")
        self._perform(Record(RecordKind.SNAPSHOT, name=name))

    def delete(self, name: str) -> None:
        """Drop a snapshot; what only it held is freed in the background. Raises NoSuchSnapshot."""
        self._require_snapshot(name)
        self._perform(Record(RecordKind.DELETE, name=name), refusable=False)

    def revert(self, name: str) -> None:
        """Live becomes what the snapshot is; every snapshot stays. Raises NoSuchSnapshot, NoSpace."""
        self._require_snapshot(name)
        self._perform(Record(RecordKind.REVERT, name=name))

    def flush(self) -> None:
        """What was acknowledged is durable."""
        started = perf_counter_ns()
        self._require_usable()
        self.state.log.flush()
        self.operations.add("flush", started)

    def close(self) -> None:
        """Flush, and let go of the disk."""
        if not self._broken and self.array.writable:
            self.state.log.flush()
        self.abandon()

    # What otherwise happens by itself.

    def checkpoint(self) -> None:
        self._require_writable()
        self._guarded(self.state.checkpoint)

    def clean(self) -> bool:
        """Finish reclaim, and clean until a segment has become free. Says whether there was anything to gain."""
        self._require_writable()
        return self._guarded(self._clean)

    def settle(self) -> None:
        """Finish reclaim, resync and rebuild, as far as devices are there. Raises DataLost if too few are."""
        self._require_writable()
        self._guarded(self._settle)

    def background(self) -> bool:
        """One step of what waits for time: reclaim, resync, rebuild. Says whether there was anything to do. Raises DataLost."""
        self._require_writable()
        return self._guarded(self._background)

    # How it is done.

    def _place(self, write: Record) -> None:
        """A write of a segment or more: straight to the capacity leg, and only where it is to the log."""
        payload = bytes(self.state.chunks.placed_bytes(len(write.data)))
        record = Record(RecordKind.PLACE, write.lba, write.count, data=payload)

        def place() -> None:
            record.data = self.state.chunks.place(write.data)

        self._perform(record, [write.count], before=place)

    def _perform(
        self,
        record: Record,
        counts: Sequence[int] = (),
        *,
        refusable: bool = True,
        before: Callable[[], None] | None = None,
    ) -> None:
        """Log an operation, or writes that are in flight together, and make it happen. They are about so many blocks each."""
        started = perf_counter_ns()
        self._require_writable()
        self._guarded(self._prepare, record, refusable)
        if before is not None:
            self._guarded(before)
        kind = OPERATIONS[record.kind]
        try:
            self.state.log.append(record)
            if not self.geometry.write_back:
                self.state.log.flush()
            self.state.apply(record)
            self.state.chunks.destage_full()
        except (DiskError, OSError) as error:
            self._broken = True
            raise UnknownOutcome(f"{kind} was cut short, open the disk again: {error}") from error
        self.operations.add(kind, started, *counts)

    def _prepare(self, record: Record, refusable: bool) -> None:
        for _ in range(RECLAIM_STEPS):
            self.state.reclaim.step()
        if not self.array.redundant:
            self._repair()  # before room is made: the checkpoint that ends it takes a segment
        self._room.make(record, refusable=refusable)

    def _background(self) -> bool:
        self._rebuild()
        return self.state.reclaim.step() or self.resync.step()

    def _settle(self) -> None:
        self.state.reclaim.finish()
        self._rebuild()
        while self.resync.step():
            self._rebuild()

    def _clean(self) -> bool:
        reclaimed = self.state.reclaim.finish()
        if reclaimed:
            self.state.checkpoint()
        return self._room.clean() or reclaimed

    def _require_snapshot(self, name: str) -> None:
        require_name(name)
        if name not in self.state.views.names:
            raise NoSuchSnapshot(f"there is no snapshot named {name!r}")


create, open_disk = LogStructuredDisk.create, LogStructuredDisk.open


def put_back(path: Path, device: int) -> None:
    """Put a device back into a disk that cannot be opened without it. Raises BadRequest if it was not pulled."""
    with closing(Enclosure(path)) as enclosure:
        if not enclosure.insert(device):
            raise BadRequest(f"device {device} is not there to come back")


def take_out(path: Path, device: int) -> None:
    """Pull a device out of a disk that cannot be opened anyway."""
    with closing(Enclosure(path)) as enclosure:
        enclosure.pull(device)
