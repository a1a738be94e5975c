"""Tree nodes and their stored form: one page each, with who it is and a checksum.

A leaf maps keys to values; an inner node maps the lowest key of each child to the child's page. All keys are unsigned 64-bit.
`kind` says which of the disk's maps a node belongs to, and so what a leaf's values are.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import chain

from refmodel.array.layout import PAGE
from refmodel.core.checksum import crc32c

MAGIC = b"LFSN"
FIELDS = "<QQHHH2x"
HEADER = struct.Struct(
    "<4sI" + FIELDS[1:]
)  # magic, CRC-32C of what follows it, page, born, kind, level, entries
COVERED = 8  # the checksum covers everything from this byte on
ROOM = PAGE - HEADER.size


class Kind(IntEnum):
    __hash__ = int.__hash__  # Enum's own is written in Python

    LOGICAL = 1  # one per view: LBA -> MBA
    MIDDLE = 2  # MBA -> PBA, CRC-32C of what is stored there; or ALIAS and another MBA
    SEGMENT_OWNERS = 3  # PBA -> MBA: what lives in a segment
    SEGMENT_USAGE = 4  # segment -> live chunks, when it was filled
    VIEWS = 5  # view -> name, root, parent, ...
    FINGERPRINTS = 6  # the first 8 bytes of a fingerprint -> the other 16, MBA
    REFERENCES = 7  # MBA -> how many chunks share its data, the first 8 bytes of its fingerprint


LEAF_VALUE = {
    Kind.LOGICAL: struct.Struct("<Q"),
    Kind.MIDDLE: struct.Struct("<QI"),
    Kind.SEGMENT_OWNERS: struct.Struct("<Q"),
    Kind.SEGMENT_USAGE: struct.Struct("<IQ"),
    Kind.VIEWS: struct.Struct("<64sQQQQQB"),
    Kind.FINGERPRINTS: struct.Struct("<16sQ"),
    Kind.REFERENCES: struct.Struct("<IQ"),
}
CHILD = struct.Struct("<Q")


@dataclass(slots=True, eq=False)
class Node:
    """`values` holds ints where the stored value is one integer, else tuples."""

    page: int
    born: int  # when, by the disk's clock
    kind: Kind
    level: int  # 0: leaf
    keys: list[int]
    values: list

    def value_format(self) -> struct.Struct:
        return CHILD if self.level else LEAF_VALUE[self.kind]


def capacity(kind: Kind, level: int) -> int:
    """How many entries fit a page."""
    return ROOM // (8 + (CHILD if level else LEAF_VALUE[kind]).size)


def encode(node: Node) -> bytes:
    count = len(node.keys)
    form = node.value_format().format
    values = node.values if form == "<Q" else chain.from_iterable(node.values)
    covered = _layout(form, count).pack(
        node.page, node.born, node.kind, node.level, count, *node.keys, *values
    )
    return MAGIC + crc32c(covered).to_bytes(4, "little") + covered


@lru_cache(maxsize=2048)
def _layout(form: str, count: int) -> struct.Struct:
    """Of a page with so many entries, from the first byte that its checksum covers."""
    entries = f"{count}Q" + (f"{count}Q" if form == "<Q" else form[1:] * count)
    rest = PAGE - struct.calcsize(FIELDS + entries) - COVERED
    return struct.Struct(f"{FIELDS}{entries}{rest}x")


def is_node(page: int, kind: Kind, data: bytes, born: int = 0) -> bool:
    """Whether the data is a whole node, this page's, of this map; and of this birth, if that is known."""
    magic, crc, stored_page, stored_birth, stored_kind, _, _ = HEADER.unpack_from(data)
    if (
        magic != MAGIC
        or stored_page != page
        or stored_kind != kind
        or born not in (0, stored_birth)
    ):
        return False
    return crc32c(data[COVERED:]) == crc


def birth(data: bytes) -> int:
    """When the node in a page that `is_node` accepts was born."""
    return HEADER.unpack_from(data)[3]


def decode(data: bytes) -> Node:
    """The node in a page that `is_node` accepts."""
    _, _, page, born, kind, level, count = HEADER.unpack_from(data)
    node = Node(
        page, born, Kind(kind), level, list(struct.unpack_from(f"<{count}Q", data, HEADER.size)), []
    )
    form, start = node.value_format(), HEADER.size + 8 * count
    if form.format == "<Q":
        node.values = list(struct.unpack_from(f"<{count}Q", data, start))
    else:
        node.values = list(form.iter_unpack(data[start : start + count * form.size]))
    return node
