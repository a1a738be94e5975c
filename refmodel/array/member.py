"""A member: the part that one device has in a disk. Its state changes in this file only.

A member has a component of each leg that it serves. They fail and return together, so the state
belongs to the member. Its transitions are those of specs/Redundancy.tla.
"""

from dataclasses import dataclass
from enum import StrEnum

from refmodel.array.membership import Entry
from refmodel.media.device import Device


class ComponentState(StrEnum):
    """The state of a member, and so of its components."""

    __hash__ = str.__hash__  # Enum's own is written in Python

    ACTIVE = "active"
    ABSENT = "absent"  # its device may come back: the repair timer runs
    DEGRADED = "degraded"  # its device will not come back: it is rebuilt at once
    STALE = "stale"  # back, but it missed writes
    RESYNCING = "resyncing"  # it catches up


ACTIVE = ComponentState.ACTIVE  # a global name: each I/O compares with it
REACHABLE = (ComponentState.ACTIVE, ComponentState.STALE, ComponentState.RESYNCING)


@dataclass(eq=False, slots=True)
class Member:
    """One member. Everybody may read its fields; only its methods change them."""

    index: int  # the number of its device
    id: str  # id of its device: a new device with the same number has another id
    state: ComponentState = ComponentState.ACTIVE
    since: int = 0  # unless active: it may lack what was born after this time
    left: float = 0.0  # when it became absent, in seconds of the repair clock
    catches_up: str = "resync"  # or by "rebuild", from nothing
    recorded: bool = True  # whether the membership record says that it left, if it did
    device: Device | None = None

    @classmethod
    def of(cls, entry: Entry) -> "Member":
        """Return the member that an entry of the membership record describes, without a device."""
        return cls(
            entry.index,
            entry.id,
            ComponentState(entry.state),
            entry.since,
            entry.left,
            entry.catches_up,
        )

    def entry(self) -> Entry:
        """Return what the membership record says of this member."""
        return Entry(self.index, self.id, str(self.state), self.since, self.left, self.catches_up)

    @property
    def reachable(self) -> bool:
        """True if its device can be read and written: then it has one while the disk is open."""
        return self.state in REACHABLE

    # While the disk is opened.

    def found(self, device: Device) -> None:
        """Record that its device is present.

        Unless the record calls it active, it missed writes.
        """
        self.device = device
        if self.state is not ACTIVE:
            self.state = ComponentState.STALE

    def found_missing(self, now: float) -> None:
        """Record that its device is not present, at a time of the repair clock.

        The record may not know yet.
        """
        self.recorded = self.state is not ACTIVE
        self.state, self.left, self.device = ComponentState.ABSENT, now, None

    def caught_up_to(self, time: int) -> None:
        """Record that it lacks nothing that was born up to a time of the disk's clock."""
        self.since = time

    # While the disk is open.

    def leave(self, state: ComponentState, now: float, durable: int) -> None:
        """Make it absent or degraded: its device is gone.

        `now` is a time of the repair clock. `durable` is the time of the newest durable checkpoint:
        what was born up to then is on the device.
        """
        if self.state is ACTIVE:
            self.since, self.catches_up, self.recorded = durable, "resync", False
        self.state, self.left, self.device = state, now, None

    def clock_shows(self, now: float) -> None:
        """Take over the time of the repair clock.

        If it went back, it counts from there: else a member that is absent could wait for years.
        """
        self.left = min(self.left, now)

    def put_on_record(self) -> None:
        """Record that the membership record has its state, so writes that it misses may be made."""
        self.recorded = True

    def come_back(self, device: Device, *, missed: bool) -> None:
        """Take its device back: it is stale if it missed writes, else active."""
        self.device = device
        self.state = ComponentState.STALE if missed else ComponentState.ACTIVE
        self.recorded = True

    def rebuild_on(self, index: int, id: str, device: Device) -> None:
        """Put a new device, which has nothing yet, in the place of its own."""
        self.index, self.id, self.device = index, id, device
        self.state, self.since, self.catches_up = ComponentState.RESYNCING, 0, "rebuild"

    def distrust(self) -> None:
        """Let nothing be read from it: what it lacks is not known."""
        self.state = ComponentState.STALE

    def begin_resync(self) -> None:
        """Let it take part in all writes from now on, and catch up with earlier ones."""
        self.state = ComponentState.RESYNCING

    def activate(self) -> None:
        """Make it active: it lacks nothing any more."""
        self.state = ComponentState.ACTIVE
