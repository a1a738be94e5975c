"""Disks that are wrong only when requests overlap: each is found, soon and short."""

from typing import Any

import pytest

from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.examples.overlapping_disk import Disk
from conformance.judging.oracles import named
from conformance.judging.verdict import OF_DIALOGUE
from conformance.selftest.corpus.overlapping import WRONG
from conformance.targets import Factory

MODEL = {"model": named("model")}


def run(disk: type[Disk], count: int, in_flight: int) -> Campaign:
    factory: Factory = Factory(disk.__name__, lambda options: disk({"seed": 1}), seconds=10.0)
    more: dict[str, Any] = {"in_flight": in_flight, "most_failures": 1}
    return campaign(factory, count=count, ops=30, seed=9, oracles=MODEL, **more)


def test_the_honest_disk_passes() -> None:
    result = run(Disk, 60, 8)
    assert result.verdict == "pass", [f.verdict.words(f.trace) for f in result.failures]
    assert any(getattr(trace, "overlapping", False) for trace, _ in result.judged.values())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_disk_passes_one_request_at_a_time(name: str) -> None:
    assert run(WRONG[name], 20, 1).verdict == "pass"


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_disk_is_found(name: str) -> None:
    result = run(WRONG[name], 300, 8)
    assert result.verdict == "fail"
    (failure,) = result.failures
    assert failure.verdict.kind not in OF_DIALOGUE
    assert failure.failed == failure.repeats > 0


@pytest.mark.parametrize(
    "name",
    [
        "SnapshotInTwoHalves",
        "WriteInTwoSteps",
        "NameTakenTwice",
        "AnswersExchanged",
    ],
)
def test_what_is_found_is_shrunk_to_few_requests(name: str) -> None:
    (failure,) = run(WRONG[name], 300, 8).failures
    assert failure.trace.operations <= 8, failure.verdict.words(failure.trace)
