"""Resync of an in-place array: no record says what a member missed, so every stripe is copied, in order, on a returned device as on a new one."""

from collections.abc import Callable

from refmodel.array.array import Array
from refmodel.array.component import Component, ComponentState, Member
from refmodel.array.layout import PAGE
from refmodel.core.errors import DataLost


class StripeResync:
    """`settled` makes the stripes durable and the journal empty, of this life's generation: then a member needs neither, and what it has behind the end counts for nothing."""

    def __init__(self, array: Array, stripes: int, settled: Callable[[], None]) -> None:
        self._array = array
        self._stripes = stripes
        self._settled = settled
        self._cursor: dict[int, int] = {}  # by device: what lies before it is there

    def begin(self, member: Member) -> None:
        """The member lacks everything."""
        for leg, component in self._array.components(member):
            everything = (
                self._stripes
                if leg is self._array.capacity
                else self._array.geometry.performance_bytes // PAGE
            )
            component.missed = set(range(everything))
        self._cursor[member.index] = 0

    def begin_all(self) -> None:
        for member in self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING):
            self.begin(member)

    def step(self) -> bool:
        """Copy one stripe, or make one member active. Says whether there was anything that could be done."""
        return any(
            self._step(member)
            for member in self._array.in_state(ComponentState.STALE, ComponentState.RESYNCING)
        )

    def _step(self, member: Member) -> bool:
        member.state = ComponentState.RESYNCING
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
        self._settled()
        if member.state is ComponentState.RESYNCING:
            self._array.activate(member)
        return True

    def _next(self, component: Component) -> int:
        """The first stripe that it lacks."""
        stripe = self._cursor[component.member.index]
        while stripe not in component.missed:
            stripe += 1
        self._cursor[component.member.index] = stripe
        return stripe
