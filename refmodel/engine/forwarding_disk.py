"""A disk in front of another: what it does not do itself, the disk behind it does."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from refmodel.array.component import Meter
from refmodel.core.events import Event
from refmodel.engine.disk import Disk
from refmodel.engine.shape import Shape
from refmodel.engine.status import ComponentStatus


class ForwardingDisk(Disk):
    """A disk that forwards every request to `disk`, the disk behind it.

    Attributes that only some engines have, as `array`, are those of the disk behind it too.
    """

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.operations = disk.operations
        self.scheduler = disk.scheduler

    def __getattr__(self, name: str) -> Any:
        return getattr(self.disk, name)

    @property
    def geometry(self) -> Shape:
        """The parameters of the disk, fixed by `create`."""
        return self.disk.geometry

    @property
    def folder(self) -> Path:
        """The folder that holds the disk."""
        return self.disk.folder

    @property
    def usable(self) -> bool:
        """True if the disk is open, and no error has made it unusable."""
        return self.disk.usable

    @property
    def events(self) -> list[Event] | None:
        """The events of the disk behind this one; None while events are not recorded."""
        return self.disk.events

    @events.setter
    def events(self, events: list[Event] | None) -> None:
        self.disk.events = events

    @property
    def meters(self) -> Mapping[tuple[str, int], Meter]:
        """Device I/Os and bytes, by leg and number of the device."""
        return self.disk.meters

    @property
    def from_memory(self) -> Counter[str]:
        """Blocks that the disk read without a device I/O, by cause."""
        return self.disk.from_memory

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises BadRequest, OutOfRange, NoSpace."""
        self.disk.write(lba, data)

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do writes that are in flight together, each (LBA, whole blocks)."""
        self.disk.write_many(writes)

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on. Raises OutOfRange, NoSuchSnapshot, DataLost."""
        return self.disk.read(lba, count, view)

    def unmap(self, lba: int, count: int) -> None:
        """Make `count` blocks from `lba` on read as zeroes. Raises OutOfRange, NoSpace."""
        self.disk.unmap(lba, count)

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """Return which of `count` blocks from `lba` on a view maps. Raises what `read` does."""
        return self.disk.mapped(lba, count, view)

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots, oldest first."""
        return self.disk.snapshots()

    def identity(self, name: str) -> int:
        """Return a number that no other snapshot ever has. Raises NoSuchSnapshot."""
        return self.disk.identity(name)

    def snapshot(self, name: str) -> None:
        """Take a snapshot. Raises SnapshotExists, BadRequest, NoSpace."""
        self.disk.snapshot(name)

    def delete(self, name: str) -> None:
        """Delete a snapshot. Raises NoSuchSnapshot."""
        self.disk.delete(name)

    def revert(self, name: str) -> None:
        """Make the live disk a copy of a snapshot. Raises NoSuchSnapshot, NoSpace."""
        self.disk.revert(name)

    def flush(self) -> None:
        """Make every acknowledged operation durable."""
        self.disk.flush()

    def close(self) -> None:
        """Flush, and close the disk."""
        self.disk.close()

    def abandon(self) -> None:
        """Close the disk as it is, without a flush."""
        self.disk.abandon()

    # Background work, and devices.

    def checkpoint(self) -> None:
        """Make the maps durable, so that the log can be truncated. Raises DataLost."""
        self.disk.checkpoint()

    def clean(self) -> bool:
        """Reclaim some space. Returns whether there was any to reclaim. Raises DataLost."""
        return self.disk.clean()

    def settle(self) -> None:
        """Finish reclaim, resync and rebuild, as far as devices are there. Raises DataLost."""
        self.disk.settle()

    def background(self) -> bool:
        """Do one step of background work. Returns whether there was any. Raises DataLost."""
        return self.disk.background()

    def fail(self, device: int, mode: str = "absent") -> None:
        """Take a device away: it may come back ("absent") or will not. Raises BadRequest."""
        self.disk.fail(device, mode)

    def return_(self, device: int) -> None:
        """Bring an absent device back; what it missed is resynced. Raises BadRequest."""
        self.disk.return_(device)

    def replace(self, device: int) -> None:
        """Put a new device in the place of one that is gone. Raises BadRequest, DataLost."""
        self.disk.replace(device)

    def tick(self) -> None:
        """Look at the repair clock: what was absent for too long is rebuilt on a spare."""
        self.disk.tick()

    def status(self) -> list[ComponentStatus]:
        """Return every component and its state."""
        return self.disk.status()
