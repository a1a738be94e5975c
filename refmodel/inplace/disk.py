"""A disk in place on RAID-5 or RAID-6.

A write cut short would leave parity that does not fit the data (the write hole), and no later failure of a device could be made good. So what a write
changes is in a journal first, mirrored on m + 1 devices, and flushed; recovery writes it again. That makes the crash profile `ack`, and its
device I/Os have a cause of their own, `journal`: without them a small write is 4 or 6.
"""

from collections.abc import Iterator
from time import perf_counter_ns

from refmodel.array.array import Array
from refmodel.core.errors import DataLost, DiskError, NoSpace, NoSuchSnapshot, UnknownOutcome
from refmodel.core.validation import require_range, whole_blocks
from refmodel.engine.open_disk import ArrayDisk
from refmodel.inplace import stripes
from refmodel.inplace.geometry import InPlaceGeometry
from refmodel.inplace.resync import StripeResync
from refmodel.inplace.stripes import Extent, Stripes
from refmodel.journal import checkpoint as checkpoints
from refmodel.journal.checkpoint import Checkpoint
from refmodel.journal.durable_log import DurableLog
from refmodel.journal.record import Record, RecordKind, record_bytes
from refmodel.media.enclosure import Enclosure


class InPlaceDisk(ArrayDisk):
    """One open disk: a refmodel.registry.Disk, without snapshots and unmap."""

    shape = InPlaceGeometry

    def __init__(self, enclosure: Enclosure, array: Array) -> None:
        super().__init__(enclosure, array)
        self.stripes = Stripes(array.capacity, array.geometry)
        self.journal = DurableLog(
            array.performance,
            array.geometry.log_base,
            array.geometry.log_bytes,
            self._emit,
            cause="journal",
        )
        self.checkpoints = 0
        self.resync = StripeResync(array, array.geometry.stripes, self._settled)

    def recover(self) -> None:
        """Write again what the journal has."""
        slot = checkpoints.newest(self.array.performance)
        self.checkpoints = slot.number
        for record in self.journal.recover(slot.log_tail, slot.log_sequence, slot.log_generation):
            if record.kind is RecordKind.WRITE:
                self.stripes.write(stripes.decode(record.data), "recovery")
        self.array.record_absent()
        self.resync.begin_all()

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        self.write_many([(lba, data)])

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Writes that are in flight together: journaled in one I/O a mirror, where they touch different stripes.

        Raises NoSpace if one is larger than the journal."""
        started = perf_counter_ns()
        counts = whole_blocks(self.geometry, writes)
        self._require_writable()
        for lba, data in writes:
            self._require_room(lba, data)
        for number, together in enumerate(self._apart(writes)):
            try:
                self._perform(together)
            except DataLost as lost:
                if number == 0:
                    raise
                self._broken = True
                raise UnknownOutcome(
                    f"some of the writes happened, open the disk again: {lost}"
                ) from lost
        for count in counts:
            self.operations.add("write", started, count)

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        started = perf_counter_ns()
        self._require_usable()
        if view is not None:
            raise NoSuchSnapshot(f"there is no snapshot named {view!r}")
        require_range(self.geometry, lba, count)
        size = self.geometry.block_bytes
        data = b"".join(
            self._guarded(lambda: list(self.stripes.read(lba * size, count * size, "foreground")))
        )
        self.operations.add("read", started, count)
        return data

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """All of them: every block has a place."""
        require_range(self.geometry, lba, count)
        return list(range(lba, lba + count))

    def snapshots(self) -> list[str]:
        return []

    def identity(self, name: str) -> int:
        raise NoSuchSnapshot(f"there is no snapshot named {name!r}")

    def unmap(self, lba: int, count: int) -> None:
        raise self._lacks("unmap")

    def snapshot(self, name: str) -> None:
        raise self._lacks("snapshots")

    def delete(self, name: str) -> None:
        raise self._lacks("snapshots")

    def revert(self, name: str) -> None:
        raise self._lacks("snapshots")

    def flush(self) -> None:
        """What was acknowledged is durable already: it is in the journal."""
        started = perf_counter_ns()
        self._require_usable()
        self.operations.add("flush", started)

    def close(self) -> None:
        if not self._broken and self.array.writable:
            self._guarded(self.checkpoint)
        self.abandon()

    # What otherwise happens by itself.

    def checkpoint(self) -> None:
        """Make durable what is in place, and forget the journal."""
        self._require_writable()
        self._guarded(self._checkpoint)

    def clean(self) -> bool:
        """There is nothing to clean but the journal. Says whether it held anything."""
        used = self.journal.used
        self.checkpoint()
        return used > 0

    def settle(self) -> None:
        """Finish resync and rebuild, as far as devices are there."""
        self._require_writable()
        self._rebuild()
        while self._guarded(self.resync.step):
            self._rebuild()

    def background(self) -> bool:
        """One step of resync or rebuild. Says whether there was anything to do."""
        self._require_writable()
        self._rebuild()
        return self._guarded(self.resync.step)

    # How it is done.

    def _apart(self, writes: list[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
        """Writes in their order, in parts that touch no stripe twice, and that fit into an empty journal together."""
        together: list[tuple[int, bytes]] = []
        touched: set[int] = set()
        length = 0
        for lba, data in writes:
            of_this = self.stripes.touched(lba * self.geometry.block_bytes, len(data))
            if together and not (
                touched.isdisjoint(of_this) and length + len(data) <= self.geometry.log_bytes // 8
            ):
                yield together
                together, touched, length = [], set(), 0
            together.append((lba, data))
            touched.update(of_this)
            length += len(data)
        if together:
            yield together

    def _perform(self, writes: list[tuple[int, bytes]]) -> None:
        """Journal writes to different stripes, and write them in place."""
        size = self.geometry.block_bytes
        changed = [
            (lba, len(data) // size, self._guarded(self.stripes.changed, lba * size, data))
            for lba, data in writes
        ]
        records = [
            Record(RecordKind.WRITE, lba, count, data=stripes.encode(extents))
            for lba, count, extents in changed
        ]
        if not self.journal.fits(sum(record_bytes(len(record.data)) for record in records)):
            self._guarded(self._checkpoint)
        try:
            self._write(records, [extent for _, _, extents in changed for extent in extents])
        except (DiskError, OSError) as error:
            self._broken = True
            raise UnknownOutcome(f"write was cut short, open the disk again: {error}") from error
        except BaseException:
            self._broken = True
            raise
        if not self.array.redundant:
            self._guarded(self._repair)

    def _write(self, records: list[Record], extents: list[Extent]) -> None:
        self.journal.append(*records)
        self.journal.flush("journal")
        self.stripes.write(extents, "foreground")

    def _settled(self) -> None:
        self.checkpoint()
        self._guarded(self.journal.begin)

    def _checkpoint(self) -> None:
        """The stripes are durable before the slot that says so is written."""
        self.array.capacity.flush("checkpoint")
        self.journal.truncate()
        self.checkpoints += 1
        where = self.journal.tail, self.journal.sequence, self.journal.generation
        checkpoints.write(
            self.array.performance, Checkpoint(self.checkpoints, 0, *where, 0, 0, 0, 0, 0)
        )
        self.array.performance.flush("checkpoint")

    def _require_room(self, lba: int, data: bytes) -> None:
        """Of a write and its parity in the journal, at most."""
        touched = self.stripes.touched(lba * self.geometry.block_bytes, len(data))
        pieces = len(touched) * self.geometry.members
        parity = sum(min(len(data), self.geometry.piece_bytes) for _ in touched) * self.geometry.m
        most = record_bytes(len(data) + parity + pieces * stripes.HEADER.size)
        if not self.journal.could_ever_fit(most):
            raise NoSpace(
                f"{len(data)} bytes and their parity do not fit into the journal of {self.geometry.log_bytes}"
            )


create, open_disk = InPlaceDisk.create, InPlaceDisk.open
