"""A component is the part of a leg that is on one device; a leg has a set of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from refmodel.array.member import ACTIVE, Member
from refmodel.core.errors import HostRefused
from refmodel.core.events import Events
from refmodel.core.number_set import NumberSet
from refmodel.core.time_spent import FLUSH, spent_on


@dataclass(slots=True)
class Counts:
    """Device I/Os and bytes of one component for one cause."""

    reads: int = 0
    writes: int = 0
    flushes: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


class Meter(defaultdict[str, Counts]):
    """Device I/Os and bytes of one component, by cause ("foreground", "checkpoint", ...)."""

    def __init__(self) -> None:
        super().__init__(Counts)

    def of(self, name: str) -> dict[str, int]:
        """Return one number of each cause, such as "bytes_read", where it is not 0."""
        return {cause: found for cause, counts in self.items() if (found := getattr(counts, name))}


class Component:
    """One component."""

    def __init__(self, member: Member, base: int, size: int, meter: Meter) -> None:
        self.member = member
        self.base = base  # byte offset of the component on its device
        self.size = size  # bytes of the device that are its own
        self.meter = meter
        self.missed = NumberSet()  # stripes that it lacks, while it is stale or resyncing

    def allocate(self, offset: int, length: int) -> None:
        """Have the host keep room for bytes that are to be written."""
        device = self.member.device
        assert device is not None, "only components of reachable members are written"
        device.allocate(self.base + offset, length)

    def lack(self, stripes: Iterable[int]) -> None:
        """Note that the component lacks these stripes, besides those that it lacks already."""
        self.missed.update(stripes)

    def receive(self, stripes: Iterable[int]) -> None:
        """Note that the component has these stripes now."""
        self.missed.difference_update(stripes)

    def lack_nothing(self) -> None:
        """Forget which stripes the component lacks."""
        self.missed.clear()


class ComponentSet:
    """The components of one leg. Offsets are bytes of a component; on a mirror, of the leg.

    `cause` is what device I/O is counted under. `failed` is called with a member whose device
    raised OSError; it raises DataLost if the disk cannot go on without it, and so does then every
    method that does I/O. What the host refuses makes no member fail: HostRefused passes. Events of
    reads, writes and copies are emitted while a component is not active.
    """

    def __init__(
        self,
        name: str,
        components: list[Component],
        failed: Callable[[Member, OSError], None],
        events: Events,
    ) -> None:
        self.name = name
        self.components = components
        self.repairs = 0  # pieces or parts of pieces that were found wrong and rewritten
        self.ios = 0  # reads and writes of devices
        self._failed = failed
        self._events = events

    def copies(self, offset: int, length: int, cause: str) -> Iterator[bytes]:
        """Yield what each active component of a mirror holds, good or not."""
        for component in self.active():
            if (data := self.read_component(component, offset, length, cause)) is not None:
                yield data

    def active(self) -> list[Component]:
        """Return the active components."""
        return [component for component in self.components if component.member.state is ACTIVE]

    def allocate(self, offset: int, length: int) -> None:
        """Have the host keep room on every component, for bytes that are to be written.

        Raises HostFull, and DataLost as `write` does.
        """
        for component in self.components:
            if component.member.device is not None:
                try:
                    component.allocate(offset, length)
                except OSError as error:
                    self._failed(component.member, error)

    @spent_on(FLUSH)
    def flush(self, cause: str) -> None:
        """Make durable what was written before. Raises DataLost as `write` does."""
        for component in self.components:
            if (device := component.member.device) is not None:
                component.meter[cause].flushes += 1
                try:
                    device.flush()
                except OSError as error:
                    self._failed(component.member, error)

    def read_component(
        self, component: Component, offset: int, length: int, cause: str
    ) -> bytes | None:
        """Return what a component holds, good or not; None if its device is gone.

        It is counted under a cause. Every read comes here.
        """
        device = component.member.device
        if device is None:
            return None
        self.ios += 1
        counts = component.meter[cause]
        counts.reads += 1
        counts.bytes_read += length
        try:
            return device.read(component.base + offset, length)
        except OSError as error:
            self._failed(component.member, error)
            return None

    def write_component(
        self, component: Component, offset: int, data: bytes | memoryview, cause: str
    ) -> bool:
        """Write to a component, counted under a cause; durable after the next flush.

        Returns whether its device has the data. Every write comes here.
        """
        device, length = component.member.device, len(data)
        if device is None:
            return False
        assert offset + length <= component.size, "a write goes beyond its component"
        self.ios += 1
        counts = component.meter[cause]
        counts.writes += 1
        counts.bytes_written += length
        try:
            device.write(component.base + offset, data)
        except OSError as error:
            self._failed(component.member, error)
            return False
        return True

    def _repair(self, component: Component, offset: int, data: bytes | memoryview) -> None:
        with suppress(HostRefused):  # the data that was read is good anyway
            self.write_component(component, offset, data, "repair")
            self.repairs += 1

    def _emit(self, event: str, used: list[Component], **facts: object) -> None:
        """Emit which components an action used, unless all components are active."""
        if self._events.record is not None and len(self.active()) < len(self.components):
            devices = sorted(component.member.index for component in used)
            self._events.emit(event, leg=self.name, devices=devices, **facts)
