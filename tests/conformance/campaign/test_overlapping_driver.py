"""Requests that overlap: what the kit knows of their order."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.campaign import batches
from conformance.campaign.overlapping_driver import drive
from conformance.contract.trace import Trace
from conformance.judging.oracles import Opinion, model
from conformance.judging.orders import search
from conformance.targets import resolve
from conformance.targets.base import Message, PowerCut, TargetFailure
from conformance.targets.overlapping import calls
from conformance.targets.process import ProcessTarget

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

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        number = self._due.pop(0)
        if self._fails and number == 1:
            self._due.clear()
            raise PowerCut
        return number, {"ok": True}

    def inside(self) -> list[Message]:
        return []

    def cut(self) -> None:
        self._due.clear()

    def ended(self, failure: TargetFailure) -> TargetFailure:
        return failure


def test_a_request_stands_behind_the_answers_that_are_there() -> None:
    events = drive(Late(fails=False), PROGRAM).events
    times = [time for event in events for time in (event["called"], event["answered"])]
    assert times == list(range(8))


def test_nothing_is_called_after_a_power_cut_that_was_heard_of_just_before() -> None:
    events = drive(Late(fails=True), PROGRAM).events
    assert [event["op"] for event in events] == ["create", "flush", "crash", "flush", "flush"]
    assert [event["answered"] is None for event in events] == [False, True, False, False, False]


class Recovering(Late):
    """A flush is not answered any more once a crash has come, which takes two seconds."""

    def __init__(self) -> None:
        super().__init__(fails=False)
        self._ops: list[str] = []

    def call(self, number: int, message: Message) -> None:
        self._ops.append(message["op"])
        self._due.append(number)

    def answered(self) -> bool:
        return False

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        if "crash" in self._ops and seconds < 2:
            return None
        return self._due.pop(), {"ok": True}


def test_a_crash_in_flight_has_its_own_time() -> None:
    """It ends the flush that is in flight with it. So the kit waits for the crash alone."""
    events = drive(Recovering(), [PROGRAM[0], FLUSH, {"op": "crash", "overlaps": 1}]).events
    assert [event.get("failure") for event in events] == [None, None, None]
    assert [event["answered"] for event in events] == [1, None, 4]


SILENT = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "hello":
        print(json.dumps({"ok": True, "block_size": 512, "crash_profile": None, "payload": "tags",
                          "capabilities": ["flush"], "protocol": 2, "in_flight": 2}), flush=True)
    elif request["op"] == "create":
        print(json.dumps({"ok": True, "id": request["id"]}), flush=True)
    else:
        print("stuck in", request["op"], file=sys.stderr, flush=True)
"""


def test_a_hang_shows_what_the_target_printed(tmp_path: Path) -> None:
    script = tmp_path / "silent.py"
    script.write_text(SILENT)
    target = ProcessTarget(f"python3 {script}")
    try:
        target.patience = 0.5
        trace = drive(calls(target), [PROGRAM[0], FLUSH])
    finally:
        target.close()
    assert trace.events[1]["failure"]["kind"] == "hang"
    assert trace.events[1]["failure"]["output"] == "stuck in flush\n"


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


@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
@pytest.mark.parametrize("blocks", [300, 301])
def test_large_disks_of_blocks_have_requests_in_flight_only_at_power_cuts(
    profile: str, blocks: int
) -> None:
    """A judge that follows each block would need minutes."""
    hello = {**HELLO, "crash_profile": profile}
    bench: Any = SimpleNamespace(
        hello=lambda options: hello, cuts=lambda options: False, schedules=lambda options: False
    )
    writes = [{"op": "write", "lba": lba, "tags": [lba + 1]} for lba in range(50)]
    program = batches._woven(bench, [{"op": "create", "blocks": blocks}, *writes], {}, 1, 8)
    assert any(one.get("overlaps") for one in program) != (profile == "block" and blocks > 300)
