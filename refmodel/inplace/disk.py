"""A disk in place on RAID-5 or RAID-6.

A write that is cut short would leave parity that does not fit the data (the write hole), and a
later failure of a device could not be repaired. So the bytes that a write changes go to a journal
first, which is mirrored on m + 1 devices and flushed. Recovery writes them again. So the crash
profile is `ack`. The journal's device I/Os have the cause `journal`: without them a small write
costs 4 or 6 device I/Os.
"""

from collections.abc import Iterator
from time import perf_counter_ns

from refmodel.array.array import Array
from refmodel.core.errors import (
    DataLost,
    DiskError,
    NoSpace,
    NoSuchSnapshot,
    UnknownOutcome,
    Unsupported,
)
from refmodel.core.validation import require_range, whole_blocks
from refmodel.engine.array_disk import ArrayDisk
from refmodel.inplace import stripes
from refmodel.inplace.geometry import CHOICES, InPlaceGeometry
from refmodel.inplace.resync import StripeResync
from refmodel.inplace.stripes import Extent, Stripes
from refmodel.journal import checkpoint as checkpoints
from refmodel.journal.checkpoint import Checkpoint
from refmodel.journal.durable_log import DurableLog
from refmodel.journal.record import Record, RecordKind, record_bytes
from refmodel.media.enclosure import Enclosure
from refmodel.media.host import reason


