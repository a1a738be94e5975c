"""Checkpoint slots: one page that says where all maps are, and from where the log has to be replayed.

Two slots are written in turn, so that whatever happens to one write the other is whole.
"""

import struct
from dataclasses import dataclass

from refmodel.array.layout import PAGE
from refmodel.array.leg import Leg, write_where_different
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost

MAGIC = b"LFSCHECK"
HEADER = struct.Struct("<8sI")  # magic, CRC-32C of what follows it
FIELDS = struct.Struct("<QQQQIQQQQQQQ")


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
    fingerprints: int = 0
    references: int = 0


def write(leg: Leg, checkpoint: Checkpoint) -> None:
    """Write the slot; it counts once it has been flushed."""
    leg.write(offset(checkpoint.number), encode(checkpoint), "checkpoint")


def slots(leg: Leg) -> list[Checkpoint]:
    """The newest that each slot holds on any component, the newest first; a slot that is whole on none is left out."""
    found: dict[int, Checkpoint] = {}
    for slot in (0, 1):
        for page in leg.copies(offset(slot), PAGE, "recovery"):
            checkpoint = decode(page)
            if checkpoint is None or checkpoint.number % 2 != slot:
                continue
            if slot not in found or checkpoint.number > found[slot].number:
                found[slot] = checkpoint
    return sorted(found.values(), key=lambda checkpoint: checkpoint.number, reverse=True)


def newest(leg: Leg) -> Checkpoint:
    """The newest whole checkpoint, made the same on every component. Raises DataLost if there is none."""
    found = slots(leg)
    if not found:
        raise DataLost("no checkpoint is whole")
    write_where_different(leg, offset(found[0].number), encode(found[0]), "recovery")
    leg.flush("recovery")
    return found[0]


def offset(number: int) -> int:
    """Where the slot of a checkpoint is, in bytes of the performance leg."""
    return number % 2 * PAGE


def encode(checkpoint: Checkpoint) -> bytes:
    values = [getattr(checkpoint, name) for name in Checkpoint.__slots__]
    covered = FIELDS.pack(*values).ljust(PAGE - HEADER.size, b"\0")
    return HEADER.pack(MAGIC, crc32c(covered)) + covered


def decode(page: bytes) -> Checkpoint | None:
    magic, crc = HEADER.unpack_from(page)
    if magic != MAGIC or crc32c(page[HEADER.size :]) != crc:
        return None
    return Checkpoint(*FIELDS.unpack_from(page, HEADER.size))
