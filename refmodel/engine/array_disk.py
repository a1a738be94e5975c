"""A disk on an array: devices may fail, and are resynced or rebuilt while the disk is in use."""

from abc import abstractmethod
from math import ceil
from typing import ClassVar, Protocol, Self, TypeVar

from refmodel.array import label as labels
from refmodel.array.array import Array, RepairClock
from refmodel.array.assembly import assemble, found_array
from refmodel.array.component import Meter
from refmodel.array.layout import ArrayGeometry
from refmodel.array.member import ACTIVE, Member
from refmodel.core.errors import NotADisk
from refmodel.core.time_spent import REPAIR, spent_on
from refmodel.engine.open_disk import OpenDisk
from refmodel.engine.status import ComponentStatus, component_status
from refmodel.media.enclosure import Enclosure, Folder

MOST_CREDIT = 64  # device I/Os that repair may save up

G = TypeVar("G", bound=ArrayGeometry)


class MemberResync(Protocol):
    """The resync of an engine: it brings members that lack something up to date."""

    def begin(self, member: Member) -> None:
        """Find out what a member lacks."""

    def step(self) -> bool:
        """Copy one stripe, or make one member active. Returns whether anything could be done."""


class ArrayDisk(OpenDisk[G]):
    """A disk on an array, with the geometry of its engine."""

    shape: type[G]  # the class of the geometry
    legs_emit: ClassVar[bool] = False  # whether device I/Os of the legs are events
    resync: MemberResync

    @classmethod
    def create(cls, path: Folder, geometry: G, *, sync: bool = True) -> None:
        """Make a new disk in an empty or absent folder. Raises NotADisk if the folder is in use."""
        Enclosure.build(path, geometry.devices, geometry.device_bytes, geometry.witness_bytes)
        enclosure = Enclosure(path, sync=sync)
        try:
            array = found_array(enclosure, geometry)
            cls(enclosure, array).checkpoint()
            array.label_devices()
        finally:
            enclosure.close()

    @classmethod
    def found_in(cls, enclosure: Enclosure, now: RepairClock) -> Self:
        """Return the disk in an enclosure, not yet recovered. Raises NotADisk, DataLost."""
        found, repaired = labels.read_all(enclosure)
        label = next(iter(found.values()))
        if label.engine not in cls.engines:
            raise NotADisk(f"{enclosure.path} holds a disk of the engine {label.engine}")
        geometry = cls.shape(**label.geometry)
        array = assemble(enclosure, geometry, found, now, legs_emit=cls.legs_emit)
        array.labels_repaired = repaired
        return cls(enclosure, array)

    def __init__(self, enclosure: Enclosure, array: Array[G]) -> None:
        super().__init__(enclosure, array.geometry, array.events)
        self.array = array
        self._credit = 0.0  # device I/Os that repair may spend
        self._counted = 0  # device I/Os when the credit was last computed

    @property
    def meters(self) -> dict[tuple[str, int], Meter]:
        """Device I/Os and bytes, by leg and number of the device."""
        return self.array.meters

    @abstractmethod
    def checkpoint(self) -> None:
        """Make the maps durable, so that the log can be truncated. Raises DataLost."""

    # Devices.

    def fail(self, device: int, mode: str = "absent") -> None:
        """Take a device away: it may come back ("absent") or will not ("degraded").

        Raises BadRequest if the device is not in use, or is gone already, DataLost if it has left
        and too few are left to record that.
        """
        self.require_usable()
        self.guarded(self.array.fail, device, mode)
        self._rebuild()

    def return_(self, device: int) -> None:
        """Bring an absent device back; what it missed is resynced.

        Raises BadRequest, DataLost if it is back and too few are there to record that.
        """
        self.require_usable()
        self._begin(self.guarded(self.array.return_, device))

    def replace(self, device: int) -> None:
        """Put a new device in the place of one that is gone; it is rebuilt.

        Raises BadRequest, or DataLost if nothing is left to rebuild it from.
        """
        self.require_usable()
        self._begin(self.guarded(self.array.replace, device))

    def tick(self) -> None:
        """Look at the repair clock: what was absent for too long is rebuilt on a spare."""
        self.require_usable()
        self._rebuild()

    def status(self) -> list[ComponentStatus]:
        """Return every component and its state."""
        return list(component_status(self.array))

    # How it is done.

    @spent_on(REPAIR)
    def repair(self) -> None:
        """Do some resync or rebuild: as many device I/Os as the share of repair allows.

        The number of steps is bounded, so that no operation pays for what many have earned.
        """
        self._rebuild()
        ios = self.array.performance.ios + self.array.capacity.ios
        share = self.geometry.repair_share
        ratio = share / (100 - share)
        self._credit = min(self._credit + (ios - self._counted) * ratio, MOST_CREDIT)
        steps = ceil(ratio)
        while steps and self._credit > 0 and self.resync.step():
            after = self.array.performance.ios + self.array.capacity.ios
            self._credit -= after - ios
            ios, steps = after, steps - 1
        self._counted = ios

    def _rebuild(self) -> None:
        """Begin to rebuild every member that is due, as far as there are spares."""
        while (member := self.guarded(self.array.rebuild)) is not None:
            self._begin(member)

    def _begin(self, member: Member | None) -> None:
        if member is not None and member.reachable and member.state is not ACTIVE:
            self.resync.begin(member)

    def require_writable(self) -> None:
        """Raises UnknownOutcome if the disk is unusable, DataLost if too many devices are gone."""
        self.require_usable()
        if not self.array.redundant:
            self.array.require_writable()
