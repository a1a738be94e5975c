"""The places of the contract's blocks in a view's device: a few in each unit.

A part of a request is as many ranges as the agent takes in one line."""

from conformance.targets.engines.recorded_disk import BLOCK

Range = tuple[int, int]  # offset and length in bytes
RANGES = 128  # ranges of a part


def parts(lba: int, count: int, spread: int, unit: int) -> list[list[Range]]:
    """Return the parts of `count` blocks from `lba` on.

    Each unit of `unit` bytes begins with `spread` of the blocks.
    """
    ranges: list[Range] = []
    while count:
        number, within = divmod(lba, spread)
        here = min(count, spread - within)
        ranges.append((number * unit + within * BLOCK, here * BLOCK))
        lba, count = lba + here, count - here
    return [ranges[at : at + RANGES] for at in range(0, len(ranges), RANGES)]


def words(ranges: list[Range]) -> list[str]:
    """Return the ranges in the agent's words."""
    return [f"{offset}:{length}" for offset, length in ranges]


def total(ranges: list[Range]) -> int:
    """Return the bytes of all ranges."""
    return sum(length for _, length in ranges)
