"""What every engine refuses in the same words: requests past the end, bad names, parts of blocks."""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from refmodel.core.errors import BadRequest, OutOfRange

BLOCK_BYTES = tuple(512 << power for power in range(8))
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Sized(Protocol):
    """Of a geometry, what these need."""

    blocks: int
    block_bytes: int


def require(condition: bool, message: str) -> None:
    """Raises BadRequest with the message where the condition does not hold."""
    if not condition:
        raise BadRequest(message)


def require_block_bytes(block_bytes: int) -> None:
    """Raises BadRequest for what no block can have."""
    require(block_bytes in BLOCK_BYTES, "the block size is a power of 2, 512 to 65536")


def require_range(shape: Sized, lba: int, count: int) -> None:
    """Raises BadRequest for what is no range, OutOfRange for one that reaches past the end."""
    require_ranges(shape, [(lba, count)])


def require_ranges(shape: Sized, ranges: Iterable[tuple[int, int]]) -> None:
    """The same of several, each an LBA and a count of blocks."""
    blocks = shape.blocks
    for lba, count in ranges:
        if lba < 0 or count < 1:
            raise BadRequest(
                f"an LBA is at least 0 and a count at least 1; these are {lba} and {count}"
            )
        if lba + count > blocks:
            raise OutOfRange(
                f"blocks {lba} to {lba + count - 1} reach past the last one, {blocks - 1}"
            )


def require_name(name: str) -> None:
    """Raises BadRequest for what no snapshot can be called."""
    if not NAME.fullmatch(name):
        raise BadRequest(
            f"a snapshot's name is 1 to 64 of letters, digits, '.', '_', '-'; this is {name!r}"
        )


def whole_blocks(shape: Sized, writes: Sequence[tuple[int, bytes]]) -> list[int]:
    """How many blocks each write is, which is an LBA and data. Raises BadRequest, OutOfRange."""
    size, ranges = shape.block_bytes, []
    for lba, data in writes:
        if not data or len(data) % size:
            raise BadRequest(
                f"a write is a whole number of blocks of {size} bytes; this one has {len(data)} bytes"
            )
        ranges.append((lba, len(data) // size))
    require_ranges(shape, ranges)
    return [count for _, count in ranges]
