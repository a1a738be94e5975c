"""The array: the devices of a disk as members of its two legs, and what happens to devices.

Devices fail, return and are replaced. Each change is on record (refmodel.array.membership) before
anything is written that a member misses. When more devices are gone than the layout tolerates,
nothing is written, so a member that leaves then and comes back has missed nothing.

What a member lacks follows from times of birth: everything born after the last checkpoint before it
left. So the record keeps one time per member, and what was freed meanwhile is not copied. ZFS keeps
its dirty time log for the same purpose.

It has more than 300 lines because each change of a member touches the same state.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import Generic, TypeVar

from refmodel.array import label as labels
from refmodel.array.component import Component, Meter
from refmodel.array.label import Label
from refmodel.array.layout import PAGE, ArrayGeometry
from refmodel.array.leg import Leg
from refmodel.array.member import ACTIVE, ComponentState, Member
from refmodel.array.membership import DeviceId, Membership
from refmodel.array.roster import Roster
from refmodel.core.clock import Clock
from refmodel.core.errors import BadRequest, HostRefused
from refmodel.core.events import Events
from refmodel.media.enclosure import Enclosure

RepairClock = Callable[[], float]  # returns seconds
G = TypeVar("G", bound=ArrayGeometry)


class Array(Generic[G]):
    """The array of one open disk. `now` is the repair clock, in seconds.

    `legs_emit` says whether reads, writes and copies of the legs are events of the disk.
    """

    def __init__(
        self,
        enclosure: Enclosure,
        geometry: G,
        record: Membership,
        now: RepairClock,
        *,
        legs_emit: bool,
    ) -> None:
        self.geometry = geometry
        self.now = now
        self.events = Events()  # events of the whole disk
        self.labels_repaired = 0  # devices whose label was repaired when the disk was opened
        self.slots_repaired = 0  # copies of the newest checkpoint's slot that were, then
        self._leg_events = self.events if legs_emit else Events()
        self.clock = Clock()  # the disk's clock: times of birth and of the last checkpoint
        self._enclosure = enclosure
        self.roster = Roster(enclosure, geometry, record, self._lost)
        self.members = self.roster.members
        self.meters: defaultdict[tuple[str, int], Meter] = defaultdict(Meter)  # by leg and device
        k, m = geometry.k, geometry.m
        base, end = geometry.capacity_base, geometry.device_bytes
        self.performance = self._leg("performance", 1, m, PAGE, geometry.performance_base, base)
        self.capacity = self._leg("capacity", k, m, geometry.segment_bytes, base, end)

    def label_devices(self) -> None:
        """Put the members of a new disk on record, and label its devices.

        The labels come last: without them there is no disk.
        """
        self.roster.save()
        for index, id in [(member.index, member.id) for member in self.members] + self.spares:
            self._label(index, id)

    # Questions about the array.

    @property
    def spares(self) -> list[DeviceId]:
        """Devices that may take the place of a member."""
        return self.roster.spares

    @property
    def writable(self) -> bool:
        """True if what is written can be read again after the next opening."""
        return self._enough and self.roster.quorum.counts

    def require_writable(self) -> None:
        """Raises DataLost if too many devices are gone, or their last change does not count."""
        if not self.writable:
            raise self.roster.quorum.uncounted() if self._enough else self.roster.gone()

    @property
    def redundant(self) -> bool:
        """True if every member is active, and is that on a majority of the members."""
        for member in self.members:
            if member.state is not ACTIVE:
                return False
        return self.roster.quorum.counts

    def in_state(self, *states: ComponentState) -> list[Member]:
        """Return the members in any of the states, in their order."""
        return self.roster.in_state(*states)

    def components(self, member: Member) -> list[tuple[Leg, Component]]:
        """Return the components of a member, each with its leg."""
        legs = (self.performance, self.capacity)
        return [
            (leg, component)
            for leg in legs
            for component in leg.components
            if component.member is member
        ]

    def missed_writes(self, member: Member) -> bool:
        """Return whether a member that left may have missed writes: only once it was on record."""
        return member.recorded

    # Devices fail, return and are replaced. Each method raises BadRequest if the device is not in
    # the state that the change begins in.

    def fail(self, device: int, mode: str) -> None:
        """Let a device leave: it may come back ("absent") or will not ("degraded")."""
        if mode not in (ComponentState.ABSENT, ComponentState.DEGRADED):
            raise BadRequest(f"a device fails as absent or degraded, not as {mode!r}")
        degraded = mode == ComponentState.DEGRADED
        member, spare = self.roster.member(device), self.roster.spare(device)
        if member is None and spare is not None:
            self.spares.remove(spare)
            self.roster.away.append(spare)
            self._enclosure.pull(device)
            self._record()
        elif member is None:
            raise BadRequest(f"device {device} is not in use")
        elif member.reachable or (member.state is ComponentState.ABSENT and degraded):
            self._enclosure.pull(device)
            self._leave(member, ComponentState(mode))
        else:
            raise BadRequest(f"device {device} is {member.state} already")
        self.events.emit("fail", device=device, mode=mode)

    def return_(self, device: int) -> Member | None:
        """Take back a device. Returns its member; None if the device is a spare now."""
        member = self.roster.member(device)
        if member is not None and member.state is not ComponentState.ABSENT:
            hint = "; replace it" if member.state is ComponentState.DEGRADED else ""
            raise BadRequest(f"device {device} is {member.state}, not absent{hint}")
        inserted = self._enclosure.insert(device)
        if not inserted and device not in self._enclosure.present():
            raise BadRequest(f"device {device} is not there to come back")
        label = labels.read(self._enclosure.device(device))
        id = label.device if label is not None and label.disk == self.roster.disk else ""
        if member is not None and id == member.id:
            member.come_back(self._enclosure.device(device), missed=self.missed_writes(member))
        elif (device, id) in self.roster.away:
            self.roster.away.remove((device, id))
            self.spares.append((device, id))
            member = None
        elif inserted and (device, id) in self.spares:
            member = None  # it left when nothing could be put on record
        else:
            if inserted:
                self._enclosure.pull(device)
            raise BadRequest(f"device {device} is not the one that left")
        self._record()
        self._emit_state("return", device, member)
        return member

    def replace(self, device: int) -> Member | None:
        """Put a new, empty device in the place of one that is gone.

        Returns its member, which has to be rebuilt on it; None if the new device is a spare. Raises
        DataLost if too few members are left to rebuild it from.
        """
        member = self.roster.member(device)
        if member is not None:
            if member.reachable:
                raise BadRequest(f"device {device} is {member.state}: fail it first")
            self.require_writable()
        elif self.roster.spare(device) is not None:
            raise BadRequest(f"device {device} is a spare already")
        self.roster.away = [away for away in self.roster.away if away[0] != device]
        id = uuid.uuid4().hex
        self._enclosure.renew(device, self.geometry.device_bytes)
        self._label(device, id)
        if member is not None:
            self._rebuild_on(member, (device, id))
        else:
            self.spares.append((device, id))
            self._record()
        self._emit_state("replace", device, member)
        return member

    def rebuild(self) -> Member | None:
        """Begin to rebuild one member that is due, on a spare. Returns it, or None."""
        if not self.spares or not self.writable:
            return None
        member = next(filter(self._is_due, self.members), None)
        spare = self.roster.usable_spare() if member is not None else None
        if member is None or spare is None:
            return None
        if member.state is ComponentState.ABSENT:
            self.roster.away.append((member.index, member.id))
        self.spares.remove(spare)
        before = member.index
        self._rebuild_on(member, spare)
        self.events.emit("rebuild", device=before, onto=spare[0])
        return member

    def activate(self, member: Member) -> None:
        """Make a member active, and record that: it lacks nothing any more."""
        member.activate()
        self._lack_nothing(member)
        self.roster.save()
        if member.state is ACTIVE:  # else its device has gone meanwhile
            self.events.emit("active", device=member.index)

    def verify_label(self, member: Member) -> bool:
        """Rewrite the label of a member if it is wrong; return whether it was.

        Raises DataLost if the disk cannot go on without the device.
        """
        if member.device is None:
            return False
        try:
            label = self._label_of(member.index, member.id)
            return labels.rewrite_if_wrong(member.device, label)
        except HostRefused:
            return False
        except OSError as error:
            self._lost(member, error)
            return False

    def record_progress(self, since: dict[int, int]) -> None:
        """Members, by number of their device, lack only what was born after a time.

        That is put on record, so that a crash does not lose the progress.
        """
        moved = [member for member in self.members if since.get(member.index, 0) > member.since]
        for member in moved:
            member.caught_up_to(since[member.index])
        if moved:
            self.roster.save()

    # After the disk was opened.

    def emit_members(self) -> None:
        """Emit an event with the members, their states and the spares, as the disk was found."""
        states = [[member.index, str(member.state)] for member in self.members]
        spares = [index for index, _ in self.spares]
        self.events.emit("members", members=states, spares=spares, term=self.roster.quorum.term)

    def record_missing(self) -> None:
        """Put on record the members that were found missing, before the log is replayed.

        Otherwise a later opening would accept what they alone have of the log. The last checkpoint
        is loaded by then. Raises DataLost if nothing may be written without them."""
        missing = [member for member in self.members if not member.recorded]
        for member in missing:
            member.caught_up_to(self.clock.durable)
        if missing:
            self.require_writable()
            self._record()

    # How it is done.

    @property
    def _enough(self) -> bool:
        """True if enough components of both legs are written for data to be read again."""
        return self.roster.enough and bool(self.performance.active())

    def _leg(self, name: str, k: int, m: int, stripe_bytes: int, base: int, end: int) -> Leg:
        components = [
            Component(member, base, end - base, self.meters[name, member.index])
            for member in self.members[: k + m]
        ]
        return Leg(name, k, m, stripe_bytes, components, self._lost, self._leg_events)

    def _label(self, index: int, id: str) -> None:
        labels.write(self._enclosure.device(index), self._label_of(index, id))

    def _label_of(self, index: int, id: str) -> Label:
        return Label(self.roster.disk, id, index, self.geometry.as_dict())

    def _leave(self, member: Member, state: ComponentState) -> None:
        member.leave(state, self.now(), self.clock.durable)
        self._lack_nothing(member)
        self._record()

    def _lost(self, member: Member, error: OSError) -> None:
        """Make a device absent, since it raised an error.

        Raises DataLost if the disk cannot go on without it.
        """
        if not member.reachable:
            return
        self._enclosure.pull(member.index)
        self._leave(member, ComponentState.ABSENT)
        self.events.emit("fail", device=member.index, mode=str(ComponentState.ABSENT))
        self.require_writable()

    def _record(self) -> None:
        """Put a change on record, unless so little is left that nothing may be written."""
        if self._enough:
            self.roster.save()
            for member in self.members:
                member.put_on_record()

    def _rebuild_on(self, member: Member, device: DeviceId) -> None:
        index, id = device
        member.rebuild_on(index, id, self._enclosure.device(index))
        for leg, component in self.components(member):
            component.meter = self.meters[leg.name, index]
        self.roster.save()

    def _lack_nothing(self, member: Member) -> None:
        """Forget what the components of a member lack."""
        for _, component in self.components(member):
            component.lack_nothing()

    def _is_due(self, member: Member) -> bool:
        """Return whether a member that is gone has to be rebuilt now."""
        if member.state is ComponentState.DEGRADED:
            return True
        if member.state is not ComponentState.ABSENT:
            return False
        member.clock_shows(self.now())
        return self.now() - member.left >= self.geometry.repair_timer

    def _emit_state(self, event: str, device: int, member: Member | None) -> None:
        """Emit an event with the state of a device that is new or back."""
        state = "spare" if member is None else str(member.state)
        self.events.emit(event, device=device, state=state)
