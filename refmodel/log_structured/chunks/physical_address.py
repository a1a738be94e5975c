"""Where chunks lie: what a PBA says.

Without compression a PBA is the number of a slot. With it, space is counted in units of an eighth of a block (512 bytes of 4 KiB), and a PBA is
the number of the chunk's first unit with, in its lowest three bits, how many units it takes, less one. Lengths are powers of two: put down the
longest first there is no gap between them, and none lies across the end of a block-sized part of the segment, so none across two pieces of a stripe.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain, islice

from refmodel.log_structured.geometry import Geometry

LENGTH_BITS = 3


class Places:
    def __init__(self, geometry: Geometry) -> None:
        self.bits = LENGTH_BITS if geometry.compression else 0
        self.unit_bytes = geometry.block_bytes // geometry.chunk_units
        self.segment_units = geometry.segment_units
        self.span = self.segment_units << self.bits  # PBAs of a segment
        self._length = (1 << self.bits) - 1

    def units(self, pba: int) -> int:
        """How much space is taken there."""
        return (pba & self._length) + 1

    def offset(self, pba: int) -> int:
        """Where it begins, in bytes of the capacity leg."""
        return (pba >> self.bits) * self.unit_bytes

    def length(self, pba: int) -> int:
        """How many bytes are stored there."""
        return self.units(pba) * self.unit_bytes

    def extents(self, places: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
        """Where chunks are, in bytes of the capacity leg, how long they are, and their checksums; of PBAs with checksums."""
        if not self.bits:
            unit = self.unit_bytes
            return [(pba * unit, unit, crc) for pba, crc in places]
        return [(self.offset(pba), self.length(pba), crc) for pba, crc in places]

    def by_segment(self, pbas: list[int]) -> Counter[int]:
        """Segment -> how many units of it these are."""
        if not self.bits:
            return Counter([pba // self.span for pba in pbas])
        found: Counter[int] = Counter()
        for pba in pbas:
            found[pba // self.span] += self.units(pba)
        return found

    def of(self, segment: int, lengths: list[int]) -> list[int]:
        """The PBAs of chunks of so many units each, put into a segment one after another."""
        at, pbas = segment * self.segment_units, []
        if not self.bits:
            return list(range(at, at + len(lengths)))
        for units in lengths:
            pbas.append(at << self.bits | (units - 1))
            at += units
        return pbas

    def fill(self, *groups: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Of chunks, each with its length, in their order as many as fit a segment; the longest first.

        In their order, so that what was moved first is out of its segment first: else no segment might be free when many are nearly empty. What stays
        empty is less than a block, and in all of the segments that use up a group: what did not fit is longer than the gap, so gaps grow by powers of two.
        """
        if not self.bits:
            return list(islice(chain(*groups), self.segment_units))
        taken, units = [], self.segment_units
        for group in groups:
            for mba, length in group:
                if length <= units:
                    taken.append((mba, length))
                    units -= length
                    if not units:
                        break
        return sorted(taken, key=lambda chunk: -chunk[1])
