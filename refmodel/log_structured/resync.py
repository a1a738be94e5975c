"""Resync: give a member, a stripe at a time, what it lacks: what it missed while it was away, or everything on a new device (rebuild).

Stripes are copied in the order of their birth, verified on the way, and only if something lives in them by then. The member takes part in all writes meanwhile.
When nothing is left a checkpoint follows, after which neither the log nor anything older than the maps in use is needed. But the member may have records
behind the end of the log which recovery found nowhere else: a new generation of the log disowns them. Only then is it active.
"""

from collections import deque
from functools import partial
from typing import NamedTuple

from refmodel.array.array import Array
from refmodel.array.component import Component
from refmodel.array.layout import PAGE
from refmodel.array.leg import Check, Leg
from refmodel.array.member import ComponentState, Member
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.node import is_node
from refmodel.log_structured.state import State


class Lack(NamedTuple):
    born: int
    leg: Leg
    component: Component
    stripe: int


class Resync:
    def __init__(self, state: State, array: Array[Geometry]) -> None:
        self._state = state
        self._array = array
        self._queues: dict[int, deque[Lack]] = {}  # by device: the oldest first
        self._first_page = (
            state.geometry.pages_base // PAGE
        )  # the stripes of the performance leg before it are slots and log
        self.lost = 0  # chunks and pages that nothing gave good data of

    def begin(self, member: Member) -> None:
        """Find out what the member lacks."""
        lacks = []
        for leg, component in self._array.components(member):
            born = self._births(leg, member.since)
            component.lack_nothing()
            component.lack(born)
            self._state.emit(
                "missed",
                leg=leg.name,
                device=member.index,
                stripes=[*born],
                living=partial(self._living, leg),
            )
            lacks += [Lack(birth, leg, component, stripe) for stripe, birth in born.items()]
            if leg is self._array.performance:
                component.lack(range(self._first_page))
        self._queues[member.index] = deque(sorted(lacks, key=lambda lack: lack.born))

    def begin_all(self) -> None:
        """After the disk was opened: for every member that is not active but there."""
        for member in self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING):
            self.begin(member)

    def step(self) -> bool:
        """Copy one stripe, or make one member active. Says whether there was anything that could be done."""
        for member in self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING):
            if self._step(member):
                return True
        return False

    def keep_progress(self) -> None:
        """After a checkpoint: put on record how far each member is."""
        durable = self._state.clock.durable
        self._array.record_progress(
            {
                device: min(durable, queue[0].born - 1 if queue else durable)
                for device, queue in self._queues.items()
            }
        )

    def progress(self) -> dict[int, int]:
        """Stripes left to copy, by device."""
        stale = self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING)
        return {member.index: len(self._queues.get(member.index, ())) for member in stale}

    def _step(self, member: Member) -> bool:
        queue = self._queues[member.index]
        while queue and not self._is_due(queue[0]):
            queue.popleft()
        if queue:
            lack = queue[0]
            try:
                self.lost += len(
                    lack.leg.resync(
                        lack.component, lack.stripe, self._checks(lack), member.catches_up
                    )
                )
            except DataLost:
                return False  # until more devices are back
            if queue and queue[0] is lack and member.reachable:
                queue.popleft()
                member.begin_resync()
            return True
        if not self._array.writable:
            return False
        self._state.checkpoint()
        self._state.log.begin()
        if member.reachable:
            del self._queues[member.index]
            self._array.activate(member)
        return True

    def _births(self, leg: Leg, since: int) -> dict[int, int]:
        """Stripe -> birth, of what lives and was born after a time."""
        if leg is self._array.capacity:
            return {
                segment: use.filled
                for segment, use in self._state.segments.sealed.items()
                if use.filled > since
            }
        return {
            self._first_page + page: born
            for page, _, born in self._state.pages.stored()
            if born > since
        }

    def _living(self, leg: Leg) -> list[int]:
        """The stripes that something lives in, and that are written."""
        if leg is self._array.capacity:
            return [*self._state.segments.sealed]
        return [self._first_page + page for page, _, _ in self._state.pages.stored()]

    def _is_due(self, lack: Lack) -> bool:
        """Whether the component still lacks it, and anything still lives there."""
        if lack.stripe not in lack.component.missed:
            return False
        if lack.leg is self._array.capacity:
            usage = self._state.segments.sealed.get(lack.stripe)
            return usage is not None and usage.filled == lack.born
        return (
            self._state.pages.in_use.get(lack.stripe - self._first_page, (None, -1))[1] == lack.born
        )

    def _checks(self, lack: Lack) -> list[Check]:
        if lack.leg is self._array.capacity:
            return chunk_checks(self._state, lack.stripe)
        return [page_check(self._state, lack.stripe - self._first_page)]


def chunk_checks(state: State, segment: int) -> list[Check]:
    """How to recognise every chunk that lives in a segment."""
    places = state.segments.places
    checks = []
    for pba, mba in state.segments.living(segment):
        crc = state.chunks.middle.get(mba)[1]
        checks.append(
            Check(places.offset(pba), places.length(pba), lambda data, crc=crc: crc32c(data) == crc)
        )
    return checks


def page_check(state: State, page: int) -> Check:
    """How to recognise the node of a page that is in use."""
    kind, born = state.pages.in_use[page]
    return Check(state.pages.offset(page), PAGE, lambda data: is_node(page, kind, data, born))
