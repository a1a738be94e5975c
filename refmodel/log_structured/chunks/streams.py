"""Streams: which chunks are destaged together, so that chunks of one segment die at about one time.

After SepBIT (Wang et al., "Separating data via block invalidation time inference for write
amplification reduction in log-structured storage", FAST 2022). A new chunk is expected to live as
long as the chunk that it replaced did. A chunk that the cleaner moves is expected to live longer
the older it is. SepBIT has six classes, here are four: a moved chunk stays in a segment that cannot
die until its class has filled another one. Times are ticks of the disk's clock; each chunk that is
written takes one.
"""

from collections.abc import ItemsView, Sequence
from enum import IntEnum
from itertools import repeat

SEGMENTS_AVERAGED = 16
SHORT_LIVES = 4  # a life is short up to so many times the life of a segment of SHORT: lives
# scatter, and long ones are many times longer


class Stream(IntEnum):
    """The classes of chunks, by the life that is expected."""

    SHORT = 0  # new, in place of a chunk that did not live long
    MOVED_SHORT = 1  # moved out of a segment of SHORT
    LONG = 2  # new, or moved and not old
    OLD = 3  # moved, and old


class Streams:
    """Decides which stream a chunk goes to. Unless `separate`, all chunks go to one stream."""

    def __init__(self, separate: bool) -> None:
        self._separate = separate
        self.count = len(Stream) if separate else 1
        self._short = float("inf")  # ticks; up to here a life is short
        self._lived: list[int] = []  # ticks that the last cleaned segments of SHORT lived

    def of_new(self, first: int, replaced: Sequence[int | None]) -> list[list[int]]:
        """Sort new chunks, each in the place of another or of None, into SHORT and LONG.

        Their MBAs follow each other from `first` on. Returns one list for each stream up to LONG;
        one list if streams are not separate.
        """
        if not self._separate:
            return [[*range(first, first + len(replaced))]]
        life = self._short
        short: list[int] = []
        long: list[int] = []
        for mba, before in enumerate(replaced, first):
            (short if before is not None and mba - before < life else long).append(mba)
        return [short, [], long]

    def of_moved(self, mbas: list[int], source: int, now: int) -> list[list[int]]:
        """Sort chunks that leave a segment of the stream `source` by the age that they have now.

        Returns one list for each stream; one list if streams are not separate.
        """
        if not self._separate:
            return [mbas]
        if source == Stream.SHORT:
            return [[], mbas, [], []]
        old = [mba for mba in mbas if now - mba >= self._short]
        return [[], [], [mba for mba in mbas if now - mba < self._short] if old else mbas, old]

    def cleaned(self, stream: int, lived: int) -> None:
        """Learn that a segment of a stream is cleaned, `lived` ticks after it was filled."""
        if stream != Stream.SHORT:
            return
        self._lived.append(lived)
        if len(self._lived) == SEGMENTS_AVERAGED:
            self._short = SHORT_LIVES * sum(self._lived) / SEGMENTS_AVERAGED
            self._lived.clear()


class DestageQueue:
    """The chunks that a stream destages next, in their order, each with its length in units."""

    def __init__(self) -> None:
        self._lengths: dict[int, int] = {}
        self.units = 0  # length of all chunks together

    def items(self) -> ItemsView[int, int]:
        """Return MBA and length of each chunk; the view follows what is added and removed."""
        return self._lengths.items()

    @property
    def counts_right(self) -> bool:
        """True if `units` is the length of what is queued."""
        return self.units == sum(self._lengths.values())

    def add(self, lengths: dict[int, int], units: int) -> None:
        """Queue chunks, each with its length in units; all together take `units`."""
        self._lengths |= lengths
        self.units += units

    def discard(self, mbas: list[int]) -> None:
        """Take chunks out of the queue, if they are in it."""
        lengths = self._lengths
        self.units -= sum(map(lengths.pop, mbas, repeat(0)))
