"""Changes of maps as pages store them: the entries that an increment of a checkpoint has.

Changes of all maps are one string of bytes, cut into pages. It consists of sections, each of one
map: its keys with their new values, in columns, and the keys that it no longer has. A column of u64
is stored as its smallest number and the u32 differences to it, if they fit. A page has a pointer to
the one before it, so the last one leads to all.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from refmodel.array.layout import PAGE
from refmodel.core.checksum import crc32c
from refmodel.log_structured.maps.columns import Column, Table
from refmodel.log_structured.maps.node import (
    BIG_ENDIAN,
    LEAF_FIELDS,
    WIDTH,
    MapKind,
    new_values,
    swapped,
)

MAGIC = b"LFSI"
PREFIX = struct.Struct("<4sI")  # magic, CRC-32C of what follows it
# page, number of the checkpoint, pointer to the page before, bytes of changes
FIELDS = struct.Struct("<QQQI4x")
# map, keys with values, keys without, a bit for each column that is stored as u64
SECTION = struct.Struct("<HHHH")
COVERED = PREFIX.size  # the checksum covers everything from this byte on
ROOM = PAGE - PREFIX.size - FIELDS.size  # bytes of changes in a page
ENTRIES = 256  # of a section, at most
KEY, VALUE = itemgetter(0), itemgetter(1)  # of an entry

Changes = dict[int, Any]  # key -> new value; None: no longer there


def pages_for(changes: dict[MapKind, Changes]) -> int:
    """Return how many pages the changes of maps take, at most: mostly they take half of them."""
    size = 0
    for kind, changed in changes.items():
        entry = WIDTH["Q"] + sum(WIDTH[field] for field in LEAF_FIELDS[kind])
        size += len(changed) * entry + -(-len(changed) // ENTRIES) * SECTION.size
    return -(-size // ROOM)


def cut(changes: dict[MapKind, Changes]) -> Iterator[bytes]:
    """Yield the bytes of the changes of maps, as much as fits a page at a time."""
    waiting = bytearray()
    for section in _sections(changes):
        waiting += section
        while len(waiting) >= ROOM:
            yield bytes(waiting[:ROOM])
            del waiting[:ROOM]
    if waiting:
        yield bytes(waiting)


def _sections(changes: dict[MapKind, Changes]) -> Iterator[bytes]:
    for kind, changed in changes.items():
        items = iter(changed.items())
        while some := [*islice(items, ENTRIES)]:
            put = [entry for entry in some if entry[1] is not None]
            columns: list[Column] = [array("Q", [*map(KEY, put)])]
            values = new_values(kind, 0, [*map(VALUE, put)])
            columns += values.columns if isinstance(values, Table) else [values]
            columns.append(array("Q", [key for key, value in some if value is None]))
            wide = [_is_wide(column) for column in columns]
            mask = sum(1 << at for at, is_wide in enumerate(wide) if is_wide)
            parts = [
                part
                for column, is_wide in zip(columns, wide, strict=True)
                for part in ([column] if is_wide else _narrowed(column))
            ]
            if BIG_ENDIAN:
                parts = [*map(swapped, parts)]
            yield b"".join([SECTION.pack(kind, len(put), len(some) - len(put), mask), *parts])


def _is_wide(column: Column) -> bool:
    """Return whether a column of u64 is stored as it is: differences would not fit, or not save."""
    if column.typecode != "Q":
        return False
    if len(column) <= 2:
        return True
    numbers = np.frombuffer(column, np.uint64)
    return bool(numbers.max() - numbers.min() >= 1 << 32)


def _narrowed(column: Column) -> list[Column]:
    """Return a column as it is stored: of u64, the smallest one and the differences to it."""
    if column.typecode != "Q":
        return [column]
    numbers = np.frombuffer(column, np.uint64)
    least = numbers.min()
    return [array("Q", [int(least)]), array("I", (numbers - least).astype(np.uint32).tobytes())]


def encode(page: int, number: int, before: int, part: bytes) -> bytes:
    """Return a page that stores a part of the changes of the checkpoint of this number.

    `before` is a pointer to the page before it, or 0.
    """
    covered = (FIELDS.pack(page, number, before, len(part)) + part).ljust(PAGE - COVERED, b"\0")
    return PREFIX.pack(MAGIC, crc32c(covered)) + covered


def checksum_of(stored: bytes) -> int:
    """Return the checksum that a page has of its content."""
    return int(PREFIX.unpack_from(stored)[1])


def is_stored(page: int, checksum: int, stored: bytes) -> bool:
    """Return whether these are the whole changes of this page that have this checksum."""
    magic, crc = PREFIX.unpack_from(stored)
    if (magic, crc, FIELDS.unpack_from(stored, COVERED)[0]) != (MAGIC, checksum, page):
        return False
    return bool(crc32c(stored[COVERED:]) == crc)


def before(stored: bytes) -> int:
    """Return the pointer to the page before this one, or 0."""
    return int(FIELDS.unpack_from(stored, COVERED)[2])


def decode(stored: Iterable[bytes]) -> dict[MapKind, Changes]:
    """Return the changes in pages that `is_stored` accepts, in their order: the last one counts."""
    stream = bytearray()
    for page in stored:
        *_, size = FIELDS.unpack_from(page, COVERED)
        stream += page[PAGE - ROOM :][:size]
    changes: dict[MapKind, Changes] = {}
    at = 0
    while at < len(stream):
        number, put, removed, mask = SECTION.unpack_from(stream, at)
        at += SECTION.size
        kind, columns = MapKind(number), list[Column]()

        def take(field: str, count: int) -> Column:
            nonlocal at
            column = array(field, bytes(stream[at : at + count * WIDTH[field]]))
            at += count * WIDTH[field]
            return swapped(column) if BIG_ENDIAN else column

        for field, count in [*((field, put) for field in "Q" + LEAF_FIELDS[kind]), ("Q", removed)]:
            if field != "Q" or mask >> len(columns) & 1:
                columns.append(take(field, count))
            else:
                (least,) = take("Q", 1)
                columns.append(array("Q", [least + more for more in take("I", count)]))
        keys, *values, gone = columns
        rows = values[0] if len(values) == 1 else zip(*values, strict=True)
        changed = changes.setdefault(kind, {})
        changed.update(zip(keys, rows, strict=True))
        changed.update(dict.fromkeys(gone))
    return changes
