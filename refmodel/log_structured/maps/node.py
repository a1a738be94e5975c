"""Tree nodes and their stored form: one page each, which says what it is and has a checksum.

A leaf maps keys to values. An inner node maps the lowest key of each child to the child's page. All
keys are unsigned 64-bit integers. `MapKind` says which of the disk's maps a node belongs to, and so
what the values of a leaf are.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import chain
from typing import Any

from refmodel.array.layout import PAGE
from refmodel.core.checksum import crc32c

MAGIC = b"LFSN"
FIELDS = "<QQHHH2x"  # page, born, kind, level, entries
HEADER = struct.Struct("<4sI" + FIELDS[1:])  # magic, CRC-32C of what follows it, the fields
PREFIX = struct.Struct("<4sI")  # the first two of them
COVERED = 8  # the checksum covers everything from this byte on
ROOM = PAGE - HEADER.size  # bytes for entries

MiddleEntry = tuple[int, int]  # PBA, or ALIAS and an MBA; CRC-32C of what is stored there


class MapKind(IntEnum):
    """The maps of a disk. LBA, MBA, PBA: logical, middle and physical block address."""

    __hash__ = int.__hash__  # Enum's own is written in Python

    LOGICAL = 1  # one for each view: LBA -> MBA
    MIDDLE = 2  # MBA -> PBA, CRC-32C of what is stored there; or ALIAS and another MBA
    SEGMENT_OWNERS = 3  # PBA -> MBA: what lives in a segment
    SEGMENT_USAGE = 4  # segment -> live chunks, when it was filled
    VIEWS = 5  # view -> name, root, parent, ...
    FINGERPRINTS = 6  # the first 8 bytes of a fingerprint -> the other 16, MBA
    REFERENCES = 7  # MBA -> how many chunks share its data, the first 8 bytes of its fingerprint


LEAF_VALUE = {
    MapKind.LOGICAL: struct.Struct("<Q"),
    MapKind.MIDDLE: struct.Struct("<QI"),
    MapKind.SEGMENT_OWNERS: struct.Struct("<Q"),
    MapKind.SEGMENT_USAGE: struct.Struct("<IQ"),
    MapKind.VIEWS: struct.Struct("<64sQQQQQB"),
    MapKind.FINGERPRINTS: struct.Struct("<16sQ"),
    MapKind.REFERENCES: struct.Struct("<IQ"),
}
CHILD = struct.Struct("<Q")


@dataclass(slots=True, eq=False)
class Node:
    """A node in memory. `values` holds ints where the stored value is one integer, else tuples."""

    page: int
    born: int  # when, by the disk's clock
    kind: MapKind
    level: int  # 0: a leaf
    keys: list[int]
    values: list[Any]  # pages of children; in a leaf, what the map's kind says

    def value_format(self) -> struct.Struct:
        """Return the stored format of one value."""
        return CHILD if self.level else LEAF_VALUE[self.kind]


def capacity(kind: MapKind, level: int) -> int:
    """Return how many entries fit a page."""
    return ROOM // (8 + (CHILD if level else LEAF_VALUE[kind]).size)


def encode(node: Node) -> bytes:
    """Return the page of a node."""
    count = len(node.keys)
    form = node.value_format().format
    values = node.values if form == "<Q" else chain.from_iterable(node.values)
    covered = _layout(form, count).pack(
        node.page, node.born, node.kind, node.level, count, *node.keys, *values
    )
    return PREFIX.pack(MAGIC, crc32c(covered)) + covered


@lru_cache(maxsize=2048)
def _layout(form: str, count: int) -> struct.Struct:
    """Return the format of a page with so many entries, from the first byte of COVERED on."""
    entries = f"{count}Q" + (f"{count}Q" if form == "<Q" else form[1:] * count)
    rest = PAGE - struct.calcsize(FIELDS + entries) - COVERED
    return struct.Struct(f"{FIELDS}{entries}{rest}x")


def is_node(page: int, kind: MapKind, data: bytes, born: int = 0) -> bool:
    """Return whether the data is a whole node of this page and map; and of this birth, unless 0."""
    magic, crc, stored_page, stored_birth, stored_kind, _, _ = HEADER.unpack_from(data)
    if (
        magic != MAGIC
        or stored_page != page
        or stored_kind != kind
        or born not in (0, stored_birth)
    ):
        return False
    return bool(crc32c(data[COVERED:]) == crc)


def birth(data: bytes) -> int:
    """Return when the node in a page that `is_node` accepts was born."""
    return int(HEADER.unpack_from(data)[3])


def decode(data: bytes) -> Node:
    """Return the node in a page that `is_node` accepts."""
    _, _, page, born, kind, level, count = HEADER.unpack_from(data)
    node = Node(
        page,
        born,
        MapKind(kind),
        level,
        list(struct.unpack_from(f"<{count}Q", data, HEADER.size)),
        [],
    )
    form, start = node.value_format(), HEADER.size + 8 * count
    if form.format == "<Q":
        node.values = list(struct.unpack_from(f"<{count}Q", data, start))
    else:
        node.values = list(form.iter_unpack(data[start : start + count * form.size]))
    return node
