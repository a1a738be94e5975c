"""A set of small numbers, packed: a byte for each number up to the largest one.

A set of Python takes some 60 bytes per number. Stripes, pages and segments are numbered from 0
without gaps, so here most of them take one byte, in the set or not.
"""

from collections.abc import Iterable, Iterator

LEAST_ADDED = 1024  # bytes by which the set grows, at least


class NumberSet:
    """A set of numbers from 0 on; they are yielded in ascending order."""

    __slots__ = ("_low", "_there", "count")

    def __init__(self) -> None:
        self._there = bytearray()  # by number: 1 if it is in the set, else 0
        self.count = 0  # how many numbers are in the set; read it where `len` would cost too much
        self._low = 0  # no number below it is in the set

    def __contains__(self, number: int) -> bool:
        return number < len(self._there) and self._there[number] == 1

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers in ascending order; those that were yielded may be removed."""
        there, at = self._there, self._low - 1
        while (at := there.find(1, at + 1)) >= 0:
            yield at

    def add(self, number: int) -> None:
        """Put a number into the set."""
        there = self._there
        if number >= len(there):
            there.extend(bytes(number - len(there) + LEAST_ADDED))
        self.count += not there[number]
        there[number] = 1
        if number < self._low:
            self._low = number

    def discard(self, number: int) -> None:
        """Remove a number, if it is in the set."""
        if number in self:
            self._there[number] = 0
            self.count -= 1

    def pop_lowest(self) -> int:
        """Remove the lowest number, and return it. Raises ValueError if there is none."""
        lowest = self._there.index(1, self._low)
        self._there[lowest] = 0
        self.count -= 1
        self._low = lowest
        return lowest

    def update(self, numbers: Iterable[int]) -> None:
        """Put all of these numbers into the set."""
        if not (numbers := [*numbers]):
            return
        there, count = self._there, self.count
        if (most := max(numbers)) >= len(there):
            there.extend(bytes(most - len(there) + LEAST_ADDED))
        for number in numbers:
            count += not there[number]
            there[number] = 1
        self.count, self._low = count, min(self._low, min(numbers))

    def difference_update(self, numbers: Iterable[int]) -> None:
        """Remove all of these numbers that are in the set."""
        there, count = self._there, self.count
        for number in numbers:
            if number < len(there):
                count -= there[number]
                there[number] = 0
        self.count = count

    def isdisjoint(self, numbers: Iterable[int]) -> bool:
        """Return whether none of these numbers is in the set."""
        return not any(number in self for number in numbers)

    def clear(self) -> None:
        """Remove all numbers."""
        self._there, self.count, self._low = bytearray(), 0, 0
