"""The membership record: which devices the disk is made of, and which of them may be believed.

Every change raises its sequence number and is on a majority of the members (refmodel.array.quorum) before anything is written that some member misses. So
whoever opens the disk has the newest record, and a device that was away is stale by it, whatever it says of itself.
"""

import json
import struct
from dataclasses import dataclass, field
from functools import lru_cache

from refmodel.array.layout import MEMBERSHIP_BASE, PAGE
from refmodel.core.checksum import crc32c
from refmodel.media.device import Device

MAGIC = b"LFSMEMBR"
HEADER = struct.Struct("<8sIQI")  # magic, CRC-32C of what follows it, sequence, length of the JSON
COVERED = 12  # the checksum covers everything from this byte on


@dataclass(slots=True)
class Entry:
    """A member as it is on record. The fields are those of refmodel.array.component.Member."""

    index: int
    id: str
    state: str
    since: int
    left: float
    catches_up: str


@dataclass(slots=True)
class Membership:
    disk: str  # its UUID
    sequence: int
    members: list[Entry]  # in the order of the components
    spares: list[tuple[int, str]] = field(default_factory=list)  # index and id of each device
    away: list[tuple[int, str]] = field(
        default_factory=list
    )  # out of use; their components are elsewhere by now


def write(device: Device, page: bytes, base: int = MEMBERSHIP_BASE) -> None:
    """Write an encoded record twice, one copy after the other, and wait until both are durable."""
    for copy in (0, 1):
        device.write(base + copy * PAGE, page)
        device.flush()


def read(device: Device, base: int = MEMBERSHIP_BASE) -> Membership | None:
    """The newest whole record on a device; None if there is none, or the device does not answer."""
    try:
        found = [decode(device.read(base + copy * PAGE, PAGE)) for copy in (0, 1)]
    except OSError:
        return None
    return max(filter(None, found), key=lambda record: record.sequence, default=None)


def is_on(device: Device, page: bytes, base: int = MEMBERSHIP_BASE) -> bool:
    """Whether both copies on a device are this encoded record."""
    return device.read(base, 2 * PAGE) == 2 * page


def encode(membership: Membership) -> bytes:
    members = [[getattr(entry, name) for name in Entry.__slots__] for entry in membership.members]
    facts = {
        "disk": membership.disk,
        "members": members,
        "spares": membership.spares,
        "away": membership.away,
    }
    body = json.dumps(facts).encode()
    covered = (HEADER.pack(MAGIC, 0, membership.sequence, len(body))[COVERED:] + body).ljust(
        PAGE - COVERED, b"\0"
    )
    return MAGIC + crc32c(covered).to_bytes(4, "little") + covered


@lru_cache(maxsize=64)  # all copies are alike, on all members
def decode(page: bytes) -> Membership | None:
    """The record in a page, which nobody may change; None if it is damaged."""
    magic, crc, sequence, length = HEADER.unpack_from(page)
    if magic != MAGIC or crc32c(page[COVERED:]) != crc:
        return None
    facts = json.loads(page[HEADER.size : HEADER.size + length])
    return Membership(
        facts["disk"],
        sequence,
        [Entry(*member) for member in facts["members"]],
        [tuple(device) for device in facts["spares"]],
        [tuple(device) for device in facts["away"]],
    )
