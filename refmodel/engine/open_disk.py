"""The base class of the disks of all engines: opening, and errors that make a disk unusable."""

import time
from abc import abstractmethod
from collections.abc import Callable, Collection
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar, TypeVarTuple

from refmodel.array.array import RepairClock
from refmodel.core.errors import DiskError, UnknownOutcome
from refmodel.core.events import Event, Events
from refmodel.core.operation_stats import OperationStats
from refmodel.engine.disk import Disk
from refmodel.engine.shape import Shape
from refmodel.media.enclosure import Enclosure, Folder
from refmodel.media.power_supply import PowerSupply
from refmodel.runtime.scheduler import Scheduler

S = TypeVar("S", bound=Shape)
A = TypeVarTuple("A")
R = TypeVar("R")


class OpenDisk(Disk, Generic[S]):
    """A disk that this process has open, with the geometry of its engine.

    An engine says how its disk is found in an enclosure (`found_in`) and how it recovers.
    """

    engines: ClassVar[Collection[str]]  # the engines whose disks this class opens

    @classmethod
    def open(
        cls,
        path: Folder,
        *,
        sync: bool = True,
        power: PowerSupply | None = None,
        now: RepairClock = time.time,
        memory: int | None = None,
        prepare: Callable[[Self], None] | None = None,
    ) -> Self:
        """Open the disk in a folder, and recover it. Raises NotADisk, DiskBusy, DataLost.

        Without `sync` a flush does not wait for the medium. With `power` every device is fed by
        that supply, so that it can be cut. `now` is the repair clock, in seconds. `memory`
        limits what its maps may take in memory, in bytes; by default the engine does. `prepare` is
        called with the disk before it recovers: to record events or, in a test, to plant a bug.
        """
        enclosure = Enclosure(path, sync=sync, power=power)
        try:
            disk = cls.found_in(enclosure, now)
            if memory is not None:
                disk.limit_memory(memory)
            if prepare is not None:
                prepare(disk)
            disk.recover()
        except BaseException:
            enclosure.close()
            raise
        return disk

    @classmethod
    @abstractmethod
    def found_in(cls, enclosure: Enclosure, now: RepairClock) -> Self:
        """Return the disk in an enclosure, not yet recovered. Raises NotADisk, DataLost."""

    @abstractmethod
    def recover(self) -> None:
        """Restore from the devices what users see. Raises DataLost."""

    def limit_memory(self, memory: int) -> None:
        """Let the maps take at most `memory` bytes, if they need not fit in memory."""

    def __init__(self, enclosure: Enclosure, geometry: S, events: Events) -> None:
        self._enclosure = enclosure
        self._geometry = geometry
        self._events = events
        self.broken = False
        self.operations = OperationStats()
        self.scheduler = Scheduler()  # runs the requests and the background work

    @property
    def geometry(self) -> S:
        """The parameters of the disk, fixed by `create`."""
        return self._geometry

    @property
    def folder(self) -> Path:
        """The folder that holds the disk."""
        return self._enclosure.path

    @property
    def usable(self) -> bool:
        """True if the disk is open, and no error has made it unusable."""
        return not self.broken

    @property
    def events(self) -> list[Event] | None:
        """The events so far, oldest first; None while events are not recorded."""
        return self._events.record

    @events.setter
    def events(self, events: list[Event] | None) -> None:
        self._events.record = events

    def abandon(self) -> None:
        """Close the disk as it is, without a flush: what a crash of the process does."""
        self.scheduler.drop()
        self.broken = True
        self._enclosure.close()

    def guarded(self, work: Callable[[*A], R], *arguments: *A) -> R:
        """Do work that no operation depends on yet, and return its result.

        A DiskError changed nothing. Any other error leaves the disk unusable.
        """
        try:
            return work(*arguments)
        except DiskError:
            raise
        except BaseException:
            self.broken = True
            raise

    def require_usable(self) -> None:
        """Raises UnknownOutcome if the disk is closed or unusable."""
        if self.broken:
            raise UnknownOutcome("the disk is closed, or an error made it unusable: open it again")
