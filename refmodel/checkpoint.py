"""Checkpoint slots: one page that says where all maps are, and from where the log has to be replayed.

Two slots are written in turn, so that whatever happens to one write the other is whole.
"""

import struct
from dataclasses import dataclass

from refmodel.checksum import crc32c
from refmodel.errors import DataLost
from refmodel.geometry import PAGE
from refmodel.leg import Leg, write_where_different

MAGIC = b"LFSCHECK"
HEADER = struct.Struct("<8sI")  # magic, CRC-32C of what follows it
FIELDS = struct.Struct("<QQQQIQQQQQ")


@dataclass(slots=True)
class Checkpoint:
    number: int  # grows by one each; the slot is number modulo 2
    clock: int
    log_tail: int  # position of the first record that is to be replayed
    log_sequence: int  # of that record
    log_generation: int
    next_view: int
    middle: int  # roots: pages, 0 when empty
    owners: int
    usage: int
    views: int


def write(leg: Leg, checkpoint: Checkpoint) -> None:
    """Write the slot; it counts once it has been flushed."""
    leg.write(_offset(checkpoint.number), encode(checkpoint), "checkpoint")


def newest(leg: Leg) -> Checkpoint:
    """The newest whole checkpoint, made the same on every component. Raises DataLost if there is none."""
    found = [
        checkpoint
        for slot in (0, 1)
        for page in leg.copies(_offset(slot), PAGE, "recovery")
        if (checkpoint := decode(page)) is not None and checkpoint.number % 2 == slot
    ]
    if not found:
        raise DataLost("no checkpoint is whole")
    best = max(found, key=lambda checkpoint: checkpoint.number)
    write_where_different(leg, _offset(best.number), encode(best), "recovery")
    leg.flush("recovery")
    return best


def encode(checkpoint: Checkpoint) -> bytes:
    values = [getattr(checkpoint, name) for name in Checkpoint.__slots__]
    covered = FIELDS.pack(*values).ljust(PAGE - HEADER.size, b"\0")
    return HEADER.pack(MAGIC, crc32c(covered)) + covered


def decode(page: bytes) -> Checkpoint | None:
    magic, crc = HEADER.unpack_from(page)
    if magic != MAGIC or crc32c(page[HEADER.size :]) != crc:
        return None
    return Checkpoint(*FIELDS.unpack_from(page, HEADER.size))


def _offset(number: int) -> int:
    return number % 2 * PAGE
