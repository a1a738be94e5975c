"""Resync: give a member, stripe by stripe, what it lacks.

It lacks what it missed while it was away, or everything if it is a new device (rebuild). Stripes
are copied in the order of their birth, are verified, and only if something still lives in them.
Meanwhile the member takes part in all writes. When nothing is left, a checkpoint follows, in steps;
after it neither the log nor anything older than the maps in use is needed. But the member may have
records behind the end of the log that recovery found nowhere else. A new generation of the log
disowns them; only then is the member active.
"""

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from refmodel.array.array import Array
from refmodel.array.component import Component
from refmodel.array.layout import PAGE
from refmodel.array.leg import Check, Leg
from refmodel.array.member import ComponentState, Member
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost
from refmodel.log_structured.checkpointing import Checkpointer, Earned
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.state import DiskState

MANY = 1 << 40  # stripes of a leg are fewer
CHECKPOINT_STEP = Earned(1, 16)  # the part of the checkpoint done per step after the last stripe


class MissedStripe(NamedTuple):
    """A stripe that a component lacks, and when what lives in it was born."""

    born: int
    leg: Leg
    component: Component
    stripe: int


class MissedStripes:
    """The stripes that a member lacks, the oldest first, packed: there may be one in each page."""

    def __init__(self, parts: list[tuple[Leg, Component, Iterator[tuple[int, int]]]]) -> None:
        """Each part has stripes of one component, with the birth of each."""
        self._components = [(leg, component) for leg, component, _ in parts]
        entries = [
            (born * len(parts) + part) * MANY + stripe
            for part, (_, _, births) in enumerate(parts)
            for stripe, born in births
        ]
        entries.sort(reverse=True)
        # The last one is the first to be copied, so that it can be removed.
        self._births = array("Q", (entry // MANY // len(parts) for entry in entries))
        self._parts = array("B", (entry // MANY % len(parts) for entry in entries))
        self._stripes = array("Q", (entry % MANY for entry in entries))

    def __len__(self) -> int:
        return len(self._stripes)

    @property
    def first(self) -> MissedStripe:
        """The stripe that is copied next; there must be one."""
        leg, component = self._components[self._parts[-1]]
        return MissedStripe(self._births[-1], leg, component, self._stripes[-1])

    def remove_first(self) -> None:
        """Remove that stripe."""
        del self._births[-1], self._parts[-1], self._stripes[-1]


class Resync:
    """Resyncs and rebuilds the members of one disk."""

    def __init__(self, state: DiskState, array: Array[Geometry], checkpoints: Checkpointer) -> None:
        self._state = state
        self._checkpoints = checkpoints
        self._array = array
        self._queues: dict[int, MissedStripes] = {}  # device -> what it lacks
        self._complete: dict[int, int] = {}  # device -> the checkpoint that it becomes active at
        self.steps = 0  # since the disk was opened: each a stripe, or a step of a checkpoint
        # The stripes of the performance leg before this one are the slots and the log.
        self._first_page = state.geometry.pages_base // PAGE
        self.lost = 0  # chunks and pages of which no good copy is left

    def begin(self, member: Member) -> None:
        """Find out what a member lacks, or put that off until enough devices are there.

        Raises DataLost if they fail meanwhile; a step finds it out then.
        """
        self._complete.pop(member.index, None)
        self._queues.pop(member.index, None)
        if self._array.writable:
            self._find_out(member)

    def _find_out(self, member: Member) -> None:
        try:
            self._state.survey.learn_births()
        except DataLost:
            member.distrust()
            raise
        components = [*self._array.components(member)]
        for leg, component in components:
            component.lack_nothing()
            component.lack(stripe for stripe, _ in self.births(leg, member.since))
            self._state.emit(
                "missed",
                leg=leg.name,
                device=member.index,
                stripes=partial(list, component.missed),
                living=partial(self._living, leg),
            )
            if leg is self._array.performance:
                component.lack(range(self._first_page))
        self._queues[member.index] = MissedStripes(
            [(leg, component, self.births(leg, member.since)) for leg, component in components]
        )

    def begin_all(self) -> None:
        """Begin for every member that is there but not active, after the disk was opened."""
        for member in self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING):
            self.begin(member)

    def step(self) -> bool:
        """Copy one stripe, or make one member active. Returns False if nothing could be done.

        Raises NoSpace, DataLost.
        """
        for member in self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING):
            if self._step(member):
                self.steps += 1
                return True
        return False

    def keep_progress(self) -> None:
        """Put on record, after a checkpoint, how far each resyncing member is."""
        durable, progress = self._state.clock.durable, {}
        for member in self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING):
            if (queue := self._queues.get(member.index)) is not None:
                progress[member.index] = min(durable, queue.first.born - 1 if queue else durable)
        self._array.record_progress(progress)

    def progress(self) -> dict[int, int]:
        """Return device -> how many stripes are left to copy."""
        stale = self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING)
        return {member.index: len(self._queues.get(member.index, ())) for member in stale}

    def _step(self, member: Member) -> bool:
        if member.index not in self._queues:
            if not self._array.writable:
                return False
            self._find_out(member)
        queue = self._queues[member.index]
        while queue and not self._is_due(queue.first):
            queue.remove_first()
        if queue:
            missed = queue.first
            try:
                lost = missed.leg.resync(
                    missed.component, missed.stripe, self._checks(missed), member.catches_up
                )
            except DataLost:
                return False  # until more devices are back
            self.lost += len(lost)
            if member.reachable:
                queue.remove_first()
                member.begin_resync()
            return True
        if not self._array.writable:
            return False
        checkpoints, number = self._checkpoints, self._state.checkpoint_number
        if self._complete.setdefault(member.index, number + 1 + checkpoints.is_frozen) > number:
            return checkpoints.step(0, CHECKPOINT_STEP)
        self._state.log.begin()
        if member.reachable:
            del self._complete[member.index]
            del self._queues[member.index]
            self._array.activate(member)
        return True

    def births(self, leg: Leg, since: int) -> Iterator[tuple[int, int]]:
        """Yield stripe and birth, of what lives and was born after `since`, in order of stripes."""
        if leg is self._array.capacity:
            for segment, use in self._state.segments.sealed.items():
                if use.filled > since:
                    yield segment, use.filled
            return
        for page, born in self._state.pages.stored():
            if born > since:
                yield self._first_page + page, born

    def _living(self, leg: Leg) -> list[int]:
        """Return the stripes that are written and that something lives in."""
        if leg is self._array.capacity:
            return [*self._state.segments.sealed]
        return [self._first_page + page for page, _ in self._state.pages.stored()]

    def _is_due(self, missed: MissedStripe) -> bool:
        """Return whether the component still lacks the stripe, and something still lives there."""
        if missed.stripe not in missed.component.missed:
            return False
        if missed.leg is self._array.capacity:
            usage = self._state.segments.sealed.get(missed.stripe)
            return usage is not None and usage.filled == missed.born
        return True  # a page that the maps gave up is needed until a checkpoint without it counts

    def _checks(self, missed: MissedStripe) -> list[Check]:
        if missed.leg is self._array.capacity:
            return chunk_checks(self._state, missed.stripe)
        page = missed.stripe - self._first_page
        in_use = self._state.pages.in_use.get(page)
        if in_use is None or in_use[1] != missed.born:
            return []
        return [page_check(self._state, page)]


def chunk_checks(state: DiskState, segment: int) -> list[Check]:
    """Return how to recognise every chunk that lives in a segment. Raises DataLost."""
    addressing = state.segments.addressing
    return [
        Check(addressing.offset(pba), addressing.length(pba), _has_checksum(checksum))
        for pba, checksum in state.chunks.living(segment).values()
    ]


def page_check(state: DiskState, page: int) -> Check:
    """Return how to recognise the node of a page that is in use."""
    kind, _ = state.pages.in_use[page]
    return state.pages.check(page, kind)


def _has_checksum(crc: int) -> Callable[[bytes], bool]:
    return lambda data: crc32c(data) == crc
