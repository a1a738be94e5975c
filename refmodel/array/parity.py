"""P and Q: the parity of a stripe, and how a missing piece follows from the others.

A stripe is k data pieces and m parity pieces of the same length, numbered in that order. P is the
sum of the data pieces, Q the sum of g^i times piece i, in GF(2^8) with the polynomial
x^8 + x^4 + x^3 + x^2 + 1 and g = 2 (H. P. Anvin, "The mathematics of RAID-6", 2004). With one data
piece both are copies of it: a mirror is the case k = 1.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

POLYNOMIAL = 0x11D

Piece = npt.NDArray[np.uint8]


def _powers() -> list[int]:
    """Return g^0 to g^254."""
    found = [1]
    while len(found) < 255:
        double = found[-1] << 1
        found.append(double ^ POLYNOMIAL if double & 0x100 else double)
    return found


POWER = _powers()  # POWER[i] = g^i
LOG = {power: i for i, power in enumerate(POWER)}


def multiply(a: int, b: int) -> int:
    """Return the product of two bytes in GF(2^8)."""
    return POWER[(LOG[a] + LOG[b]) % 255] if a and b else 0


def inverse(a: int) -> int:
    """Return 1 / a in GF(2^8). Raises KeyError for 0."""
    return POWER[-LOG[a] % 255]


@lru_cache(maxsize=256)
def _times(factor: int) -> bytes:
    """Return a table with the product of the factor and each byte."""
    return bytes(multiply(factor, value) for value in range(256))


def scaled(factor: int, piece: Piece) -> Piece:
    """Return every byte of a piece times the factor."""
    if factor == 1:
        return piece
    return np.frombuffer(piece.tobytes().translate(_times(factor)), dtype=np.uint8)


def total(pieces: list[Piece]) -> Piece:
    """Return the sum of pieces, at least one."""
    if len(pieces) == 1:
        return pieces[0].copy()
    found: Piece = np.bitwise_xor(pieces[0], pieces[1])
    for piece in pieces[2:]:
        np.bitwise_xor(found, piece, out=found)
    return found


def parity(data: list[Piece], m: int) -> list[Piece]:
    """Return the m parity pieces (at most 2) of the data pieces."""
    return [total(data), _q(dict(enumerate(data)))][:m]


def reconstruct(k: int, have: Mapping[int, Piece], wanted: int) -> Piece:
    """Return the data piece with the number `wanted` of a stripe, from any k pieces by number."""
    return have[wanted] if wanted in have else _data(k, have)[wanted]


def _data(k: int, have: Mapping[int, Piece]) -> list[Piece]:
    """Return all data pieces, from any k pieces."""
    data = {i: piece for i, piece in have.items() if i < k}
    missing = [i for i in range(k) if i not in data]
    if len(missing) == 1 and k in have:
        data[missing[0]] = total([have[k], *data.values()])
    elif len(missing) == 1:
        (x,) = missing
        data[x] = scaled(inverse(POWER[x]), have[k + 1] ^ _q(data) if data else have[k + 1])
    elif len(missing) == 2:
        x, y = missing
        p = total([have[k], *data.values()])
        q = have[k + 1] ^ _q(data) if data else have[k + 1]
        # p = Dx + Dy and q = g^x Dx + g^y Dy
        factor = inverse(POWER[x] ^ POWER[y])
        data[x] = scaled(factor, scaled(POWER[y], p) ^ q)
        data[y] = p ^ data[x]
    return [data[i] for i in range(k)]


def _q(data: Mapping[int, Piece]) -> Piece:
    """Return the sum of g^i times piece i, by Horner's rule.

    To double a byte is a shift; if a bit is shifted out, the polynomial is added.
    """
    last = max(data)
    found = data[last].view(np.int8)
    double, over = np.empty_like(found), np.empty_like(found)
    for i in range(last - 1, -1, -1):
        np.right_shift(found, 7, out=over)  # -1 where the highest bit is set
        np.bitwise_and(over, POLYNOMIAL & 0xFF, out=over)
        found = np.add(found, found, out=double)
        np.bitwise_xor(found, over, out=found)
        if i in data:
            np.bitwise_xor(found, data[i].view(np.int8), out=found)
    return found.view(np.uint8)
