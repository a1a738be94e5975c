"""Resync and rebuild of an in-place array: every stripe is copied, in order.

There are no times of birth, so nothing says what a member missed. A device that returned is
resynced like a new one.
"""

from collections.abc import Callable

from refmodel.array.array import Array
from refmodel.array.component import Component
from refmodel.array.layout import PAGE
from refmodel.array.member import ComponentState, Member
from refmodel.core.errors import DataLost
from refmodel.inplace.geometry import InPlaceGeometry


class StripeResync:
    """The resync of all members of one open disk.

    `checkpoint` makes the stripes durable, empties the journal and begins its generation: after
    that a member needs no record of the journal, and what it has behind the end never counts.
    """

    def __init__(self, array: Array[InPlaceGeometry], checkpoint: Callable[[], None]) -> None:
        self._array = array
        self._checkpoint = checkpoint
        self._cursor: dict[int, int] = {}  # device -> the first stripe that was not copied yet

    def begin(self, member: Member) -> None:
        """Begin to resync a member, which lacks everything."""
        geometry = self._array.geometry
        for leg, component in self._array.components(member):
            capacity = leg is self._array.capacity
            component.lack(
                range(geometry.stripes if capacity else geometry.performance_bytes // PAGE)
            )
        self._cursor[member.index] = 0

    def begin_all(self) -> None:
        """Begin for every member that is present and not active, after the disk was opened."""
        for member in self._behind():
            self.begin(member)

    def step(self) -> bool:
        """Copy one stripe, or make one member active. Returns whether anything could be done."""
        return any(self._step(member) for member in self._behind())

    def _behind(self) -> list[Member]:
        """Return the members that have to catch up."""
        return self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING)

    def _step(self, member: Member) -> bool:
        member.begin_resync()
        leg = self._array.capacity
        component = next(component for component in leg.components if component.member is member)
        if component.missed:
            try:
                leg.resync(component, self._next(component), [], member.catches_up)
            except DataLost:
                return False  # until more devices are back
            return True
        if not self._array.writable:
            return False
        self._checkpoint()
        if member.state is ComponentState.RESYNCING:
            self._array.activate(member)
        return True

    def _next(self, component: Component) -> int:
        """Move the cursor to the first stripe that a component lacks, and return it."""
        stripe = self._cursor[component.member.index]
        while stripe not in component.missed:
            stripe += 1
        self._cursor[component.member.index] = stripe
        return stripe
