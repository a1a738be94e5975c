"""The log-structured disk on real files: what users of the engine call.

    create(Path("d"), plan(blocks=1024))
    disk = open_disk(Path("d"))
    disk.write(3, bytes(4096)); disk.snapshot("s1"); disk.close()

An operation is written to the durable log, made durable unless write-back is on, and applied to
the maps in memory. Everything else (cleaning, checkpoints, reclaim) happens before it, when space
is reserved for it. Only destage also happens after it. How an operation goes, in steps between
which others may come, is in requests.py; the methods here wait for its end.
"""

from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

from refmodel.array.array import Array
from refmodel.array.label import DEFAULT_ENGINE
from refmodel.core.errors import BadRequest, DiskError
from refmodel.core.validation import require_range
from refmodel.engine.array_disk import ArrayDisk
from refmodel.log_structured.checkpointing import Checkpointer
from refmodel.log_structured.chunks.cleaner import Cleaner
from refmodel.log_structured.cleaning import Cleaning
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.recovery import recover
from refmodel.log_structured.requests import Requests
from refmodel.log_structured.resync import Resync
from refmodel.log_structured.space_reservation import SpaceReservation
from refmodel.log_structured.state import DiskState
from refmodel.media.enclosure import Enclosure

REPLAYED = 1 << 16  # bytes of the log that the opening after a clean close may replay


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
    requests: Requests

    def __init__(self, enclosure: Enclosure, array: Array[Geometry]) -> None:
        super().__init__(enclosure, array)
        emit, policy = array.events.emit, array.geometry.cleaner
        self.state = DiskState(array)
        self.cleaner = Cleaner(self.state.chunks, self.state.space_usage, policy, emit)
        self.checkpoints = Checkpointer(self.state, lambda: self.resync.keep_progress())
        self.cleaning = Cleaning(self.state, self.cleaner, self.checkpoints)
        self.space = SpaceReservation(self.state, self.cleaning, self.checkpoints)
        self.resync = Resync(self.state, array, self.checkpoints)
        self.requests = Requests(self, self.state, self.space, self.cleaning, self.checkpoints)

    def recover(self) -> None:
        """Load the newest checkpoint, and replay the log behind it. Raises DataLost."""
        self.array.emit_members()
        recover(self.state, self.array.record_missing)
        self.resync.begin_all()
        self.scheduler.start(self.requests.log())

    def limit_memory(self, memory: int) -> None:
        """Let the nodes of the maps take at most `memory` bytes."""
        self.state.pages.limit_memory(memory)

    @property
    def from_memory(self) -> Counter[str]:
        """Blocks that were read from the bank and not from a device, by cause."""
        return self.state.chunks.banked

    # The operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises OutOfRange, NoSpace, BadRequest, DataLost."""
        self.scheduler.run(self.requests.write(lba, data))

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Write several extents, each an LBA and whole blocks, in one record of the log.

        After a power cut either all of them have happened, or none. Raises what `write` raises;
        then none of them has happened.
        """
        self.scheduler.run(self.requests.write_many(writes))

    def unmap(self, lba: int, count: int) -> None:
        """Let `count` blocks from `lba` on read as zeroes. Raises OutOfRange, NoSpace, DataLost."""
        self.scheduler.run(self.requests.unmap(lba, count))

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on, of a snapshot, or of live if `view` is None.

        Raises OutOfRange, NoSuchSnapshot, DataLost.
        """
        return self.read_many([(lba, count)], view)[0]

    def read_many(self, reads: list[tuple[int, int]], view: str | None = None) -> list[bytes]:
        """Return the data of extents, each an LBA and a count. Raises what `read` raises."""
        return self.scheduler.run(self.requests.read_many(reads, view))

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """Return which of `count` blocks from `lba` on a view maps; the others read as zeroes.

        Raises what `read` raises.
        """
        self.require_usable()
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
        self.scheduler.run(self.requests.snapshot(name))

    def delete(self, name: str) -> None:
        """Delete a snapshot; what only it held is freed later. Raises NoSuchSnapshot."""
        self.scheduler.run(self.requests.delete(name))

    def revert(self, name: str) -> None:
        """Make live what the snapshot is; every snapshot stays. Raises NoSuchSnapshot, NoSpace."""
        self.scheduler.run(self.requests.revert(name))

    def flush(self) -> None:
        """Make everything durable that was acknowledged."""
        self.scheduler.run(self.requests.flush())

    def close(self) -> None:
        """Flush, and close the disk. Requests that are in flight happen first.

        If opening would replay much of the log, or put changes into the maps, a whole checkpoint is
        taken.
        """
        if not self.broken and self.array.writable:
            self._quiesce()
            self.state.log.flush()
            if self.state.log.used() > REPLAYED or self.state.increments.page_count:
                with suppress(DiskError, OSError):  # the log has everything
                    self._checkpoint()
        elif not self.broken:  # what is in the log counts again once enough devices are back
            with suppress(DiskError, OSError):
                self.state.log.flush()
        self.abandon()

    # What otherwise happens by itself.

    def checkpoint(self) -> None:
        """Write a checkpoint, and truncate the log. Raises NoSpace, DataLost."""
        self.require_writable()
        self._quiesce()
        self.guarded(self._checkpoint)

    def clean(self) -> bool:
        """Finish reclaim, and clean until a segment has become free. Raises NoSpace, DataLost.

        Returns False if there was nothing to gain.
        """
        self.require_writable()
        self._quiesce()
        return self.guarded(self._clean)

    def settle(self) -> None:
        """Finish reclaim, resync, rebuild and the survey.

        Raises DataLost if devices are missing.
        """
        self.require_writable()
        self._quiesce()
        self.guarded(self._settle)

    def background(self) -> bool:
        """Do one step of reclaim, resync, rebuild or the survey.

        Returns False if there was nothing to do.

        Raises DataLost.
        """
        self.require_writable()
        self._quiesce()
        return self.guarded(self._background)

    # How it is done.

    def _quiesce(self) -> None:
        """Let everything happen that is in flight. Raises UnknownOutcome."""
        while self.state.in_flight:
            if not self.scheduler.step():
                self.broken = True  # the process that it waits for was cut short, as by Ctrl-C
            self.require_usable()

    def _checkpoint(self) -> None:
        self.state.survey.finish_if_scarce()
        self.checkpoints.run()

    def _background(self) -> bool:
        self._rebuild()
        self.state.survey.finish_if_scarce()
        return self._reclaim() or self.resync.step() or self.state.survey.step()

    def _reclaim(self) -> bool:
        """Do a step of reclaim, or of the checkpoint that keeps its changes from filling the
        memory. Returns False if nothing is left to reclaim."""
        return bool(self.state.views.deleted) and (
            self.checkpoints.relieve() or self.state.reclaimer.reclaim()
        )

    def _reclaim_all(self) -> bool:
        """Reclaim until nothing is left. Returns False if there was nothing."""
        worked = False
        while self._reclaim():
            worked = True
        return worked

    def _settle(self) -> None:
        self.state.survey.finish()
        self._reclaim_all()
        self._rebuild()
        while self.resync.step():
            self._rebuild()

    def _clean(self) -> bool:
        self.state.survey.finish_if_scarce()
        reclaimed = self._reclaim_all()
        if reclaimed:
            self.checkpoints.run()
        return self.cleaning.run() or reclaimed


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
