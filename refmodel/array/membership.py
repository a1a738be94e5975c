"""The membership record: which devices a disk consists of, and which of them are current.

Every change raises the sequence number of the record. It is on a majority of the members
(refmodel.array.quorum) before anything is written that a member misses. So an opening finds the
newest record, which says that a device that was away is stale.
"""

import json
import struct
from dataclasses import dataclass, field
from functools import lru_cache

from refmodel.array.layout import MEMBERSHIP_BASE, PAGE
from refmodel.core.checksum import crc32c, stored_checksum
from refmodel.media.device import Device

MAGIC = b"LFSMEMBR"
HEADER = struct.Struct("<8sIQI")  # magic, CRC-32C of what follows it, sequence, length of the JSON
COVERED = 12  # the checksum covers everything from this byte on

DeviceId = tuple[int, str]  # number and id of a device


@dataclass(slots=True)
class Entry:
    """A member in the record. The fields are those of refmodel.array.member.Member."""

    index: int
    id: str
    state: str
    since: int
    left: float
    catches_up: str


@dataclass(slots=True)
class Membership:
    """The content of a record."""

    disk: str  # its UUID, in hexadecimal
    sequence: int  # the term and the number of the change in it (refmodel.array.quorum)
    members: list[Entry]  # in the order of the components
    spares: list[DeviceId] = field(default_factory=list)
    away: list[DeviceId] = field(default_factory=list)  # no longer used: others took their place
    term: int = 0  # the newest that the voter promised: it takes no older record any more


def write(device: Device, page: bytes, base: int = MEMBERSHIP_BASE) -> None:
    """Write an encoded record twice, one copy after the other, each made durable.

    Raises OSError or PowerCut.
    """
    for copy in (0, 1):
        device.write(base + copy * PAGE, page)
        device.flush()


def read(device: Device, base: int = MEMBERSHIP_BASE) -> Membership | None:
    """Return the newest whole record on a device.

    None if there is none, or the device does not answer.
    """
    try:
        found = [decode(device.read(base + copy * PAGE, PAGE)) for copy in (0, 1)]
    except OSError:
        return None
    whole = [record for record in found if record is not None]
    return max(whole, key=lambda record: (record.sequence, record.term), default=None)


def is_on(device: Device, page: bytes, base: int = MEMBERSHIP_BASE) -> bool:
    """Return whether both copies on a device are this encoded record. Raises OSError."""
    return device.read(base, 2 * PAGE) == 2 * page


def encode(membership: Membership) -> bytes:
    """Return the page that stores a record."""
    members = [[getattr(entry, name) for name in Entry.__slots__] for entry in membership.members]
    facts = {
        "disk": membership.disk,
        "members": members,
        "spares": membership.spares,
        "away": membership.away,
        "term": membership.term,
    }
    body = json.dumps(facts).encode()
    covered = (HEADER.pack(MAGIC, 0, membership.sequence, len(body))[COVERED:] + body).ljust(
        PAGE - COVERED, b"\0"
    )
    return MAGIC + stored_checksum(covered) + covered


@lru_cache(maxsize=64)  # all copies are alike, on all members
def decode(page: bytes) -> Membership | None:
    """Return the record in a page, which nobody may change; None if it is damaged."""
    magic, crc, sequence, length = HEADER.unpack_from(page)
    if magic != MAGIC or crc32c(page[COVERED:]) != crc:
        return None
    facts = json.loads(page[HEADER.size : HEADER.size + length])
    return Membership(
        facts["disk"],
        sequence,
        [Entry(*member) for member in facts["members"]],
        [(index, id) for index, id in facts["spares"]],
        [(index, id) for index, id in facts["away"]],
        facts.get("term", 0),
    )
