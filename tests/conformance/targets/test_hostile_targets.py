"""Targets that are wrong in the usual ways get the right verdict soon, and never a traceback."""

import time
from typing import Any

import pytest

from conformance.campaign.grouping import grouped
from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.judging.oracles import named
from conformance.selftest import corpus
from conformance.selftest.corpus import DIALOGUES, DISKS, UNUSABLE


def outcome_of(fault: str, count: int = 60, **limits: Any) -> tuple[Campaign, float]:
    started = time.monotonic()
    result = campaign(
        corpus.target(fault),
        count=count,
        ops=30,
        seed=5,
        oracles={"model": named("model")},
        **limits,
    )
    return result, time.monotonic() - started


@pytest.mark.parametrize("honest", ["none", "honest-block", "honest-prefix"])
def test_honest_disks_pass(honest: str) -> None:
    result, _ = outcome_of(honest, count=15)
    assert result.verdict == "pass" and result.operations > 400


@pytest.mark.parametrize("fault", DISKS)
def test_wrong_disk(fault: str) -> None:
    result, _ = outcome_of(fault)
    kinds, most = DISKS[fault]
    assert result.verdict == "fail"
    first = result.failures[0]
    assert first.verdict.kind in kinds, first.verdict
    shortest = min(failure.trace.operations for failure in result.failures)
    assert shortest <= most, [f.verdict.words(f.trace) for f in result.failures]
    assert first.verdict.expected and first.verdict.actual and first.verdict.clause


@pytest.mark.parametrize("fault", DIALOGUES)
def test_wrong_dialogue(fault: str) -> None:
    result, seconds = outcome_of(fault)
    kind, words = DIALOGUES[fault]
    assert result.verdict == "fail"
    verdict = result.failures[0].verdict
    assert verdict.kind == kind and words in verdict.actual, verdict
    assert "Traceback" not in verdict.actual
    assert seconds < 30


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.targets.process.LONGEST_ANSWER", 4 << 20)
    result, _ = outcome_of("never-ends-the-line")
    assert result.failures[0].verdict.kind == "protocol"
    assert "longer than 4 MiB" in result.failures[0].verdict.actual


def test_last_words_are_kept() -> None:
    result, _ = outcome_of("exits")
    assert "disk on fire" in result.failures[0].verdict.reason
    result, _ = outcome_of("floods-stderr")
    assert "noise" in result.failures[0].verdict.reason
    assert len(result.failures[0].verdict.reason) <= 8192


@pytest.mark.parametrize("fault", UNUSABLE)
def test_unusable(fault: str) -> None:
    result, _ = outcome_of(fault)
    assert result.verdict == "inconclusive" and UNUSABLE[fault] in result.reason, result.reason


def test_the_same_failure_is_shown_once() -> None:
    result, _ = outcome_of("accepts-bad-names")
    assert len(result.failures) == 3 and len(grouped(result.failures)) == 1
    result, _ = outcome_of("accepts-out-of-range", most_failures=12)
    last = [failure.trace.events[-1] for failure in result.failures]
    shapes = {(event["op"], "view" in event) for event in last}
    assert len(grouped(result.failures)) == len(shapes) > 1, (
        "a write, a read, and a read of a snapshot are not the same"
    )