class InPlaceDisk(ArrayDisk[InPlaceGeometry]):
    """One open disk, without snapshots and unmap."""

    engines = tuple(CHOICES)
    shape = InPlaceGeometry
    resync: StripeResync

    def __init__(self, enclosure: Enclosure, array: Array[InPlaceGeometry]) -> None:
        super().__init__(enclosure, array)
        geometry = array.geometry
        self.stripes = Stripes(array.capacity, geometry)
        self.journal = DurableLog(
            array.performance, geometry.log_base, geometry.log_bytes, array.events, cause="journal"
        )
        self.checkpoints = 0
        self.resync = StripeResync(array, self._checkpoint_and_begin)

    def recover(self) -> None:
        """Write again what the journal has. Raises DataLost."""
        slot, self.array.slots_repaired = checkpoints.recover_newest(self.array.performance)
        self.checkpoints = slot.number
        self.array.record_missing()
        for record in self.journal.recover(slot.log_tail, slot.log_sequence, slot.log_generation):
            if record.kind is RecordKind.WRITE:
                self.stripes.write(stripes.decode(record.data), "recovery")
        self.resync.begin_all()

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises as write_many does."""
        self.write_many([(lba, data)])

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do writes that are in flight together, each (LBA, whole blocks).

        Writes to different stripes are journaled in one I/O per mirror. Raises BadRequest,
        OutOfRange, NoSpace if one write is larger than the journal, and UnknownOutcome if only some
        of the writes happened.
        """
        started = perf_counter_ns()
        counts = whole_blocks(self.geometry, writes)
        self.require_writable()
        for lba, data in writes:
            self._require_room(lba, data)
        for number, batch in enumerate(self._batches(writes)):
            try:
                self._perform(batch)
            except DataLost as lost:
                if number == 0:
                    raise
                self.broken = True
                raise UnknownOutcome(
                    f"some of the writes happened, open the disk again: {lost}"
                ) from lost
        for count in counts:
            self.operations.add("write", started, [count])

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on. Raises OutOfRange, NoSuchSnapshot, DataLost."""
        started = perf_counter_ns()
        self.require_usable()
        if view is not None:
            raise _no_such(view)
        require_range(self.geometry, lba, count)
        size = self.geometry.block_bytes
        data = b"".join(
            self.guarded(lambda: list(self.stripes.read(lba * size, count * size, "foreground")))
        )
        self.operations.add("read", started, [count])
        return data

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """Return all blocks of the range: every block has its place. Raises OutOfRange."""
        require_range(self.geometry, lba, count)
        return list(range(lba, lba + count))

    def snapshots(self) -> list[str]:
        """Return no names: the engine has no snapshots."""
        return []

    def identity(self, name: str) -> int:
        """Raises NoSuchSnapshot."""
        raise _no_such(name)

    def unmap(self, lba: int, count: int) -> None:
        """Raises Unsupported."""
        raise self.lacks("unmap")

    def snapshot(self, name: str) -> None:
        """Raises Unsupported."""
        raise self._lacks_snapshots()

    def delete(self, name: str) -> None:
        """Raises Unsupported."""
        raise self._lacks_snapshots()

    def revert(self, name: str) -> None:
        """Raises Unsupported."""
        raise self._lacks_snapshots()

    def flush(self) -> None:
        """Do nothing: an acknowledged write is in the journal, so it is durable."""
        started = perf_counter_ns()
        self.require_usable()
        self.operations.add("flush", started)

    def close(self) -> None:
        """Empty the journal, and close the disk."""
        if not self.broken and self.array.writable:
            self.guarded(self.checkpoint)
        self.abandon()

    # Background work, on demand.

    def checkpoint(self) -> None:
        """Make the stripes durable, and empty the journal. Raises DataLost."""
        self.require_writable()
        self.guarded(self._checkpoint)

    def clean(self) -> bool:
        """Empty the journal. Returns whether it held anything. Raises DataLost."""
        used = self.journal.used()
        self.checkpoint()
        return used > 0

    def settle(self) -> None:
        """Finish resync and rebuild, as far as devices are there. Raises DataLost."""
        self.require_writable()
        self._rebuild()
        while self.guarded(self.resync.step):
            self._rebuild()

    def background(self) -> bool:
        """Do one step of resync or rebuild. Returns whether there was any. Raises DataLost."""
        self.require_writable()
        self._rebuild()
        return self.guarded(self.resync.step)

    # How it is done.

    def _batches(self, writes: list[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
        """Divide writes, in their order, into batches that are performed together.

        A batch touches no stripe twice, and takes at most half of the journal. A write that is
        larger is alone.
        """
        batch: list[tuple[int, bytes]] = []
        touched: set[int] = set()
        length = 0
        for lba, data in writes:
            of_this = self.stripes.touched(lba * self.geometry.block_bytes, len(data))
            record = self._journaled(lba, data)
            fits = length + record <= self.geometry.log_bytes // 2
            if batch and not (fits and touched.isdisjoint(of_this)):
                yield batch
                batch, touched, length = [], set(), 0
            batch.append((lba, data))
            touched.update(of_this)
            length += record
        if batch:
            yield batch

    def _perform(self, writes: list[tuple[int, bytes]]) -> None:
        """Journal writes to different stripes, and write them in place."""
        size = self.geometry.block_bytes
        planned = [
            (lba, len(data) // size, self.guarded(self.stripes.plan_write, lba * size, data))
            for lba, data in writes
        ]
        records = [
            Record(RecordKind.WRITE, lba, count, data=stripes.encode(extents))
            for lba, count, extents in planned
        ]
        if not self.journal.fits(sum(record_bytes(len(record.data)) for record in records)):
            self.guarded(self._checkpoint)
        self.guarded(self.journal.allocate, sum(record_bytes(len(one.data)) for one in records))
        try:
            self._write(records, [extent for _, _, extents in planned for extent in extents])
        except (DiskError, OSError) as error:
            self.broken = True
            raise UnknownOutcome(
                f"write was cut short, open the disk again: {reason(error)}"
            ) from error
        except BaseException:
            self.broken = True
            raise
        if not self.array.redundant:
            self.guarded(self.repair)

    def _write(self, records: list[Record], extents: list[Extent]) -> None:
        self.journal.append(*records)
        self.journal.flush("journal")
        self.stripes.write(extents, "foreground")

    def _checkpoint_and_begin(self) -> None:
        """Empty the journal, and begin its generation."""
        self.checkpoint()
        self.guarded(self.journal.begin)

    def _checkpoint(self) -> None:
        """Make the stripes durable, and only then write the slot that forgets the journal."""
        self.array.capacity.flush("checkpoint")
        self.journal.truncate()
        self.checkpoints += 1
        journal = self.journal
        slot = Checkpoint(
            self.checkpoints, 0, journal.tail, journal.sequence, journal.generation, 0, 0, 0, 0, 0
        )
        checkpoints.write(self.array.performance, slot)
        self.array.performance.flush("checkpoint")

    def _require_room(self, lba: int, data: bytes) -> None:
        """Raises NoSpace if a write and its parity may be too large for an empty journal."""
        if not self.journal.could_ever_fit(self._journaled(lba, data)):
            raise NoSpace(
                f"{len(data)} bytes and their parity do not fit into "
                f"the journal of {self.geometry.log_bytes}"
            )

    def _journaled(self, lba: int, data: bytes) -> int:
        """Return the size of the record of a write, in bytes, at most."""
        offset = lba * self.geometry.block_bytes
        return record_bytes(self.stripes.journaled_bytes(offset, len(data)))

    def _lacks_snapshots(self) -> Unsupported:
        return self.lacks("snapshots")


def _no_such(name: str) -> NoSuchSnapshot:
    return NoSuchSnapshot(f"there is no snapshot named {name!r}")


create, open_disk = InPlaceDisk.create, InPlaceDisk.open
