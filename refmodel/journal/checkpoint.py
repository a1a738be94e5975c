"""Checkpoint slots: one page that says where all maps are, and where replay of the log begins.

There are two slots, which are written in turn. So if a write fails, the other slot is still whole.
A checkpoint may be an increment of an earlier one: it has the roots of that one, and pages of
changes (refmodel.log_structured.increments).
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from refmodel.array.layout import PAGE
from refmodel.array.leg import Leg, write_where_different
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost, HostRefused

MAGIC = b"LFSCHECK"
HEADER = struct.Struct("<8sI")  # magic, CRC-32C of what follows it
KINDS = 7  # kinds of maps, numbered from 1
FIELDS = struct.Struct("<QQQQIQQQQQQQ" + "QQQQ" + "QQ" + KINDS * "Q")
ROOTS = (
    "middle",
    "owners",
    "usage",
    "views",
    "fingerprints",
    "references",
)  # the roots of the maps


@dataclass(slots=True)
class Checkpoint:
    """The content of a slot. An engine without maps leaves the roots 0."""

    number: int  # grows by 1 with each checkpoint; the slot is number modulo 2
    clock: int
    log_tail: int  # position of the first record to replay
    log_sequence: int  # sequence number of that record
    log_generation: int
    next_view: int
    middle: int  # the roots of the maps; 0 for an empty map
    owners: int
    usage: int
    views: int
    fingerprints: int = 0
    references: int = 0
    first_unused_page: int = 0  # 0: not known, and then nothing of what follows
    first_unused_segment: int = 0
    sealed: int = 0  # segments in which something lives
    live: int = 0  # units of space that live in them
    whole: int = 0  # number of the checkpoint that has these roots; 0: of this one
    changes: int = 0  # pointer to the last page of changes of these maps; 0: there is none
    pages: tuple[int, ...] = (0,) * KINDS  # in use, of each kind of map

    @property
    def is_increment(self) -> bool:
        """True if the roots are those of an earlier checkpoint."""
        return self.whole not in (0, self.number)


def with_roots(checkpoint: Checkpoint, change: Callable[[int], int]) -> Checkpoint:
    """Return a checkpoint whose roots are changed: a slot has pointers, memory has pages."""
    roots: dict[str, Any] = {name: change(getattr(checkpoint, name)) for name in ROOTS}
    return replace(checkpoint, **roots)


def write(leg: Leg, checkpoint: Checkpoint) -> None:
    """Write a slot. The checkpoint counts once the slot is flushed.

    Raises OSError if the host refuses it: some mirror may have the slot, so it is unknown whether
    it counts, and the disk must be opened again.
    """
    try:
        leg.write(offset(checkpoint.number), encode(checkpoint), "checkpoint")
    except HostRefused as refusal:
        raise OSError(refusal.errno, str(refusal)) from refusal


def slots(leg: Leg) -> list[Checkpoint]:
    """Return the newest checkpoint that each slot has on any component, the newest first.

    A slot that is whole on no component is left out.
    """
    found: dict[int, Checkpoint] = {}
    for slot in (0, 1):
        for page in leg.copies(offset(slot), PAGE, "recovery"):
            checkpoint = decode(page)
            if checkpoint is None or checkpoint.number % 2 != slot:
                continue
            if slot not in found or checkpoint.number > found[slot].number:
                found[slot] = checkpoint
    return sorted(found.values(), key=lambda checkpoint: checkpoint.number, reverse=True)


def recover_newest(leg: Leg) -> tuple[Checkpoint, int]:
    """Make the newest whole checkpoint the same on every component.

    Returns it, and how many copies of its slot were wrong. Raises DataLost if there is none.
    """
    found = slots(leg)
    if not found:
        raise DataLost("no checkpoint is whole")
    wrong = write_where_different(leg, offset(found[0].number), encode(found[0]), "recovery")
    leg.flush("recovery")
    return found[0], wrong


def offset(number: int) -> int:
    """Return where the slot of a checkpoint is, in bytes of the performance leg."""
    return number % 2 * PAGE


def encode(checkpoint: Checkpoint) -> bytes:
    """Return the page that stores a checkpoint."""
    *values, pages = [getattr(checkpoint, name) for name in Checkpoint.__slots__]
    covered = FIELDS.pack(*values, *pages).ljust(PAGE - HEADER.size, b"\0")
    return HEADER.pack(MAGIC, crc32c(covered)) + covered


def decode(page: bytes) -> Checkpoint | None:
    """Return the checkpoint in a page; None if the page is damaged."""
    magic, crc = HEADER.unpack_from(page)
    if magic != MAGIC or crc32c(page[HEADER.size :]) != crc:
        return None
    fields = FIELDS.unpack_from(page, HEADER.size)
    return replace(Checkpoint(*fields[:-KINDS]), pages=fields[-KINDS:])
