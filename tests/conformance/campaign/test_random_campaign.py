"""Campaigns: coverage, counters, shrinking, and a failure that explains itself."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from conformance.campaign.driver import drive
from conformance.campaign.grouping import grouped
from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.contract.model import faults_of
from conformance.contract.trace import Event, Trace
from conformance.examples.list_disk import ListDisk
from conformance.judging.judge import judge
from conformance.judging.oracles import Opinion, named
from conformance.reports import machine, summary
from conformance.targets import Factory
from conformance.targets.base import Message, PowerCut
from conformance.targets.model import ModelTarget

MODEL = {"model": named("model")}
PROGRAM = [{"op": "create", "blocks": 4}, {"op": "write", "lba": 0, "tags": [1, 2]}]


class Deaf(ModelTarget):
    """Loses the second half of every write that is long and comes after a snapshot."""

    knobs = {"profile": ["ack"]}

    def request(self, message: Message) -> Message:
        state = self._states[0]
        if (
            message["op"] == "write"
            and len(message["tags"]) > 1
            and state.snaps
            and not faults_of(state, message)
        ):
            super().request({**message, "tags": message["tags"][:1]})
            return {"ok": True}
        return super().request(message)


@pytest.mark.parametrize(("error", "times"), [("data-lost", 3), ("unsupported", 1)])
def test_who_has_no_counters_is_not_asked_again_and_who_lost_a_disk_is(
    error: str, times: int
) -> None:
    asked = []

    class Refuses(ModelTarget):
        def request(self, message: Message) -> Message:
            if message["op"] != "stats":
                return super().request(message)
            asked.append(message)
            return {"ok": False, "error": error}

    campaign(Factory("refuses", Refuses), count=3, ops=5, seed=1, oracles=MODEL)
    assert len(asked) == times


def test_a_failure_is_short_and_explained() -> None:
    result = campaign(
        Factory("deaf", Deaf, {}, Deaf.knobs),
        count=100,
        ops=40,
        seed=2,
        oracles=MODEL,
        crashes=False,
    )
    assert result.verdict == "fail"
    failure = result.failures[0]
    assert failure.trace.operations <= 4 and failure.before > 4
    words = "\n".join(failure.verdict.words(failure.trace))
    assert (
        "written by operation" in words
        and "expected" in words
        and "clause    Read: a view" in words
    )
    again = campaign(
        Factory("deaf", Deaf, {}, Deaf.knobs),
        count=100,
        ops=40,
        seed=2,
        oracles=MODEL,
        crashes=False,
    )
    assert again.failures[0].trace.events == failure.trace.events


def test_json_and_junit() -> None:
    result = campaign(
        Factory("deaf", Deaf, {}, Deaf.knobs), count=100, ops=40, seed=2, oracles=MODEL
    )
    found = json.loads(json.dumps(machine.as_json(result)))
    keys = {
        "target",
        "verdict",
        "seed",
        "traces",
        "operations",
        "crashes",
        "seconds",
        "skipped",
        "failures",
    }
    assert keys <= set(found)
    assert {"trace", "operations", "at", "class", "clause", "expected", "actual"} <= set(
        found["failures"][0]
    )
    assert found["skipped"] == ["device", "scrub"]
    assert machine.as_junit(result).count("<failure") == len(grouped(result.failures))


def test_what_never_happened_is_a_row() -> None:
    result = campaign(Factory("model", ModelTarget), count=3, ops=20, seed=1, oracles=MODEL)
    assert any(times == 0 for *_, times in summary.coverage(result))
    result.coverage["revert", "no-space"] += 1
    assert ("write", "no-space", 0) in summary.coverage(result)
    result.coverage["revert", "no-space"] -= 1
    rows = {(op, outcome): times for op, outcome, times in summary.coverage(result)}
    assert rows["write", "ok"] > 0 and ("write", "no-space") not in rows, "it is never full"
    assert not any(op == "fail" for op, _ in rows), "not declared"


def test_an_operation_cut_short_is_followed_by_a_crash() -> None:
    class Cut(ModelTarget):
        def request(self, message: Message) -> Message:
            if message["op"] in ("write", "crash") and "cut" in message:
                raise PowerCut
            return super().request(message)

    cut = {"after": 1, "seed": 0}
    trace = drive(
        Cut({}), [PROGRAM[0], {**PROGRAM[1], "cut": cut}, {"op": "read", "lba": 0, "count": 1}]
    )
    assert [event["op"] for event in trace.events] == ["create", "write", "crash", "read"]
    trace = drive(Cut({}), [PROGRAM[0], {**PROGRAM[1], "cut": cut}, {"op": "crash", "cut": cut}])
    assert [event["op"] for event in trace.events] == ["create", "write", "crash", "crash"]
    assert [event["result"] is None for event in trace.events] == [False, True, True, False]


def test_targets_in_process_may_do_anything() -> None:
    class Raises(ModelTarget):
        def request(self, message: Message) -> Message:
            if message["op"] == "write":
                raise KeyError("lba")
            return super().request(message)

    class Lies(ModelTarget):
        def request(self, message: Message) -> Any:
            return None if message["op"] == "write" else super().request(message)

    class Explains(ModelTarget):
        def request(self, message: Message) -> Message:
            if message["op"] == "write":
                return {"ok": False, "error": "io-error", "message": "page 7\nis damaged"}
            return super().request(message)

    trace = drive(Raises({}), PROGRAM)
    assert (
        trace.events[-1]["failure"]["kind"] == "exit"
        and "KeyError" in trace.events[-1]["failure"]["message"]
    )
    assert judge([trace], MODEL)[0].kind == "exit"
    trace = drive(Lies({}), PROGRAM)
    assert trace.events[-1]["failure"]["kind"] == "protocol"
    trace = drive(Explains({}), PROGRAM)
    failure = trace.events[-1]["failure"]
    assert failure["kind"] == "protocol"
    expected = "'io-error': page 7\\nis damaged (this error has no code in the contract)"
    assert failure["message"] == expected


def test_oracles_that_disagree_make_it_inconclusive() -> None:
    trace = drive(ModelTarget({}), PROGRAM)
    other = {"other": lambda traces: [Opinion(1) for _ in traces]}
    verdict = judge([trace], MODEL | other)[0]
    assert verdict.verdict == "inconclusive" and "disagree" in verdict.reason
    unsure = {"other": lambda traces: [Opinion(None, "no Java") for _ in traces]}
    verdict = judge([trace], unsure)[0]
    assert verdict.verdict == "inconclusive" and "no Java" in verdict.reason


def test_a_judge_that_gives_up_now_and_then_is_counted_and_the_others_decide() -> None:
    asked = count()
    gives_up = [
        {"other": lambda traces: [Opinion(None, "too many disks") for _ in traces]},
        {"other": lambda traces: [Opinion(None, "hard" * (next(asked) == 3)) for _ in traces]},
    ]
    trace, fine = drive(ModelTarget({}), PROGRAM), drive(ModelTarget({}), PROGRAM)
    verdict = judge([trace], MODEL | gives_up[0])[0]
    assert (verdict.verdict, verdict.undecided) == ("pass", ("other",))
    assert verdict.reason == "other: too many disks"
    trace.events[1]["result"] = {"ok": False, "error": "data-lost"}
    assert judge([trace], MODEL | gives_up[0])[0].verdict == "fail"
    never, once = (
        Campaign(
            "model",
            1,
            judged={n: (fine, judge([fine], MODEL | more)[0]) for n in range(5)},
        )
        for more in gives_up
    )
    assert (never.verdict, once.verdict) == ("inconclusive", "pass")
    assert "1 trace undecided by other" in summary.figures(once)


HELLO = {"block_size": 512, "crash_profile": "ack", "capabilities": []}
OK = {"ok": True}
START: list[Event] = [
    {"op": "create", "blocks": 4, "result": OK},
    {"op": "write", "lba": 0, "tags": [1, 2], "result": OK},
    {"op": "snapshot", "name": "s", "result": OK},
    {"op": "write", "lba": 0, "tags": [3], "result": OK},
]


def read(*tags: int, **more: Any) -> Event:
    return {
        "op": "read",
        "lba": 0,
        "count": len(tags),
        **more,
        "result": {"ok": True, "tags": list(tags)},
    }


REJECTED: dict[str, tuple[list[Event], str, str]] = {
    "stale": ([read(1, 2)], "stale", "operation 1: write 0: 1 2"),
    "lost": (
        [{"op": "crash", "result": OK}, read(1, 2)],
        "lost-acknowledgement",
        "snapshot s holds it",
    ),
    "bleed": ([read(3, 2, view="s")], "snapshot-bleed", "operation 3"),
    "zeroed": (
        [{"op": "write", "lba": 1, "tags": [4], "result": OK}, {**read(0), "lba": 1}],
        "stale",
        "",
    ),
    "foreign": ([read(9, 2)], "foreign", "no operation of this trace wrote it"),
    "misplaced": ([read(3, 3)], "misplaced", "operation 3"),
    "resurrected": (
        [{"op": "unmap", "lba": 0, "count": 1, "result": OK}, read(3, 2)],
        "resurrected",
        "operation 3",
    ),
    "refused": (
        [
            {
                "op": "write",
                "lba": 3,
                "tags": [5, 6],
                "result": {"ok": False, "error": "out-of-range"},
            },
            {**read(5), "lba": 3},
        ],
        "refused-write",
        "operation 4",
    ),
    "torn": (
        [
            {
                **read(-1),
                "result": {
                    "ok": True,
                    "tags": [-1],
                    "found": [{"lba": 0, "kind": "torn", "detail": "sectors 0-3 tag 3, 4-7 tag 1"}],
                },
            }
        ],
        "torn",
        "",
    ),
    "missing refusal": ([{"op": "snapshot", "name": "s", "result": OK}], "missing-refusal", ""),
    "wrong code": (
        [{"op": "delete", "name": "t", "result": {"ok": False, "error": "out-of-range"}}],
        "wrong-refusal",
        "",
    ),
    "lost snapshot": (
        [{"op": "delete", "name": "s", "result": {"ok": False, "error": "no-such-snapshot"}}],
        "lost-snapshot",
        "taken by operation 2",
    ),
    "snapshot back": (
        [
            {"op": "delete", "name": "s", "result": OK},
            {"op": "crash", "result": OK},
            {"op": "revert", "name": "s", "result": OK},
        ],
        "resurrected-snapshot",
        "deleted by operation 4",
    ),
    "unopenable": (
        [{"op": "crash", "result": {"ok": False, "error": "data-lost"}}],
        "unopenable",
        "",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_classes(case: str) -> None:
    events, kind, source = REJECTED[case]
    trace = Trace(HELLO, START + events)
    verdict = judge([trace], MODEL)[0]
    assert verdict.verdict == "fail" and verdict.at == len(trace.events) - 1
    assert verdict.kind == kind, verdict
    assert source in verdict.source, verdict
    assert verdict.clause and verdict.expected and verdict.actual


class Full(ModelTarget):
    """It has no space for any write."""

    def request(self, message: Message) -> Message:
        if message["op"] == "write" and not faults_of(self._states[0], message):
            return {"ok": False, "error": "no-space"}
        return super().request(message)


def test_a_target_that_refuses_everything_was_not_tested() -> None:
    result = campaign(Factory("full", Full), count=40, ops=30, seed=1, oracles=MODEL)
    assert result.verdict == "inconclusive" and not result.failures
    assert "too little succeeded: 0 of " in result.reason and "no-space" in result.reason


class Promising(Full):
    """And yet it promises space in the answer to `create`."""

    def request(self, message: Message) -> Message:
        response = super().request(message)
        return {**response, "holds": 4} if message["op"] == "create" else response


def test_a_target_that_has_promised_space_must_not_refuse_for_want_of_it() -> None:
    result = campaign(Factory("promising", Promising), count=40, ops=30, seed=1, oracles=MODEL)
    assert {failure.verdict.kind for failure in result.failures} == {"false-no-space"}
    assert "the target holds 4" in result.failures[0].verdict.expected


class Leaking(ModelTarget):
    """Its scrub finds a leak once a snapshot was deleted."""

    leaked = False

    def request(self, message: Message) -> Message:
        if message["op"] == "scrub":
            return {"ok": True, "problems": ["page 7 is in use and not reachable"] * self.leaked}
        response = super().request(message)
        if message["op"] in ("create", "delete") and response["ok"]:
            self.leaked = message["op"] == "delete"
        return response

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.hello = {**self.hello, "capabilities": [*self.hello["capabilities"], "scrub"]}


def test_a_leak_that_scrub_reports_is_a_failure() -> None:
    result = campaign(Factory("leaking", Leaking), count=40, ops=30, seed=1, oracles=MODEL)
    kinds = {failure.verdict.kind for failure in result.failures}
    assert kinds == {"scrub"} and "page 7" in result.failures[0].verdict.actual
    ops = {event["op"] for event in result.failures[0].trace.events}
    assert ops <= {"create", "snapshot", "delete", "scrub"}


class WrongOnce(ListDisk):
    """Takes two requests at a time, and gives one wrong read in its life."""

    reads = 0

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.hello |= {"protocol": 2, "in_flight": 2, "atomic": "request"}

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        """Answer at once."""
        answer = self.request(message)
        if message["op"] == "read" and answer["ok"]:
            WrongOnce.reads += 1
            if WrongOnce.reads == 12:
                answer["data"] = b"\1" * len(answer["data"])
        done(answer)


def test_a_trace_that_never_fails_again_ends_where_it_failed() -> None:
    WrongOnce.reads = 0
    factory = Factory("wrong-once", WrongOnce, seconds=10)
    (failure,) = campaign(factory, count=20, ops=30, seed=1, oracles=MODEL).failures
    assert failure.failed == 0 < failure.repeats and failure.unfinished
    assert failure.trace.overlapping
    assert sum(event["op"] == "read" for event in failure.trace.events) <= 12
    assert failure.trace.operations < failure.before
    assert judge([failure.trace], MODEL)[0].verdict == "fail"
