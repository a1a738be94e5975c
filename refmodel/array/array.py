"""The array: a disk's devices as members of its two legs, and what becomes of them when devices fail, return and are replaced.

Members change only here, and every change is on record (refmodel.array.membership) before anything is written that a member misses. Beyond what the
layout tolerates nothing is written at all, so a member that leaves then and comes back has missed nothing.

What a member lacks follows from births: everything born after the last checkpoint before it left. So a record of one time is
enough, and what was freed meanwhile is not copied (ZFS keeps the like as its dirty time log).
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from refmodel.array import label as labels
from refmodel.array.component import REACHABLE, WRITABLE, Component, ComponentState, Member, Meter
from refmodel.array.label import Label
from refmodel.array.layout import PAGE
from refmodel.array.leg import Leg
from refmodel.array.membership import Entry, Membership
from refmodel.array.quorum import Quorum, newest
from refmodel.core.errors import BadRequest, DataLost
from refmodel.log_structured.geometry import Geometry
from refmodel.media.enclosure import Enclosure

RepairClock = Callable[[], float]  # seconds
DeviceId = tuple[int, str]  # index and id


class ComponentStatus(NamedTuple):
    """A component as `status` shows it."""

    leg: str
    component: int
    device: int
    state: ComponentState
    lacks: int  # stripes; of interest while stale or resyncing
    absent: float  # seconds


class Array:
    """`now` is the repair clock. Whoever uses the array sets `emit`, which is told what happens, and `durable`: the time of the last checkpoint."""

    def __init__(
        self,
        enclosure: Enclosure,
        geometry: Geometry,
        record: Membership,
        now: RepairClock,
    ) -> None:
        self.geometry = geometry
        self.now = now
        self.durable: Callable[[], int] = lambda: 0
        self.emit: Callable[..., None] = lambda event, **facts: None
        self._enclosure = enclosure
        self._disk = record.disk
        self.spares: list[DeviceId] = [*record.spares]
        self._away: list[DeviceId] = [*record.away]
        self.members = [
            Member(e.index, e.id, ComponentState(e.state), e.since, e.left, e.catches_up)
            for e in record.members
        ]
        self._quorum = Quorum(
            enclosure, self.members, record, bool(geometry.witness_bytes), self._lost
        )
        self.meters: defaultdict[tuple[str, int], Meter] = defaultdict(Meter)  # by leg and device
        k, m = geometry.k, geometry.m
        self.performance = Leg(
            "performance", 1, m, PAGE, self._components("performance", m + 1), self._lost
        )
        self.capacity = Leg(
            "capacity",
            k,
            m,
            geometry.segment_bytes,
            self._components("capacity", k + m),
            self._lost,
        )

    @classmethod
    def found(
        cls, enclosure: Enclosure, geometry: Geometry, now: RepairClock = time.time
    ) -> "Array":
        """The members and spares of a new disk, on the fresh devices of an enclosure, not yet on record."""
        devices = [(index, uuid.uuid4().hex) for index in range(geometry.devices)]
        entries = [
            Entry(index, id, ComponentState.ACTIVE, 0, 0.0, "resync")
            for index, id in devices[: geometry.members]
        ]
        record = Membership(uuid.uuid4().hex, 0, entries, devices[geometry.members :])
        array = cls(enclosure, geometry, record, now)
        for member in array.members:
            member.device = enclosure.device(member.index)
        return array

    @classmethod
    def assemble(cls, enclosure: Enclosure, now: RepairClock = time.time) -> "Array":
        """The members of the disk in an enclosure, as the newest record and what is there say.

        Raises NotADisk if there is none, DataLost if too little of it is there.
        """
        found = labels.read_all(enclosure)
        label = next(iter(found.values()))
        array = cls(enclosure, label.geometry, newest(enclosure, label.disk, found), now)
        for member in array.members:
            array._meet(member, found)
        array._quorum.require()
        if not array.performance.active():
            raise DataLost(
                f"no device that is here has a current {array.performance.name} leg; bring devices back"
            )
        array._quorum.spread()
        return array

    def label_devices(self) -> None:
        """Make a new disk's devices known; the labels come last, for without them there is no disk."""
        self.save()
        for index, id in [(member.index, member.id) for member in self.members] + self.spares:
            labels.write(self._enclosure.device(index), Label(self._disk, id, index, self.geometry))

    # What is there.

    @property
    def writable(self) -> bool:
        """Whether what is written can be read: enough components of both legs are in use."""
        return sum(member.state in WRITABLE for member in self.members) >= self.geometry.k and bool(
            self.performance.active()
        )

    def require_writable(self) -> None:
        """Raises DataLost."""
        if not self.writable:
            gone = [str(member.index) for member in self.members if member.state not in WRITABLE]
            raise DataLost(
                f"devices {', '.join(gone)} are gone; the layout {self.geometry.layout} tolerates {self.geometry.m}"
            )

    @property
    def redundant(self) -> bool:
        return {member.state for member in self.members} == {ComponentState.ACTIVE}

    def is_active(self, member: Member) -> bool:
        return member.state is ComponentState.ACTIVE

    def in_state(self, *states: ComponentState) -> list[Member]:
        return [member for member in self.members if member.state in states]

    def components(self, member: Member) -> list[tuple[Leg, Component]]:
        """The member's components."""
        legs = (self.performance, self.capacity)
        return [
            (leg, component)
            for leg in legs
            for component in leg.components
            if component.member is member
        ]

    def standing(self) -> Iterator[ComponentStatus]:
        """Every component."""
        for leg in (self.performance, self.capacity):
            for number, component in enumerate(leg.components):
                member = component.member
                absent = self.now() - member.left if member.state is ComponentState.ABSENT else 0.0
                yield ComponentStatus(
                    leg.name, number, member.index, member.state, len(component.missed), absent
                )

    # What happens to devices. Each raises BadRequest where there is nothing to do it to.

    def fail(self, device: int, mode: str) -> None:
        """The device goes: it may come back ("absent") or will not ("degraded")."""
        if mode not in (ComponentState.ABSENT, ComponentState.DEGRADED):
            raise BadRequest(f"a device fails as absent or degraded, not as {mode!r}")
        self._require_device(device)
        if (member := self._member(device)) is None:
            spare = next((spare for spare in self.spares if spare[0] == device), None)
            if spare is None:
                raise BadRequest(f"device {device} is not in use")
            self.spares.remove(spare)
            self._away.append(spare)
            self._enclosure.pull(device)
            self._changed()
        elif member.reachable or (
            member.state is ComponentState.ABSENT and mode == ComponentState.DEGRADED
        ):
            self._enclosure.pull(device)
            self._leave(member, ComponentState(mode))
        else:
            raise BadRequest(f"device {device} is {member.state} already")
        self.emit("fail", device=device, mode=mode)

    def return_(self, device: int) -> Member | None:
        """The device is back: it becomes a spare, or its member, which is given then, catches up."""
        self._require_device(device)
        member = self._member(device)
        if member is not None and member.state is not ComponentState.ABSENT:
            hint = "; replace it" if member.state is ComponentState.DEGRADED else ""
            raise BadRequest(f"device {device} is {member.state}, not absent{hint}")
        if not self._enclosure.insert(device) and device not in self._enclosure.present():
            raise BadRequest(f"device {device} is not there to come back")
        label = labels.read(self._enclosure.device(device))
        id = label.device if label is not None and label.disk == self._disk else ""
        if member is not None and id == member.id:
            member.device = self._enclosure.device(device)
            member.state = ComponentState.STALE if member.recorded else ComponentState.ACTIVE
            member.recorded = True
        elif (device, id) in self._away:
            self._away.remove((device, id))
            self.spares.append((device, id))
            member = None
        else:
            self._enclosure.pull(device)
            raise BadRequest(f"device {device} is not the one that left")
        self._changed()
        self.emit("return", device=device, state="spare" if member is None else str(member.state))
        return member

    def replace(self, device: int) -> Member | None:
        """A new, empty device in the place of one that is gone: a spare, or its member, given then, is rebuilt on it."""
        self._require_device(device)
        member = self._member(device)
        if member is not None:
            if member.reachable:
                raise BadRequest(f"device {device} is {member.state}: fail it first")
            self.require_writable()
        elif device in [spare[0] for spare in self.spares]:
            raise BadRequest(f"device {device} is a spare already")
        self._away = [away for away in self._away if away[0] != device]
        id = uuid.uuid4().hex
        labels.write(
            self._enclosure.renew(device, self.geometry.device_bytes),
            Label(self._disk, id, device, self.geometry),
        )
        if member is not None:
            self._begin(member, (device, id))
        else:
            self.spares.append((device, id))
            self._changed()
        self.emit("replace", device=device, state="spare" if member is None else str(member.state))
        return member

    def rebuild(self) -> Member | None:
        """Begin to rebuild one member that is due, on a spare, if there is one. Says which."""
        if not self.spares or not self.writable:
            return None
        member = next(filter(self._due, self.members), None)
        spare = next(filter(self._is_there, self.spares), None) if member is not None else None
        if member is None or spare is None:
            return None
        if member.state is ComponentState.ABSENT:
            self._away.append((member.index, member.id))
        self.spares.remove(spare)
        before = member.index
        self._begin(member, spare)
        self.emit("rebuild", device=before, onto=spare[0])
        return member

    def activate(self, member: Member) -> None:
        """The member lacks nothing any more."""
        member.state = ComponentState.ACTIVE
        for _, component in self.components(member):
            component.missed.clear()
        self.save()
        self.emit("active", device=member.index)

    def progressed(self, since: dict[int, int]) -> None:
        """Members, by device, lack only what was born after a time: keep that, so that a crash does not lose it."""
        moved = [member for member in self.members if since.get(member.index, 0) > member.since]
        for member in moved:
            member.since = since[member.index]
        if moved:
            self.save()

    def save(self) -> None:
        """Put the members on record. Raises DataLost if a majority cannot be reached."""
        entries = [
            Entry(m.index, m.id, str(m.state), m.since, m.left, m.catches_up) for m in self.members
        ]
        self._quorum.keep(entries, self.spares, self._away)

    # How it is done.

    def _components(self, leg: str, count: int) -> list[Component]:
        base = (
            self.geometry.performance_base if leg == "performance" else self.geometry.capacity_base
        )
        return [
            Component(member, base, self.meters[leg, member.index])
            for member in self.members[:count]
        ]

    def _meet(self, member: Member, found: dict[int, Label]) -> None:
        """Now that the disk is opened: is the member's device there, and what is it worth?"""
        label = found.get(member.index)
        if (
            label is not None
            and label.device == member.id
            and member.state is not ComponentState.DEGRADED
        ):
            member.device = self._enclosure.device(member.index)
            if member.state is not ComponentState.ACTIVE:
                member.state = ComponentState.STALE
        elif member.state in REACHABLE:
            member.recorded = member.state is not ComponentState.ACTIVE
            member.state, member.left = ComponentState.ABSENT, self.now()

    def tell_members(self) -> None:
        """What the disk was found to be made of when it was opened."""
        self.emit("members", members=[[member.index, str(member.state)] for member in self.members])

    def record_absent(self) -> None:
        """Members that were found gone when the disk was opened are put on record, now that the last checkpoint is known."""
        gone = [member for member in self.members if not member.recorded]
        for member in gone:
            member.since = self.durable()
        if gone:
            self._changed()

    def _leave(self, member: Member, state: ComponentState) -> None:
        if member.state is ComponentState.ACTIVE:
            member.since, member.catches_up, member.recorded = self.durable(), "resync", False
        member.state, member.left, member.device = state, self.now(), None
        for _, component in self.components(member):
            component.missed.clear()
        self._changed()

    def _lost(self, member: Member, error: OSError) -> None:
        """A device raised an error: it is absent from now on. Raises DataLost if the disk cannot go on without it."""
        if not member.reachable:
            return
        self._enclosure.pull(member.index)
        self._leave(member, ComponentState.ABSENT)
        self.emit("fail", device=member.index, mode=str(ComponentState.ABSENT))
        self.require_writable()

    def _changed(self) -> None:
        """Put a change on record, unless so little is left that nothing may be written."""
        if self.writable:
            for member in self.members:
                member.recorded = True
            self.save()

    def _begin(self, member: Member, device: DeviceId) -> None:
        member.index, member.id = device
        member.device = self._enclosure.device(member.index)
        member.state, member.since, member.catches_up = ComponentState.RESYNCING, 0, "rebuild"
        for leg, component in self.components(member):
            component.meter = self.meters[leg.name, member.index]
        self.save()

    def _due(self, member: Member) -> bool:
        waited = self.now() - member.left >= self.geometry.repair_timer
        return member.state is ComponentState.DEGRADED or (
            member.state is ComponentState.ABSENT and waited
        )

    def _is_there(self, spare: DeviceId) -> bool:
        """Whether a spare can be used: it may have gone, or been exchanged, while nobody looked at it."""
        index, id = spare
        label = (
            labels.read(self._enclosure.device(index))
            if index in self._enclosure.present()
            else None
        )
        return label is not None and (label.disk, label.device) == (self._disk, id)

    def _member(self, device: int) -> Member | None:
        return next((member for member in self.members if member.index == device), None)

    def _require_device(self, device: int) -> None:
        if not 0 <= device < self.geometry.devices:
            raise BadRequest(
                f"there is no device {device}: this disk has devices 0 to {self.geometry.devices - 1}"
            )
