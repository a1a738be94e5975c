"""A component: the part of a leg that is on one device."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from refmodel.array.member import Member

Counts = defaultdict[str, int]  # an increment of a Counter costs twice as much


@dataclass(slots=True)
class Meter:
    """Device I/Os and bytes of one component, by cause ("foreground", "checkpoint", ...)."""

    reads: Counts = field(default_factory=lambda: defaultdict(int))
    writes: Counts = field(default_factory=lambda: defaultdict(int))
    flushes: Counts = field(default_factory=lambda: defaultdict(int))
    bytes_read: Counts = field(default_factory=lambda: defaultdict(int))
    bytes_written: Counts = field(default_factory=lambda: defaultdict(int))


class Component:
    """One component. Its I/O methods may raise PowerCut, or OSError if the device is gone.

    Offsets and lengths are bytes of the component.
    """

    def __init__(self, member: Member, base: int, meter: Meter) -> None:
        self.member = member
        self.base = base  # byte offset of the component on its device
        self.meter = meter
        self.missed: set[int] = set()  # stripes that it lacks, while it is stale or resyncing

    def read(self, offset: int, length: int, cause: str) -> bytes:
        """Read from the device, counted under a cause."""
        self.meter.reads[cause] += 1
        self.meter.bytes_read[cause] += length
        device = self.member.device
        assert device is not None, "only components of reachable members are read"
        return device.read(self.base + offset, length)

    def write(self, offset: int, data: bytes | memoryview, cause: str) -> None:
        """Write to the device, counted under a cause; durable after the next flush."""
        self.meter.writes[cause] += 1
        self.meter.bytes_written[cause] += len(data)
        device = self.member.device
        assert device is not None, "only components of reachable members are written"
        device.write(self.base + offset, data)

    def flush(self, cause: str) -> None:
        """Make durable what was written, counted under a cause."""
        self.meter.flushes[cause] += 1
        device = self.member.device
        assert device is not None, "only components of reachable members are flushed"
        device.flush()

    def lack(self, stripes: Iterable[int]) -> None:
        """The component lacks these stripes, besides those that it lacks already."""
        self.missed.update(stripes)

    def receive(self, stripes: Iterable[int]) -> None:
        """The component has these stripes now."""
        self.missed.difference_update(stripes)

    def lack_nothing(self) -> None:
        """Forget which stripes the component lacks."""
        self.missed.clear()
