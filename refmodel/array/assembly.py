"""Assembly: the array of a new disk, and of one that is opened."""

import time
import uuid
from typing import TypeVar

from refmodel.array.array import Array, RepairClock
from refmodel.array.label import Label
from refmodel.array.layout import ArrayGeometry
from refmodel.array.member import REACHABLE, ComponentState, Member
from refmodel.array.membership import Entry, Membership
from refmodel.array.quorum import newest
from refmodel.core.errors import DataLost
from refmodel.media.enclosure import Enclosure

G = TypeVar("G", bound=ArrayGeometry)


def found_array(enclosure: Enclosure, geometry: G) -> Array[G]:
    """Return the array of a new disk on the fresh devices of an enclosure.

    It is not on record yet, and the devices have no labels.
    """
    devices = [(index, uuid.uuid4().hex) for index in range(geometry.devices)]
    entries = [
        Entry(index, id, ComponentState.ACTIVE, 0, 0.0, "resync")
        for index, id in devices[: geometry.members]
    ]
    record = Membership(uuid.uuid4().hex, 0, entries, devices[geometry.members :])
    array = Array(enclosure, geometry, record, time.time, legs_emit=False)
    for member in array.members:
        member.found(enclosure.device(member.index))
    return array


def assemble(
    enclosure: Enclosure,
    geometry: G,
    found: dict[int, Label],
    now: RepairClock,
    *,
    legs_emit: bool,
) -> Array[G]:
    """Return the array of the disk in an enclosure, as the newest record and its devices say.

    The array begins a term of the membership record. `found` are the labels of the devices that are
    present, by number of the device. `legs_emit` is as in Array. Raises DataLost if no majority of
    the members is present, or no device that is present has a current performance leg.
    """
    disk = next(iter(found.values())).disk
    array = Array(enclosure, geometry, newest(enclosure, disk, found), now, legs_emit=legs_emit)
    for member in array.members:
        _meet(member, enclosure, found, now)
    array.roster.quorum.require()

    def missing(member: Member) -> None:
        enclosure.pull(member.index)
        member.found_missing(now())

    array.roster.quorum.begin_term(missing)
    if not array.performance.active():
        raise DataLost(
            f"no device that is here has a current {array.performance.name} leg; bring devices back"
        )
    return array


def _meet(member: Member, enclosure: Enclosure, found: dict[int, Label], now: RepairClock) -> None:
    """Find out whether the member's device is present, and whether it can be current."""
    label = found.get(member.index)
    present = label is not None and label.device == member.id
    if present and member.state is not ComponentState.DEGRADED:
        member.found(enclosure.device(member.index))
    elif member.state in REACHABLE:
        member.found_missing(now())
