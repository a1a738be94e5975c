"""The interface of an open disk, of any engine, with or without a cache."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from refmodel.array.component import Meter
from refmodel.core.errors import Unsupported
from refmodel.core.events import Event
from refmodel.core.operation_stats import OperationStats
from refmodel.engine.requests import Requests
from refmodel.engine.shape import Shape
from refmodel.engine.status import ComponentStatus
from refmodel.runtime.scheduler import Scheduler


class Disk(ABC):
    """One open disk. An operation that is refused raises a DiskError, and changed nothing.

    What `geometry.capabilities` leaves out is refused as Unsupported. After UnknownOutcome, or an
    error that is no DiskError, the disk must be opened again. LBAs (logical block addresses) and
    counts are in blocks.
    """

    operations: OperationStats  # the operations of users
    scheduler: Scheduler  # runs its requests and the background work
    # The requests as processes; None: the disk takes one at a time.
    requests: Requests | None = None

    @property
    @abstractmethod
    def geometry(self) -> Shape:
        """The parameters of the disk, fixed by `create`."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The folder that holds the disk."""

    @property
    @abstractmethod
    def usable(self) -> bool:
        """True if the disk is open, and no error has made it unusable."""

    @property
    @abstractmethod
    def events(self) -> list[Event] | None:
        """The events so far, oldest first; None while events are not recorded.

        Set a list to record events in it.
        """

    @events.setter
    @abstractmethod
    def events(self, events: list[Event] | None) -> None: ...

    @property
    @abstractmethod
    def meters(self) -> Mapping[tuple[str, int], Meter]:
        """Device I/Os and bytes, by leg and number of the device."""

    @property
    def from_memory(self) -> Counter[str]:
        """Blocks that hold data and were read without a device I/O, by cause."""
        return Counter()

    # Operations of the contract.

    @abstractmethod
    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises BadRequest, OutOfRange, NoSpace."""

    @abstractmethod
    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do writes that are in flight together, each (LBA, whole blocks).

        If blocks overlap, the last write counts. Raises what `write` does.
        """

    @abstractmethod
    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on, of a snapshot or of the live disk.

        Raises OutOfRange, NoSuchSnapshot, DataLost.
        """

    def read_many(self, reads: list[tuple[int, int]], view: str | None = None) -> list[bytes]:
        """Return the data of reads that are in flight together, each (LBA, count of blocks).

        Raises what `read` does.
        """
        return [self.read(lba, count, view) for lba, count in reads]

    @abstractmethod
    def unmap(self, lba: int, count: int) -> None:
        """Make `count` blocks from `lba` on read as zeroes. Raises OutOfRange, NoSpace."""

    @abstractmethod
    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """Return which of `count` blocks from `lba` on a view maps, in order.

        The others read as zeroes. Raises what `read` does.
        """

    @abstractmethod
    def snapshots(self) -> list[str]:
        """Return the names of the snapshots, oldest first."""

    @abstractmethod
    def identity(self, name: str) -> int:
        """Return a number that no other snapshot ever has, not even one of the same name.

        Raises NoSuchSnapshot.
        """

    @abstractmethod
    def snapshot(self, name: str) -> None:
        """Take a snapshot. Raises SnapshotExists, BadRequest for a bad name, NoSpace."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a snapshot; its space is reclaimed in the background. Raises NoSuchSnapshot."""

    @abstractmethod
    def revert(self, name: str) -> None:
        """Make the live disk a copy of a snapshot. Raises NoSuchSnapshot, NoSpace."""

    @abstractmethod
    def flush(self) -> None:
        """Make every acknowledged operation durable."""

    @abstractmethod
    def close(self) -> None:
        """Flush, and close the disk."""

    @abstractmethod
    def abandon(self) -> None:
        """Close the disk as it is, without a flush: what a crash of the process does."""

    # Background work, on demand.

    @abstractmethod
    def checkpoint(self) -> None:
        """Make the maps durable, so that the log can be truncated. Raises DataLost."""

    @abstractmethod
    def clean(self) -> bool:
        """Reclaim some space. Returns whether there was any to reclaim. Raises DataLost."""

    @abstractmethod
    def settle(self) -> None:
        """Finish reclaim, resync and rebuild, as far as devices are there. Raises DataLost."""

    @abstractmethod
    def background(self) -> bool:
        """Do one step of background work. Returns whether there was any. Raises DataLost."""

    # Devices. Only disks with the capability `device` have these; others raise Unsupported.

    def fail(self, device: int, mode: str = "absent") -> None:
        """Take a device away: it may come back ("absent") or will not ("degraded").

        Raises BadRequest if the device is not in use, or is gone already, DataLost if it has left
        and too few are left to record that, Unsupported.
        """
        raise self.lacks("devices that may fail")

    def return_(self, device: int) -> None:
        """Bring an absent device back; what it missed is resynced.

        Raises BadRequest, DataLost if it is back and too few are there to record that, Unsupported.
        """
        raise self.lacks("devices that may fail")

    def replace(self, device: int) -> None:
        """Put a new device in the place of one that is gone; it is rebuilt.

        Raises BadRequest, DataLost if nothing is left to rebuild it from, Unsupported.
        """
        raise self.lacks("devices that may fail")

    def tick(self) -> None:
        """Look at the repair clock: what was absent for too long is rebuilt on a spare.

        Raises DataLost, Unsupported.
        """
        raise self.lacks("devices that may fail")

    def status(self) -> list[ComponentStatus]:
        """Return every component and its state. Raises Unsupported."""
        raise self.lacks("devices that may fail")

    def lacks(self, what: str) -> Unsupported:
        """Return the refusal of something that the engine does not have."""
        return Unsupported(f"the engine {self.geometry.engine} has no {what}")


D = TypeVar("D", bound=Disk)


@contextmanager
def closed_at_end(disk: D) -> Iterator[D]:
    """Yield a disk, and close it at the end. If the block ends with an error, abandon the disk.

    An error, or Ctrl-C, may cut a request short: then there is nothing that `close` could finish.
    """
    try:
        yield disk
    except BaseException:
        disk.abandon()
        raise
    disk.close()
