"""The audit of an array that has all its members: do record and components agree with them?"""

from collections.abc import Iterator
from typing import Any

from refmodel.array.array import Array


def audit(array: Array[Any]) -> list[str]:
    """Return what is wrong, one line each; nothing while the array is not redundant."""
    return [*_components(array), *_record(array), *unrepaired(array)] if array.redundant else []


def unrepaired(array: Array[Any]) -> Iterator[str]:
    """Yield what a scrub has repaired and is wrong again, as on a device that goes on going wrong:
    the voters that do not have the record of the members."""
    if lacking := array.roster.quorum.lacking():
        yield f"{lacking} of the voters lack the record of the members"


def _components(array: Array[Any]) -> Iterator[str]:
    """Yield the active components that lack something."""
    for leg in (array.performance, array.capacity):
        for component in leg.components:
            if missed := len(component.missed):
                device = component.member.index
                yield f"device {device} is active, and lacks {missed} stripes of the {leg.name} leg"


def _record(array: Array[Any]) -> Iterator[str]:
    """Yield what the record of the members says otherwise."""
    roster, record = array.roster, array.roster.quorum.record
    if [(one.index, one.id, one.state) for one in record.members] != [
        (member.index, member.id, str(member.state)) for member in array.members
    ]:
        yield "the members are not on record as they are"
    if [*record.spares] != roster.spares or [*record.away] != roster.away:
        yield "the spares, or the devices that have left, are not on record as they are"
