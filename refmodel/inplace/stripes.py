"""Writing in place: which bytes of which pieces a write changes, parity included, and how they get there.

A stripe that is written whole needs no reads. Any other write reads what it overwrites and the parity of that, and adds the difference to the parity
(read-modify-write): 4 device I/Os for a small write on RAID-5, 6 on RAID-6 (D. A. Patterson, G. Gibson, R. H. Katz, "A case for redundant
arrays of inexpensive disks", 1988). P and Q are those of refmodel.array.parity.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from refmodel.array import parity
from refmodel.array.component import Component
from refmodel.array.leg import Leg
from refmodel.inplace.geometry import InPlaceGeometry

HEADER = struct.Struct("<IHHII")  # stripe, piece, zero, offset in the piece, length


class Extent(NamedTuple):
    """Bytes that a piece of a stripe is to hold."""

    stripe: int
    piece: int
    inside: int  # bytes from the piece's beginning
    data: bytes


class Stripes:
    """The capacity leg, for writing parts of stripes. Offsets and lengths are bytes."""

    def __init__(self, leg: Leg, geometry: InPlaceGeometry) -> None:
        self._leg = leg
        self._k = geometry.k
        self._m = geometry.m
        self._piece = geometry.piece_bytes

    def read(self, offset: int, length: int, cause: str) -> Iterator[bytes]:
        """Data, an I/O a piece. Raises DataLost."""
        for stripe, piece, inside, part in self._cut(offset, length):
            yield self._read(stripe, piece, inside, part, cause)

    def touched(self, offset: int, length: int) -> range:
        """The stripes of a range."""
        return range(
            offset // (self._k * self._piece), -(-(offset + length) // (self._k * self._piece))
        )

    def changed(self, offset: int, data: bytes) -> list[Extent]:
        """What a write changes; reads what it has to, and writes nothing. Raises DataLost."""
        extents: list[Extent] = []
        by_stripe: dict[int, list[Extent]] = {}
        at = 0
        for stripe, piece, inside, part in self._cut(offset, len(data)):
            by_stripe.setdefault(stripe, []).append(
                Extent(stripe, piece, inside, data[at : at + part])
            )
            at += part
        for stripe, parts in by_stripe.items():
            whole = sum(len(extent.data) for extent in parts) == self._k * self._piece
            extents += parts + (
                self._parity(stripe, parts) if whole else self._modified(stripe, parts)
            )
        return extents

    def write(self, extents: list[Extent], cause: str) -> None:
        """Have the pieces hold them, wherever their components can be reached."""
        for stripe, piece, inside, data in extents:
            self._leg.write_component(
                self._component(stripe, piece), stripe * self._piece + inside, data, cause
            )

    # How it is done.

    def _cut(self, offset: int, length: int) -> Iterator[tuple[int, int, int, int]]:
        """A range as parts of pieces: stripe, piece, offset in it, length."""
        while length:
            stripe, within = divmod(offset, self._k * self._piece)
            piece, inside = divmod(within, self._piece)
            part = min(length, self._piece - inside)
            yield stripe, piece, inside, part
            offset, length = offset + part, length - part

    def _read(self, stripe: int, piece: int, inside: int, length: int, cause: str) -> bytes:
        return self._leg.read(
            (stripe * self._k + piece) * self._piece + inside, length, lambda data: True, cause
        )

    def _component(self, stripe: int, piece: int) -> Component:
        """Whose piece it is: parity is everywhere in turn, as on any leg."""
        return self._leg.components[(piece + stripe) % (self._k + self._m)]

    def _parity(self, stripe: int, parts: list[Extent]) -> list[Extent]:
        """The parity of a whole stripe."""
        pieces = [np.frombuffer(extent.data, np.uint8) for extent in parts]
        found = parity.parity(pieces, self._m)
        return [
            Extent(stripe, self._k + number, 0, piece.tobytes())
            for number, piece in enumerate(found)
        ]

    def _modified(self, stripe: int, parts: list[Extent]) -> list[Extent]:
        """The parity of a part of a stripe, from what is overwritten and the parity of that."""
        first = min(extent.inside for extent in parts)
        end = max(extent.inside + len(extent.data) for extent in parts)
        changes = []
        for extent in parts:
            before = self._read(stripe, extent.piece, extent.inside, len(extent.data), "foreground")
            change = np.zeros(end - first, np.uint8)
            change[extent.inside - first :][: len(extent.data)] = np.frombuffer(
                before, np.uint8
            ) ^ np.frombuffer(extent.data, np.uint8)
            changes.append((extent.piece, change))
        found = []
        for number in range(self._m):
            old = self._old_parity(stripe, self._k + number, first, end - first)
            if old is not None:
                added = [
                    change if number == 0 else parity.scaled(parity.POWER[piece], change)
                    for piece, change in changes
                ]
                found.append(
                    Extent(
                        stripe,
                        self._k + number,
                        first,
                        (np.frombuffer(old, np.uint8) ^ parity.total(added)).tobytes(),
                    )
                )
        return found

    def _old_parity(self, stripe: int, piece: int, inside: int, length: int) -> bytes | None:
        """Parity as it is; None if it is not there to be kept right."""
        component = self._component(stripe, piece)
        if not self._leg.readable(component, stripe * self._k * self._piece, 1):
            return None
        return self._leg.read_component(
            component, stripe * self._piece + inside, length, "foreground"
        )


def encode(extents: list[Extent]) -> bytes:
    """As a record of the journal has them."""
    return b"".join(
        HEADER.pack(stripe, piece, 0, inside, len(data)) + data
        for stripe, piece, inside, data in extents
    )


def decode(raw: bytes) -> list[Extent]:
    extents, at = [], 0
    while at < len(raw):
        stripe, piece, _, inside, length = HEADER.unpack_from(raw, at)
        at += HEADER.size
        extents.append(Extent(stripe, piece, inside, raw[at : at + length]))
        at += length
    return extents
