"""Striping: where the bytes of a leg are on its components.

A stripe is k data pieces and m parity pieces (refmodel.array.parity), one on each component, so any
k pieces give the data. Which component has which piece rotates from stripe to stripe, so that the
parity is spread over all components. A mirror is the case k = 1: every piece is the data itself.
"""

import numpy as np

from refmodel.array import parity


class Striping:
    """The striping of a leg. Offsets and lengths are bytes; a stripe has `stripe_bytes` of data."""

    def __init__(self, k: int, m: int, stripe_bytes: int, components: int) -> None:
        self.k = k
        self.m = m
        self.stripe_bytes = stripe_bytes
        self.piece_bytes = stripe_bytes // k
        self.components = components

    def piece(self, component: int, stripe: int) -> int:
        """Return which piece of a stripe a component holds."""
        return component if self.k == 1 else (component - stripe) % self.components

    def component(self, piece: int, stripe: int) -> int:
        """Return which component holds a piece of a stripe. The leg is no mirror."""
        return (piece + stripe) % self.components

    def component_offset(self, stripe: int) -> int:
        """Return where a stripe's piece begins on each component."""
        return stripe * self.piece_bytes

    def locate(self, offset: int) -> tuple[int, int, int]:
        """Return the stripe and the piece of an offset, and the offset on the component."""
        if self.k == 1:
            return offset // self.stripe_bytes, 0, offset
        stripe, within = divmod(offset, self.stripe_bytes)
        piece, inside = divmod(within, self.piece_bytes)
        return stripe, piece, stripe * self.piece_bytes + inside

    def pieces(self, data: bytes) -> list[memoryview]:
        """Return the k + m pieces of a stripe's data; of a mirror, any data once per component."""
        if self.k == 1:
            return [memoryview(data)] * self.components
        pieces = list(np.frombuffer(data, np.uint8).reshape(self.k, -1))
        return [piece.data for piece in pieces + parity.parity(pieces, self.m)]

    def reconstruct(self, have: dict[int, bytes], wanted: int) -> bytes:
        """Return a data piece of a stripe from any k pieces of it, by number of the piece."""
        if wanted in have or self.k == 1:
            return have[wanted] if wanted in have else next(iter(have.values()))
        arrays = {piece: np.frombuffer(data, np.uint8) for piece, data in have.items()}
        return parity.reconstruct(self.k, arrays, wanted).tobytes()
