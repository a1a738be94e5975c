"""Requests that overlap: what the kit knows of their order."""

from collections.abc import Sequence

import pytest

from conformance.campaign import batches
from conformance.campaign.overlapping_driver import drive
from conformance.contract.trace import Trace
from conformance.judging.oracles import Opinion, model
from conformance.judging.orders import search
from conformance.targets import resolve
from conformance.targets.base import Message, PowerCut

HELLO = {
    "block_size": 512,
    "crash_profile": "ack",
    "capabilities": ["flush", "crash"],
    "payload": "tags",
    "protocol": 2,
    "in_flight": 8,
}
FLUSH: Message = {"op": "flush"}
PROGRAM: list[Message] = [
    {"op": "create", "blocks": 1},
    {**FLUSH, "cut": {"after": 1, "seed": 0}},
    {**FLUSH, "overlaps": 1},
    {**FLUSH, "overlaps": 2},
]


class Late:
    """Each answer comes while the next request is made ready: when it is asked for twice. With
    `fails`, that of request 1 says that the power has failed."""

    hello, cuts, schedules, patience = HELLO, True, False, 1.0

    def __init__(self, fails: bool) -> None:
        self._fails = fails
        self._due: list[int] = []
        self._asked = 0

    def call(self, number: int, message: Message) -> None:
        self._due.append(number)
        self._asked = 0

    def answered(self) -> bool:
        self._asked += 1
        return bool(self._due) and self._asked > 1

    def answer(self, seconds: float) -> tuple[int, Message]:
        number = self._due.pop(0)
        if self._fails and number == 1:
            self._due.clear()
            raise PowerCut
        return number, {"ok": True}

    def inside(self) -> list[Message]:
        return []

    def cut(self) -> None:
        self._due.clear()


def test_a_request_stands_behind_the_answers_that_are_there() -> None:
    events = drive(Late(fails=False), PROGRAM).events
    times = [time for event in events for time in (event["called"], event["answered"])]
    assert times == list(range(8))


def test_nothing_is_called_after_a_power_cut_that_was_heard_of_just_before() -> None:
    events = drive(Late(fails=True), PROGRAM).events
    assert [event["op"] for event in events] == ["create", "flush", "crash", "flush", "flush"]
    assert [event["answered"] is None for event in events] == [False, True, False, False, False]


def test_a_campaign_does_not_search_for_an_order_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends a trace on which the judge gives up again, at last with one request in flight. On
    that one the judge may take its time."""
    crowded: set[int] = set()
    alone: set[int] = set()

    def judge(trace: Trace, most_steps: int) -> search.Outcome:
        blocks = trace.events[0]["blocks"]
        if most_in_flight(trace) == 1:
            alone.add(most_steps)
        else:
            crowded.add(most_steps - batches.STEPS_OF_A_BLOCK * blocks)
        return search.Outcome(None, "it gave up")

    monkeypatch.setattr(search, "judge", judge)
    plan = batches.Plan("refmodel", frozenset(), 1, 20, True, ("model",), 1)
    part = batches.drive(resolve("refmodel"), {"model": model.judge}, plan, 0, 4)
    assert part.reason == ""
    assert crowded == {batches.HURRIED_STEPS} and alone == {search.MOST_STEPS}
    assert batches.HURRIED_STEPS < search.MOST_STEPS


def test_each_trace_is_judged_though_others_are_gone() -> None:
    """What is gone leaves its place in memory to the next trace."""
    judged = 0

    def oracle(traces: Sequence[Trace]) -> list[Opinion]:
        nonlocal judged
        judged += len(traces)
        return [Opinion(None) for _ in traces]

    once = batches._once(oracle)
    for _ in range(20):
        trace = Trace(HELLO, [{"op": "create", "blocks": 1, "result": {"ok": True}}])
        once([trace])
        once([trace])
        del trace
    assert judged == 20


def most_in_flight(trace: Trace) -> int:
    """Return how many requests were in flight together, at most; a power cut ends them."""
    flying: list[int | None] = []
    most = 0
    for event in trace.events:
        flying = [end for end in flying if end is None or end > event["called"]]
        if event["op"] == "crash":
            flying.clear()
        flying.append(event["answered"])
        most = max(most, len(flying))
    return most
