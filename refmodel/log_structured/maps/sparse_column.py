"""Numbers by page or by segment, packed: a few bytes each, where a dictionary takes a hundred.

Only the parts in which a number was set take memory. So a large disk that is nearly empty costs
little, and so does a wrong number of a page far behind the others.
"""

from array import array
from collections.abc import Iterable, Iterator

BITS = 9  # bits of a place within its part
PART = 1 << BITS  # numbers
WITHIN = PART - 1


class SparseColumn:
    """A number at each place; 0 where none was set."""

    __slots__ = ("_parts", "_zeroes")

    def __init__(self, field: str) -> None:
        """Begin with zeroes only; `field` is the array type of a number."""
        self._zeroes = array(field, [0]) * PART
        self._parts: dict[int, array[int]] = {}

    def __getitem__(self, at: int) -> int:
        part = self._parts.get(at >> BITS)
        return part[at & WITHIN] if part else 0

    def __setitem__(self, at: int, number: int) -> None:
        if not (part := self._parts.get(at >> BITS)):
            part = self._parts[at >> BITS] = self._zeroes[:]
        part[at & WITHIN] = number

    def many(self, places: Iterable[int]) -> list[int]:
        """Return the number at each of these places."""
        part, zeroes = self._parts.get, self._zeroes
        return [part(at >> BITS, zeroes)[at & WITHIN] for at in places]

    def places(self) -> Iterator[int]:
        """Yield in order where numbers other than 0 are."""
        for first, part in sorted(self._parts.items()):
            for at, number in enumerate(part, first * PART):
                if number:
                    yield at

    def numbers(self) -> Iterator[int]:
        """Yield the numbers other than 0, in the order of their places."""
        for _, part in sorted(self._parts.items()):
            yield from filter(None, part)
