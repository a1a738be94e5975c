"""The judge of overlapping requests agrees with the definition: some order of all steps is
admitted.
"""

import random

import pytest

from conformance.contract.trace import numbered
from conformance.judging.orders import search
from conformance.selftest.overlapping_histories import history
from support.overlap import admitted

SEEDS = 400


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


@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
def test_the_judge_agrees_with_all_orders_where_the_power_often_fails(profile: str) -> None:
    seen = {True: 0, False: 0}
    for seed in range(SEEDS):
        choose = random.Random(seed)
        wrong = choose.choice([0, 0.1, 0.2])
        trace = history(choose, 11, 2, 4, wrong, profile, cuts=0.06)
        expected = admitted(trace)
        outcome = search.judge(trace)
        assert (outcome.at is None, outcome.unsure) == (expected, ""), (seed, trace.hello["atomic"])
        seen[expected] += 1
    assert min(seen.values()) > SEEDS // 20, seen
