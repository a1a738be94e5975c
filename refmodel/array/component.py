"""A component is the part of a leg on one device; the components of a device fail and return together, as one member of the disk."""

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum

from refmodel.media.device import Device

Counts = defaultdict[str, int]  # an increment of a Counter costs twice as much


class ComponentState(StrEnum):
    __hash__ = str.__hash__  # Enum's own is written in Python

    ACTIVE = "active"
    ABSENT = "absent"  # its device may come back: the repair timer runs
    DEGRADED = "degraded"  # its device will not: it is rebuilt at once
    STALE = "stale"  # back, but it missed writes
    RESYNCING = "resyncing"  # catching up


ACTIVE = (
    ComponentState.ACTIVE
)  # for where every I/O asks: looking up a member of an Enum costs more than the comparison
REACHABLE = (ComponentState.ACTIVE, ComponentState.STALE, ComponentState.RESYNCING)
WRITABLE = (ComponentState.ACTIVE, ComponentState.RESYNCING)


@dataclass(eq=False, slots=True)
class Member:
    """A device's part in the disk: its components, one of each leg that it serves, fail and return together."""

    index: int  # of the device
    id: str  # of the device: a new one in the same place has another
    state: ComponentState = ComponentState.ACTIVE
    since: int = 0  # unless active: it may lack what was born after this time
    left: float = 0.0  # when it became absent, in seconds of the repair clock
    catches_up: str = "resync"  # or by "rebuild", from nothing
    recorded: bool = True  # that it left is on record; else nothing was written since
    device: Device | None = None

    @property
    def reachable(self) -> bool:
        return self.state in REACHABLE


@dataclass(slots=True)
class Meter:
    """What was done to one leg's part of one device, by cause."""

    reads: Counts = field(default_factory=lambda: defaultdict(int))
    writes: Counts = field(default_factory=lambda: defaultdict(int))
    flushes: Counts = field(default_factory=lambda: defaultdict(int))
    bytes_read: Counts = field(default_factory=lambda: defaultdict(int))
    bytes_written: Counts = field(default_factory=lambda: defaultdict(int))


class Component:
    """The part of a leg on one device. Every method may raise PowerCut, or OSError where the device is gone."""

    def __init__(self, member: Member, base: int, meter: Meter) -> None:
        self.member = member
        self.base = base  # byte offset of the component on its device
        self.meter = meter
        self.missed: set[int] = set()  # while stale or resyncing: the stripes that it lacks

    def read(self, offset: int, length: int, cause: str) -> bytes:
        self.meter.reads[cause] += 1
        self.meter.bytes_read[cause] += length
        return self.member.device.read(self.base + offset, length)

    def write(self, offset: int, data: bytes, cause: str) -> None:
        self.meter.writes[cause] += 1
        self.meter.bytes_written[cause] += len(data)
        self.member.device.write(self.base + offset, data)

    def flush(self, cause: str) -> None:
        self.meter.flushes[cause] += 1
        self.member.device.flush()
