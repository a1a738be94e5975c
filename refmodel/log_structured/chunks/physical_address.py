"""Physical block addresses (PBA): the place of a chunk on the capacity leg.

Without compression a PBA is the number of a block-sized slot. With compression, space is counted in
units of an eighth of a block (512 bytes of 4 KiB). A PBA is then the number of the chunk's first
unit, shifted left by three bits; the low three bits hold its length in units, less one. Lengths are
powers of two. The longest chunks are put down first, so there is no gap between chunks, and no
chunk lies across the end of a block-sized part of the segment, so none lies on two devices.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain, islice

from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.node import MiddleEntry

LENGTH_BITS = 3


class Addressing:
    """Translates PBAs of one disk into segments, offsets and lengths."""

    def __init__(self, geometry: Geometry) -> None:
        self.bits = LENGTH_BITS if geometry.compression else 0
        self.unit_bytes = geometry.block_bytes // geometry.chunk_units
        self.segment_units = geometry.segment_units
        self.span = self.segment_units << self.bits  # the number of PBAs of a segment
        self._length = (1 << self.bits) - 1

    def units(self, pba: int) -> int:
        """Return how many units are taken at a PBA."""
        return (pba & self._length) + 1

    def units_of(self, stored: bytes) -> int:
        """Return how many units these bytes take."""
        return len(stored) // self.unit_bytes

    def offset(self, pba: int) -> int:
        """Return where a PBA begins, in bytes of the capacity leg."""
        return (pba >> self.bits) * self.unit_bytes

    def length(self, pba: int) -> int:
        """Return how many bytes are stored at a PBA."""
        return self.units(pba) * self.unit_bytes

    def extents(self, entries: list[MiddleEntry]) -> list[tuple[int, int, int]]:
        """Return offset and length in bytes, and the checksum, of each entry of the middle map."""
        if not self.bits:
            unit = self.unit_bytes
            return [(pba * unit, unit, crc) for pba, crc in entries]
        return [(self.offset(pba), self.length(pba), crc) for pba, crc in entries]

    def by_segment(self, pbas: list[int]) -> Counter[int]:
        """Return segment -> how many of its units these PBAs take."""
        if not self.bits:
            return Counter([pba // self.span for pba in pbas])
        found: Counter[int] = Counter()
        for pba in pbas:
            found[pba // self.span] += self.units(pba)
        return found

    def assign(self, segment: int, lengths: list[int]) -> list[int]:
        """Return the PBAs of chunks put into a segment one after another; lengths in units."""
        at, pbas = segment * self.segment_units, []
        if not self.bits:
            return list(range(at, at + len(lengths)))
        for units in lengths:
            pbas.append(at << self.bits | (units - 1))
            at += units
        return pbas

    def fitting(self, pbas: dict[int, int], units: int) -> list[int]:
        """Return the first chunks that take at most so many units together; they are MBA -> PBA."""
        if not self.bits:
            return [*islice(pbas, units)]
        chosen = []
        for mba, pba in pbas.items():
            if not units:
                break
            if (taken := self.units(pba)) <= units:
                chosen.append(mba)
                units -= taken
        return chosen

    def fill(self, *groups: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Choose chunks that fit one segment. Returns them with their lengths, the longest first.

        Chunks are tried in their order, so that what was moved first leaves its segment first: else
        no segment might become free when many are nearly empty. Less than a block stays empty, in
        all of the segments together that use up a group: what did not fit is longer than the gap,
        so gaps grow by powers of two.
        """
        if not self.bits:
            return list(islice(chain(*groups), self.segment_units))
        chosen, units = [], self.segment_units
        for group in groups:
            for mba, length in group:
                if length <= units:
                    chosen.append((mba, length))
                    units -= length
                    if not units:
                        break
        return sorted(chosen, key=lambda chunk: -chunk[1])
