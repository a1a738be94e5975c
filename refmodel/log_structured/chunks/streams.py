"""Streams: which chunks are destaged together, so that those of a segment die at about the same time.

After SepBIT (Wang et al., "Separating data via block invalidation time inference for write amplification reduction in log-structured
storage", FAST 2022). A new chunk is expected to live as long as the one that it replaced did; a chunk that the cleaner moves, the longer the older it is.
What that work has in six classes is in four here: a moved chunk is in a segment that cannot die until its class has filled one.
Times are ticks of the disk's clock, of which each chunk written takes one.
"""

from collections.abc import Sequence
from enum import IntEnum

SEGMENTS_AVERAGED = 16
SHORT_LIVES = 4  # of the life of a segment of SHORT, up to which a life is short: lives scatter, and long ones are many times longer


class Stream(IntEnum):
    SHORT = 0  # new, in place of a chunk that did not live long
    LONG = 1  # new, or moved and not old
    MOVED_SHORT = 2  # moved out of a segment of SHORT
    OLD = 3  # moved


class Streams:
    """With `separate` off everything goes to one stream."""

    def __init__(self, separate: bool) -> None:
        self._separate = separate
        self.count = len(Stream) if separate else 1
        self._short = float("inf")  # up to here a life is short
        self._lived: list[int] = []

    def of_new(self, mbas: Sequence[int], replaced: Sequence[int | None]) -> list[list[int]]:
        """New chunks, each in the place of another or of none, sorted into SHORT and LONG."""
        if not self._separate:
            return [[*mbas]]
        short = [
            mba
            for mba, before in zip(mbas, replaced)
            if before is not None and mba - before < self._short
        ]
        return [short, sorted({*mbas}.difference(short)) if len(short) < len(mbas) else []]

    def of_moved(self, source: int, age: int) -> int:
        """For a chunk that is moved out of a segment of a stream."""
        if not self._separate:
            return Stream.SHORT
        if source == Stream.SHORT:
            return Stream.MOVED_SHORT
        return Stream.LONG if age < self._short else Stream.OLD

    def cleaned(self, stream: int, lived: int) -> None:
        """A segment of a stream is cleaned, so long after it was filled."""
        if stream != Stream.SHORT:
            return
        self._lived.append(lived)
        if len(self._lived) == SEGMENTS_AVERAGED:
            self._short = SHORT_LIVES * sum(self._lived) / SEGMENTS_AVERAGED
            self._lived.clear()


class Waiting:
    """The chunks that a stream destages next, in their order, each with its length in units."""

    def __init__(self) -> None:
        self._lengths: dict[int, int] = {}
        self.items = self._lengths.items
        self.units = 0

    def add(self, lengths: dict[int, int]) -> None:
        """Chunks, each with its length in units."""
        self._lengths |= lengths
        self.units += sum(lengths.values())

    def discard(self, mbas: list[int]) -> None:
        lengths = self._lengths
        self.units -= sum([lengths.pop(mba, 0) for mba in mbas])
