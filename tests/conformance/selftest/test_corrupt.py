"""Good traces are accepted, corrupted ones rejected, by model and TLC alike and at the same
event.
"""

from collections import Counter
from itertools import islice

import pytest

from conformance.campaign.driver import drive
from conformance.contract.trace import Trace
from conformance.judging.oracles import model as model_oracle
from conformance.programs import generate
from conformance.selftest import corrupt
from conformance.selftest.corrupt import Corrupted
from conformance.targets.model import ModelTarget

WANTED = 15  # of each kind


@pytest.fixture(scope="module")
def good() -> list[Trace]:
    """Traces of the contract itself, in all profiles."""
    found = []
    for profile in ("ack", "prefix", "block"):
        target = ModelTarget({"profile": profile, "seed": 3})
        programs = generate.programs(target.hello, 30, 11, cuts=True)
        found += [drive(target, program) for program in islice(programs, 40)]
    return found


@pytest.fixture(scope="module")
def bad(good: list[Trace]) -> list[Corrupted]:
    found: list[Corrupted] = []
    for kind in corrupt.KINDS:
        made = (
            corrupt.corrupt(trace, kind, seed) for seed in range(3) for trace in good[:: 3 - seed]
        )
        found += islice((one for one in made if one is not None), WANTED)
    return found


def test_there_are_enough(bad: list[Corrupted]) -> None:
    kinds = Counter(one.kind for one in bad)
    assert len(bad) >= 200 and len(kinds) >= 10
    assert min(kinds.values()) >= 10, kinds


def test_the_model_accepts_the_good_ones(good: list[Trace]) -> None:
    assert [opinion.at for opinion in model_oracle.judge(good)] == [None] * len(good)


def test_the_model_rejects_the_bad_ones_there(bad: list[Corrupted]) -> None:
    for one in bad:
        assert model_oracle.judge_one(one.trace).at == one.at, one.kind


def test_the_same_seed_corrupts_alike(good: list[Trace]) -> None:
    for kind in corrupt.KINDS:
        one, other = corrupt.corrupt(good[5], kind, 1), corrupt.corrupt(good[5], kind, 1)
        assert one == other


def test_tlc_agrees(good: list[Trace], bad: list[Corrupted]) -> None:
    from conformance.judging.oracles import tlc as tlc_oracle
    from modelcheck.checkers import tlc

    try:
        tlc.jar(), tlc.java()
    except tlc.Unavailable as reason:
        pytest.fail(f"TLC is needed, `make setup` brings it: {reason}")
    opinions = tlc_oracle.judge([*good, *(one.trace for one in bad)])
    assert not [opinion.unsure for opinion in opinions if opinion.unsure]
    assert [opinion.at for opinion in opinions[: len(good)]] == [None] * len(good)
    differ = [
        (one.kind, one.at, opinion.at)
        for one, opinion in zip(bad, opinions[len(good) :], strict=False)
        if one.at != opinion.at
    ]
    assert not differ
