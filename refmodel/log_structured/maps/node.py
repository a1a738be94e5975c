"""Tree nodes and their stored form: one page each, which says what it is and has a checksum.

A leaf maps keys to values. An inner node maps the lowest key of each child to the child's page. All
keys are unsigned 64-bit integers. `MapKind` says which of the disk's maps a node belongs to, and so
what the values of a leaf are. Keys, and each field of the values, are columns: packed arrays, in
memory as on the media.
 A reference to another node is its page in memory, and a pointer on the media.
"""

import struct
import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from refmodel.array.layout import PAGE
from refmodel.core.checksum import crc32c
from refmodel.log_structured.maps.columns import Column, Table
from refmodel.log_structured.maps.pointers import MANY, Checksums

MAGIC = b"LFSN"
FIELDS = struct.Struct("<QQHHH2x")  # page, born, kind, level, entries
HEADER = struct.Struct("<4sI" + FIELDS.format[1:])  # magic, CRC-32C of what follows it, the fields
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


# The fields of a value in a leaf: u64 (Q), u32 (I) or u8 (B) each.
LEAF_FIELDS = {
    MapKind.LOGICAL: "Q",
    MapKind.MIDDLE: "QI",
    MapKind.SEGMENT_OWNERS: "Q",
    MapKind.SEGMENT_USAGE: "IQ",
    MapKind.VIEWS: "QQQQQQQQ" + "QQQQQB",  # the name, 8 bytes in each of the first eight
    MapKind.FINGERPRINTS: "QQQ",
    MapKind.REFERENCES: "IQ",
}
CHILD = "Q"
BIG_ENDIAN = sys.byteorder == "big"
ROOT = 8  # the field of a value in the view table that refers to a page
WIDTH = {"Q": 8, "I": 4, "B": 1}  # bytes of a field
assert all(array(field).itemsize == width for field, width in WIDTH.items())


@dataclass(slots=True, eq=False)
class Node:
    """A node in memory. `values` is one column, or a table where a value has several fields."""

    page: int
    born: int  # when, by the disk's clock
    kind: MapKind
    level: int  # 0: a leaf
    keys: Column
    values: Any  # a Column or Table: pages of children; in a leaf, what the map's kind says
    used: bool = True  # since the page store last thought of forgetting it


def fields_of(kind: MapKind, level: int) -> str:
    """Return the fields of a value in a node."""
    return CHILD if level else LEAF_FIELDS[kind]


def columns_of(node: Node) -> list[Column]:
    """Return all columns of a node, the keys first."""
    values = node.values
    return [node.keys, *values.columns] if isinstance(values, Table) else [node.keys, values]


def capacity(kind: MapKind, level: int) -> int:
    """Return how many entries fit a page."""
    return ROOM // sum(WIDTH[field] for field in "Q" + fields_of(kind, level))


def encode(node: Node, checksums: Checksums) -> bytes:
    """Return the page of a node. The nodes that it refers to are written already."""
    fields = FIELDS.pack(node.page, node.born, node.kind, node.level, len(node.keys))
    columns = columns_of(node)
    if (at := _references(node.kind, node.level)) is not None:
        columns[at] = array(CHILD, checksums.pointers(columns[at]))
    if BIG_ENDIAN:
        columns = [*map(swapped, columns)]
    covered = b"".join([fields, *columns]).ljust(PAGE - COVERED, b"\0")
    return PREFIX.pack(MAGIC, crc32c(covered)) + covered


def is_node(page: int, kind: MapKind, data: bytes, checksum: int) -> bool:
    """Return whether the data is the whole node of this page and map that has this checksum."""
    magic, crc, stored_page, _, stored_kind, _, _ = HEADER.unpack_from(data)
    if (magic, crc, stored_page, stored_kind) != (MAGIC, checksum, page, kind):
        return False
    return bool(crc32c(data[COVERED:]) == crc)


def checksum_of(data: bytes) -> int:
    """Return the checksum that a page has of its node."""
    return int(PREFIX.unpack_from(data)[1])


def turn(node: Node) -> int:
    """Return when the node has its turn to be written: behind all that it refers to.

    Lower numbers come first. Within a level neighbours follow each other.
    """
    level = node.level + (MANY if node.kind is MapKind.VIEWS else 0)
    return level * MANY + node.page


def decode(data: bytes) -> tuple[Node, Column]:
    """Return the node in a page that `is_node` accepts, and its pointers."""
    _, _, page, born, kind, level, count = HEADER.unpack_from(data)
    columns, at = [], HEADER.size
    for field in "Q" + fields_of(MapKind(kind), level):
        end = at + count * WIDTH[field]
        columns.append(array(field, data[at:end]))
        at = end
    if BIG_ENDIAN:
        columns = [*map(swapped, columns)]
    pointers: Column = array(CHILD)
    if (referring := _references(MapKind(kind), level)) is not None:
        pointers = columns[referring]
        columns[referring] = array(CHILD, [pointer % MANY for pointer in pointers])
    keys, *values = columns
    node = Node(
        page, born, MapKind(kind), level, keys, Table(values) if len(values) > 1 else values[0]
    )
    return node, pointers


def _references(kind: MapKind, level: int) -> int | None:
    """Return which column refers to pages, the keys being the first; None if none does."""
    if level:
        return 1
    return 1 + ROOT if kind is MapKind.VIEWS else None


def swapped(column: Column) -> Column:
    """Return a column with its bytes in the other order: on the media it is little-endian."""
    other = column[:]
    other.byteswap()
    return other


def new_keys(keys: Iterable[int]) -> Column:
    """Return the column of keys for a new node; a column is taken as it is."""
    return keys if isinstance(keys, array) else array("Q", keys)


def new_values(kind: MapKind, level: int, values: Any) -> Any:
    """Return what a new node keeps of its values; a column or table is taken as it is."""
    if isinstance(values, array):
        return values
    fields = fields_of(kind, level)
    return array(fields, values) if len(fields) == 1 else Table.of(fields, values)
