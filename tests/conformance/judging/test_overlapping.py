"""The judge of overlapping requests agrees with the definition: some order of all steps is
admitted.
"""

import random

import pytest

from conformance.contract.trace import numbered
from conformance.judging.orders import search
from conformance.selftest.overlapping_histories import history
from support.overlap import admitted


@pytest.mark.parametrize("part", range(4))
def test_the_judge_agrees_with_all_orders(part: int) -> None:
    seen = {True: 0, False: 0}
    for seed in range(part * 150, part * 150 + 150):
        trace = history(random.Random(seed), 6)
        expected = admitted(trace)
        outcome = search.judge(trace)
        assert not outcome.unsure
        assert (outcome.at is None) == expected, (seed, trace.hello, numbered(trace.events))
        seen[expected] += 1
    assert min(seen.values()) > 10, seen
