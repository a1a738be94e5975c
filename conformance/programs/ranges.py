"""Ranges of blocks: mostly short, often hot, one behind the other, or at an edge of a structure;
now and then across a border of an earlier one, from one border to another, or past the end of the
disk.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise

from conformance.contract.source import Source, rarely

HOT, ANYWHERE, ONWARD = 0, 1, 2  # where a program's ranges mostly are
FAR = 1 << 32  # an LBA that no disk here has
SHORT = (1, 1, 1, 2, 2, 3, 4)  # blocks
COUNTS = (SHORT, SHORT, SHORT, (1,))  # of a program: records of one length take each other's place
WHOLE_ONE_IN = (8, 8, 8, 64)  # ranges, in a program: the whole disk. What views share lasts longer
# where it is seldom written whole.
USUAL = (4, 8, 16, 32, 64, 128, 256)  # blocks in a structure, such as a word of a bitmap
BORDERS = 8  # of ranges that are remembered
ACROSS_ONE_IN = 10  # ranges: across such a border, from so many blocks
ACROSS = (1, 1, 2, 8, 20)  # before it, at most, to so many behind it
ANYWHERE_ONE_IN = 4  # points between which a range lies: no such border
BESIDE_ONE_IN = 3  # ranges at an edge of a structure: they begin one block before it
ENDS_ONE_IN = 3  # of these: they end there or beside it, and begin anywhere
ENDS_BESIDE = (0, 0, 1, -1)  # blocks


class Ranges:
    """Draws ranges on a disk of `blocks` blocks. `options` are values that the target was opened
    with; `mostly` is one of HOT, ANYWHERE, ONWARD, drawn if it is not given.
    """

    def __init__(
        self,
        choose: Source,
        blocks: int,
        options: Iterable[object],
        block_size: int,
        mostly: int | None = None,
    ) -> None:
        self._choose, self._blocks = choose, blocks
        self._edges = edges(options, block_size, blocks)
        self._usual = [size for size in USUAL if size <= blocks]
        drawn = (HOT, HOT, ANYWHERE, ONWARD)[choose.randrange(4)]
        self._mostly = drawn if mostly is None else mostly
        self._counts = COUNTS[choose.randrange(len(COUNTS))]
        self._whole_one_in = WHOLE_ONE_IN[choose.randrange(len(WHOLE_ONE_IN))]
        self._hot = [choose.randrange(blocks) for _ in range(2)]
        self._behind = choose.randrange(blocks)  # the last range
        self._borders: deque[int] = deque(maxlen=BORDERS)  # of the last ranges

    def next(self) -> tuple[int, int]:
        """Return an LBA and a count of blocks."""
        lba, count = self._next()
        if lba + count <= self._blocks:
            self._borders += (lba, lba + count)
        return lba, count

    def _next(self) -> tuple[int, int]:
        choose, blocks = self._choose, self._blocks
        whole = rarely(choose, self._whole_one_in)
        count = blocks if whole else self._counts[choose.randrange(len(self._counts))]
        place = choose.randrange(16)
        if place == 15:
            return self._past_the_end(count)
        if place == 14:
            return self.between_borders()
        if self._edges and rarely(choose, 3):
            return self._at_an_edge(self._edges, count)
        if self._usual and rarely(choose, 8):
            return self._at_an_edge(self._usual, count)
        if self._borders and not whole and rarely(choose, ACROSS_ONE_IN):
            return self._across(self._point())
        count = min(count, blocks)
        if place < 4 or self._mostly == ANYWHERE:
            lba = choose.randrange(blocks)
        elif self._mostly == HOT:
            lba = self._hot[place & 1]
        else:
            lba = self._behind
        lba = min(lba, blocks - count)
        self._behind = (lba + count) % blocks
        return lba, count

    def _past_the_end(self, count: int) -> tuple[int, int]:
        blocks = self._blocks
        count = max(2, min(count, blocks))
        return (max(0, blocks - 1), max(0, blocks - count + 1), blocks, FAR)[
            self._choose.randrange(4)
        ], count

    def between_borders(self) -> tuple[int, int]:
        """Return a range between two borders of earlier ranges: the same range, a part of it, or a
        range that contains it."""
        begin, end = sorted([self._point(), self._point()])
        begin = min(begin, self._blocks - 1)
        return begin, max(1, end - begin)

    def _across(self, border: int) -> tuple[int, int]:
        """Return a range that begins before a border and ends behind it."""
        choose = self._choose
        most = ACROSS[choose.randrange(len(ACROSS))], ACROSS[choose.randrange(len(ACROSS))]
        before, behind = (1 + choose.randrange(blocks) for blocks in most)
        lba = max(0, min(border - before, self._blocks - 1))
        return lba, max(1, min(border + behind, self._blocks) - lba)

    def parts(self, most: int) -> list[tuple[int, int]]:
        """Return the whole disk in up to `most` parts, which meet at borders of earlier ranges, or
        anywhere."""
        points = {0, self._blocks, *(self._point() for _ in range(most - 1))}
        ends = sorted(points)
        return [(begin, end - begin) for begin, end in pairwise(ends)]

    def _point(self) -> int:
        """Return a border of one of the last ranges or of the disk, or any block."""
        choose = self._choose
        if rarely(choose, ANYWHERE_ONE_IN):
            return choose.randrange(self._blocks + 1)
        points = (0, *self._borders, self._blocks)
        return points[choose.randrange(len(points))]

    def _at_an_edge(self, edges: Sequence[int], count: int) -> tuple[int, int]:
        """Return a range that begins or ends at an edge of a structure or beside it, or covers
        several structures."""
        choose, blocks = self._choose, self._blocks
        edge = edges[choose.randrange(len(edges))]
        if rarely(choose, ENDS_ONE_IN):
            end = edge * (1 + choose.randrange(max(1, blocks // edge)))
            end = max(1, min(end + ENDS_BESIDE[choose.randrange(len(ENDS_BESIDE))], blocks))
            lba = max(0, end - 1 - choose.randrange(2 * edge))
            return lba, end - lba
        count = (count, edge - 1, edge, edge, edge, edge + 1, 2 * edge, 3 * edge)[
            choose.randrange(8)
        ]
        count = max(1, min(count, blocks))
        lba = edge * choose.randrange(blocks // edge + 1) - rarely(choose, BESIDE_ONE_IN)
        return max(0, min(lba, blocks - count)), count


def edges(options: Iterable[object], block_size: int, blocks: int) -> list[int]:
    """Return, in blocks, sizes that structures of the target may have: the numbers among its
    options, which are in blocks or in bytes.
    """
    numbers = [value for value in options if type(value) is int]
    sizes = {*numbers, *(number // block_size for number in numbers)}
    return sorted(size for size in sizes if 1 < size <= blocks)
