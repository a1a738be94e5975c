"""Checks that every engine makes, with the same messages: ranges, names, whole blocks."""

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Protocol

from refmodel.core.errors import BadRequest, OutOfRange

BLOCK_BYTES = tuple(512 << power for power in range(8))
LBA, DATA = itemgetter(0), itemgetter(1)  # of a write (LBA, data)
COUNT = itemgetter(1)  # of a range (LBA, count of blocks)
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Sized(Protocol):
    """The part of a geometry that the checks use."""

    @property
    def blocks(self) -> int:
        """The size of the disk, in blocks."""

    @property
    def block_bytes(self) -> int:
        """The size of a block, in bytes."""


def require(condition: bool, message: str) -> None:
    """Raises BadRequest with the message unless the condition holds."""
    if not condition:
        raise BadRequest(message)


def require_block_bytes(block_bytes: int) -> None:
    """Raises BadRequest unless a block may have `block_bytes` bytes."""
    require(block_bytes in BLOCK_BYTES, "the block size is a power of 2, 512 to 65536")


def require_range(shape: Sized, lba: int, count: int) -> None:
    """Check a range of `count` blocks from an LBA (logical block address) on.

    Raises BadRequest if the numbers are no range, OutOfRange if it reaches past the end.
    """
    if lba < 0 or count < 1:
        raise BadRequest(
            f"an LBA is at least 0 and a count at least 1; these are {lba} and {count}"
        )
    if lba + count > shape.blocks:
        raise OutOfRange(
            f"blocks {lba} to {lba + count - 1} reach past the last one, {shape.blocks - 1}"
        )


def require_ranges(shape: Sized, ranges: Iterable[tuple[int, int]]) -> None:
    """Check several ranges, each (LBA, count of blocks). Raises as require_range does."""
    blocks = shape.blocks
    for lba, count in ranges:
        if lba < 0 or count < 1 or lba + count > blocks:
            require_range(shape, lba, count)  # it says what is wrong


def require_name(name: str) -> None:
    """Raises BadRequest unless a snapshot may have the name."""
    if not NAME.fullmatch(name):
        raise BadRequest(
            f"a snapshot's name is 1 to 64 of letters, digits, '.', '_', '-'; this is {name!r}"
        )


def block_count(shape: Sized, length: int) -> int:
    """Return how many blocks a write of `length` bytes has. Raises BadRequest if it is not a whole
    number of them."""
    size = shape.block_bytes
    if length % size or not length:
        raise BadRequest(
            f"a write is a whole number of blocks of {size} bytes, and at least one; "
            f"this one has {length} bytes"
        )
    return length // size


def whole_blocks(shape: Sized, writes: Sequence[tuple[int, bytes]]) -> list[int]:
    """Check writes, each (LBA, data). Returns the length of each, in blocks.

    Raises BadRequest if data is not a whole number of blocks, OutOfRange past the end.
    """
    size, lengths = shape.block_bytes, [*map(len, map(DATA, writes))]
    for length in dict.fromkeys(lengths):  # mostly all are the same
        block_count(shape, length)
    counts = [length // size for length in lengths]
    require_ranges(shape, zip(map(LBA, writes), counts, strict=True))
    return counts
