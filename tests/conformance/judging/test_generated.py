"""The search finds an order for every trace of a disk that keeps the contract."""

import pytest

from conformance.judging.orders import search
from conformance.selftest.overlapping_model import generated


@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
@pytest.mark.parametrize("atomic", ["request", "block"])
def test_honest_traces_have_an_order(profile: str, atomic: str) -> None:
    for seed in range(4):
        trace = generated(seed, 60, profile, atomic)
        assert trace.operations >= 59 and not any("failure" in event for event in trace.events)
        assert search.judge(trace).at is None


@pytest.mark.parametrize("seed", [1, 2, 5, 6])
def test_the_answer_that_has_no_order_is_named_in_a_long_trace(seed: int) -> None:
    trace = generated(seed, 400, "prefix", "block")
    reads = [
        index
        for index, event in enumerate(trace.events)
        if event["op"] == "read" and event["result"] and event["result"]["ok"]
        # right behind a power cut it is not decided yet what that has left
        if all(before["op"] != "crash" for before in trace.events[max(0, index - 8) : index])
    ]
    at = reads[len(reads) // 2]
    event = trace.events[at]
    tags = [99999, *event["result"]["tags"][1:]]  # nobody wrote that
    trace.events[at] = {**event, "result": {"ok": True, "tags": tags}}
    assert search.judge(trace).at == at
