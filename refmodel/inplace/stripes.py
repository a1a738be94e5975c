"""Writing in place: which bytes of which pieces a write changes, and how they are written.

A stripe that is written whole needs no reads. Any other write reads what it overwrites and the
parity of that, and adds the difference to the parity (read-modify-write): 4 device I/Os per small
write on RAID-5, 6 on RAID-6 (D. A. Patterson, G. Gibson, R. H. Katz, "A case for redundant arrays
of inexpensive disks", 1988). P and Q are those of refmodel.array.parity.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from refmodel.array import parity
from refmodel.array.component import Component
from refmodel.array.leg import Leg
from refmodel.inplace.geometry import EXTENT_HEADER, InPlaceGeometry

HEADER = struct.Struct("<IHHII")  # stripe, piece, zero, offset in the piece, length
assert HEADER.size == EXTENT_HEADER


class Extent(NamedTuple):
    """Bytes that a piece of a stripe is to hold."""

    stripe: int
    piece: int
    inside: int  # bytes from the beginning of the piece
    data: bytes


class Stripes:
    """The capacity leg, written in parts of stripes. Offsets and lengths are bytes of the disk."""

    def __init__(self, leg: Leg, geometry: InPlaceGeometry) -> None:
        self._leg = leg
        self._k = geometry.k
        self._m = geometry.m
        self._piece_bytes = geometry.piece_bytes

    def read(self, offset: int, length: int, cause: str) -> Iterator[bytes]:
        """Yield the data of a range, one device I/O per piece. Raises DataLost."""
        for stripe, piece, inside, part in self._ranges(offset, length):
            yield self._read(stripe, piece, inside, part, cause)

    def touched(self, offset: int, length: int) -> range:
        """Return the stripes of a range."""
        stripe_bytes = self._k * self._piece_bytes
        return range(offset // stripe_bytes, -(-(offset + length) // stripe_bytes))

    def journaled_bytes(self, offset: int, length: int) -> int:
        """Return how many bytes the journal holds of a write, its parity included, at most."""
        parts: dict[int, list[tuple[int, int]]] = {}
        for stripe, _, inside, part in self._ranges(offset, length):
            parts.setdefault(stripe, []).append((inside, inside + part))
        total = 0
        for some in parts.values():
            parity_bytes = max(end for _, end in some) - min(first for first, _ in some)
            total += (len(some) + self._m) * HEADER.size + self._m * parity_bytes
        return length + total

    def plan_write(self, offset: int, data: bytes) -> list[Extent]:
        """Return what a write changes, parity included. It reads what it needs, and writes nothing.

        Raises DataLost.
        """
        extents: list[Extent] = []
        by_stripe: dict[int, list[Extent]] = {}
        at = 0
        for stripe, piece, inside, part in self._ranges(offset, len(data)):
            extent = Extent(stripe, piece, inside, data[at : at + part])
            by_stripe.setdefault(stripe, []).append(extent)
            at += part
        for stripe, parts in by_stripe.items():
            whole = sum(len(extent.data) for extent in parts) == self._k * self._piece_bytes
            extents += parts
            extents += (
                self.new_parity(stripe, parts) if whole else self.modified_parity(stripe, parts)
            )
        return extents

    def write(self, extents: list[Extent], cause: str) -> None:
        """Write extents to the components that can be reached. Raises DataLost."""
        for stripe, piece, inside, data in extents:
            start = self._leg.striping.component_offset(stripe)
            self._leg.write_component(self._component(stripe, piece), start + inside, data, cause)

    def new_parity(self, stripe: int, parts: list[Extent]) -> list[Extent]:
        """Return the parity of a whole stripe, whose pieces are the parts."""
        pieces = [np.frombuffer(extent.data, np.uint8) for extent in parts]
        return [
            Extent(stripe, self._k + number, 0, piece.tobytes())
            for number, piece in enumerate(parity.parity(pieces, self._m))
        ]

    def modified_parity(self, stripe: int, parts: list[Extent]) -> list[Extent]:
        """Return the parity after a part of a stripe is written.

        It follows from the bytes that are overwritten and their parity, which are read. Parity that
        is not there, or not current, is left out. Raises DataLost.
        """
        first = min(extent.inside for extent in parts)
        length = max(extent.inside + len(extent.data) for extent in parts) - first
        changes = [(extent.piece, self._change(stripe, extent, first, length)) for extent in parts]
        found = []
        for number in range(self._m):
            old = self._old_parity(stripe, self._k + number, first, length)
            if old is not None:
                added = [
                    change if number == 0 else parity.scaled(parity.POWER[piece], change)
                    for piece, change in changes
                ]
                new = np.frombuffer(old, np.uint8) ^ parity.total(added)
                found.append(Extent(stripe, self._k + number, first, new.tobytes()))
        return found

    # How it is done.

    def _ranges(self, offset: int, length: int) -> Iterator[tuple[int, int, int, int]]:
        """Divide a range at the ends of pieces: (stripe, piece, offset in it, length) of each."""
        while length:
            stripe, within = divmod(offset, self._k * self._piece_bytes)
            piece, inside = divmod(within, self._piece_bytes)
            part = min(length, self._piece_bytes - inside)
            yield stripe, piece, inside, part
            offset, length = offset + part, length - part

    def _read(self, stripe: int, piece: int, inside: int, length: int, cause: str) -> bytes:
        offset = (stripe * self._k + piece) * self._piece_bytes + inside
        return self._leg.read(offset, length, lambda data: True, cause)

    def _component(self, stripe: int, piece: int) -> Component:
        return self._leg.components[self._leg.striping.component(piece, stripe)]

    def _change(self, stripe: int, extent: Extent, first: int, length: int) -> parity.Piece:
        """Return the difference that an extent makes to `length` bytes of its piece, from `first`
        on.
        """
        size = len(extent.data)
        before = self._read(stripe, extent.piece, extent.inside, size, "foreground")
        difference = np.frombuffer(before, np.uint8) ^ np.frombuffer(extent.data, np.uint8)
        change = np.zeros(length, np.uint8)
        change[extent.inside - first :][:size] = difference
        return change

    def _old_parity(self, stripe: int, piece: int, inside: int, length: int) -> bytes | None:
        """Return parity as it is; None if its component is gone, or does not have it."""
        component = self._component(stripe, piece)
        if not self._leg.readable(component, stripe * self._k * self._piece_bytes, 1):
            return None
        start = self._leg.striping.component_offset(stripe)
        old = self._leg.read_component(component, start + inside, length, "foreground")
        return bytes(length) if old is None else old


def encode(extents: list[Extent]) -> bytes:
    """Return extents as a record of the journal holds them."""
    return b"".join(
        HEADER.pack(stripe, piece, 0, inside, len(data)) + data
        for stripe, piece, inside, data in extents
    )


def decode(raw: bytes) -> list[Extent]:
    """Return the extents in a record of the journal."""
    extents, at = [], 0
    while at < len(raw):
        stripe, piece, _, inside, length = HEADER.unpack_from(raw, at)
        at += HEADER.size
        extents.append(Extent(stripe, piece, inside, raw[at : at + length]))
        at += length
    return extents
