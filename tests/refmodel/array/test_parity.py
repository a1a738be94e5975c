"""P and Q agree with another implementation of GF(2^8), and any k pieces give the others."""

import os
from itertools import combinations

import numpy as np
import pytest
import reedsolo  # type: ignore[import-untyped]  # it has no types

from refmodel.array.parity import parity, reconstruct

reedsolo.init_tables(prim=0x11D, generator=2)


def pieces(k: int, length: int = 64) -> list[np.ndarray]:
    """Return k random pieces."""
    return [np.frombuffer(os.urandom(length), np.uint8) for _ in range(k)]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_parity_is_what_another_implementation_says(k: int) -> None:
    data = pieces(k)
    p, q = parity(data, 2)
    for at in range(len(p)):
        column = [int(piece[at]) for piece in data]
        expected_p = expected_q = 0
        for i, value in enumerate(column):
            expected_p ^= value
            expected_q ^= reedsolo.gf_mul(reedsolo.gf_pow(2, i), value)
        assert (p[at], q[at]) == (expected_p, expected_q)


@pytest.mark.parametrize(("k", "m"), [(1, 1), (1, 2), (2, 1), (4, 1), (4, 2)])
def test_any_k_pieces_give_all_data(k: int, m: int) -> None:
    data = pieces(k)
    stripe = data + parity(data, m)
    for kept in combinations(range(k + m), k):
        have = {i: stripe[i] for i in kept}
        for wanted in range(k):
            assert np.array_equal(reconstruct(k, have, wanted), stripe[wanted]), (kept, wanted)
