"""The status of an array: every component with its state."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from refmodel.array.array import Array
from refmodel.array.member import ComponentState


class ComponentStatus(NamedTuple):
    """A component as `refmodel status` shows it."""

    leg: str
    component: int
    device: int
    state: ComponentState
    lacks: int  # stripes; of interest while stale or resyncing
    absent: float  # seconds


def component_status(array: Array[Any]) -> Iterator[ComponentStatus]:
    """Yield the status of every component of both legs."""
    for leg in (array.performance, array.capacity):
        for number, component in enumerate(leg.components):
            member = component.member
            waits = member.state is ComponentState.ABSENT
            absent = array.now() - member.left if waits else 0.0
            yield ComponentStatus(
                leg.name, number, member.index, member.state, len(component.missed), absent
            )
