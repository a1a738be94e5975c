"""What every open disk has: how it is opened, an enclosure to let go of, an end after which nothing may be done, events; and, on an array, devices that fail."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Self

from refmodel.array.array import Array, ComponentStatus, RepairClock
from refmodel.array.component import Member, Meter
from refmodel.array.label import Shape
from refmodel.core.errors import DiskError, NotADisk, UnknownOutcome, Unsupported
from refmodel.core.events import note
from refmodel.core.operation_stats import OperationStats
from refmodel.media.enclosure import Enclosure
from refmodel.media.power_supply import PowerSupply

MOST_CREDIT = 64  # device I/Os that repair may save up


class OpenDisk(ABC):
    """A disk that this process has open. Its engine says how it is found in an enclosure (`_found`) and how it recovers."""

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        sync: bool = True,
        power: PowerSupply | None = None,
        now: RepairClock = time.time,
        prepare: Callable[[Self], None] | None = None,
    ) -> Self:
        """Open the disk in a folder: recovery, always. Raises NotADisk, DiskBusy, DataLost.

        With `power` every device is fed by that supply, so that it can be cut. `now` is the repair clock, in seconds. `prepare` is given
        the disk before it recovers: it may listen to events or, in a test, plant a bug.
        """
        enclosure = Enclosure(path, sync=sync, power=power)
        try:
            disk = cls._found(enclosure, now)
            if prepare is not None:
                prepare(disk)
            disk.recover()
        except BaseException:
            enclosure.close()
            raise
        return disk

    @classmethod
    @abstractmethod
    def _found(cls, enclosure: Enclosure, now: RepairClock) -> Self:
        """The disk in an enclosure, not yet recovered."""

    @abstractmethod
    def recover(self) -> None:
        """Make of what is on the devices what users see."""

    def __init__(self, enclosure: Enclosure, geometry: Shape) -> None:
        self._enclosure = enclosure
        self._broken = False
        self.geometry = geometry
        self.events: list[dict] | None = (
            None  # what happened inside is appended here, if it is a list
        )
        self.operations = OperationStats()

    @property
    def from_memory(self) -> Counter[str]:
        """Blocks that were read with no device I/O, though they hold data, by cause."""
        return Counter()

    def abandon(self) -> None:
        """Let go of the disk as it is: what a crash of the process does."""
        self._broken = True
        self._enclosure.close()

    def fail(self, device: int, mode: str = "absent") -> None:
        raise self._lacks("devices that may fail")

    def return_(self, device: int) -> None:
        raise self._lacks("devices that may fail")

    def replace(self, device: int) -> None:
        raise self._lacks("devices that may fail")

    def status(self) -> list[ComponentStatus]:
        raise self._lacks("devices that may fail")

    def _lacks(self, what: str) -> Unsupported:
        return Unsupported(f"the engine {self.geometry.engine} has no {what}")

    def _guarded(self, work, *arguments):
        """Do work that no operation depends on yet. A refusal passes; anything worse leaves the disk unusable."""
        try:
            return work(*arguments)
        except DiskError:
            raise
        except BaseException:
            self._broken = True
            raise

    def _require_usable(self) -> None:
        if self._broken:
            raise UnknownOutcome("the disk is closed, or an error made it unusable: open it again")

    def _emit(self, event: str, **facts: object) -> None:
        if self.events is not None:
            note(self.events, event, facts)


class ArrayDisk(OpenDisk):
    """A disk on an array. `resync`, which its engine gives it, has `begin(member)` and `step()`, as refmodel.log_structured.resync.Resync."""

    shape: type  # of its geometry

    @classmethod
    def create(cls, path: Path, geometry: Shape, *, sync: bool = True) -> None:
        """Make a new disk in an empty or absent folder. Raises NotADisk if the folder is in use."""
        Enclosure.build(path, geometry.devices, geometry.device_bytes, geometry.witness_bytes)
        enclosure = Enclosure(path, sync=sync)
        try:
            array = Array.found(enclosure, geometry)
            cls(enclosure, array).checkpoint()
            array.label_devices()
        finally:
            enclosure.close()

    @classmethod
    def _found(cls, enclosure: Enclosure, now: RepairClock) -> Self:
        array = Array.assemble(enclosure, now)
        if not isinstance(array.geometry, cls.shape):
            raise NotADisk(f"{enclosure.path} holds a disk of the engine {array.geometry.engine}")
        return cls(enclosure, array)

    def __init__(self, enclosure: Enclosure, array: Array) -> None:
        self.array = array
        super().__init__(enclosure, array.geometry)
        array.emit = self._emit
        self._credit = 0.0  # device I/Os that repair may spend
        self._seen = 0  # device I/Os when it was last counted

    @property
    def meters(self) -> dict[tuple[str, int], Meter]:
        """What was done to devices, by leg and device."""
        return self.array.meters

    # What happens to devices. Each raises BadRequest where there is nothing to do it to.

    def fail(self, device: int, mode: str = "absent") -> None:
        """The device goes: it may come back ("absent"), or will not ("degraded")."""
        self._require_usable()
        self._guarded(self.array.fail, device, mode)
        self._rebuild()

    def return_(self, device: int) -> None:
        """An absent device is back. What it missed is resynced."""
        self._require_usable()
        self._begin(self._guarded(self.array.return_, device))

    def replace(self, device: int) -> None:
        """A new device takes the place of one that is gone. Raises DataLost if nothing is left to rebuild it from."""
        self._require_usable()
        self._begin(self._guarded(self.array.replace, device))

    def tick(self) -> None:
        """Look at the repair clock: what has been absent for too long is rebuilt on a spare."""
        self._require_usable()
        self._rebuild()

    def status(self) -> list[ComponentStatus]:
        """Every component and its state."""
        return list(self.array.standing())

    # How it is done.

    def _repair(self) -> None:
        """Some resync or rebuild: as many device I/Os as its share allows."""
        self._rebuild()
        ios = self.array.performance.ios + self.array.capacity.ios
        share = self.geometry.repair_share
        self._credit = min(self._credit + (ios - self._seen) * share / (100 - share), MOST_CREDIT)
        while self._credit > 0 and self.resync.step():
            after = self.array.performance.ios + self.array.capacity.ios
            self._credit -= after - ios
            ios = after
        self._seen = ios

    def _rebuild(self) -> None:
        while (member := self._guarded(self.array.rebuild)) is not None:
            self._begin(member)

    def _begin(self, member: Member | None) -> None:
        if member is not None and member.reachable and not self.array.is_active(member):
            self.resync.begin(member)

    def _require_writable(self) -> None:
        self._require_usable()
        if not self.array.redundant:
            self.array.require_writable()
