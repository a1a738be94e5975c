"""The engine's inner events, followed by TLC through LogStructuredDisk: honest ones, planted bugs,
and changed events.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from conformance.contract.trace import Event, Trace
from conformance.judging import oracles
from conformance.judging.judge import judge
from conformance.judging.oracles import inner
from crosscheck.inner_traces import generated

BUGS = {  # in so many traces it has to be found
    "victim-freed-early": 42,  # shown by 21 of 200: by none of 42 with a chance of 1 %
    "checkpoint-before-data": 20,
    "dead-segment-reused-early": 12,
    "overwrite-drops-shared": 10,
    "unmap-in-shared-leaf": 30,  # shown by 31 of 200: by none of 30 with a chance of 1 %
    "sequence-starts-again": 3,
    "recovery-miscounts-segments": 20,
    "acknowledged-before-flush": 12,
    "log-truncated-early": 8,
    "record-replayed-twice": 3,
}


LARGEST = 130  # blocks: for the few larger disks TLC takes longer than for all others together


def of_small_disks(target: str, count: int) -> list[Trace]:
    """Generated traces of a target, without those of disks of more than LARGEST blocks."""
    return [trace for trace in generated(target, count) if trace.events[0]["blocks"] <= LARGEST]


@pytest.fixture(scope="module")
def honest() -> list[Trace]:
    """Traces that tell of the inside: a disk that reduces data does not."""
    told = [trace for trace in of_small_disks("refmodel:log-structured", 80) if trace.geometry]
    assert len(told) >= 20
    return told


def first(trace: Trace, event: str) -> Event:
    found: Event = next(
        inside
        for operation in trace.events
        for inside in operation.get("events", ())
        if inside["event"] == event
    )
    return found


def dropped(event: str) -> Callable[[Trace], None]:
    """Return a change: the first event of that name is removed."""

    def change(trace: Trace) -> None:
        gone = first(trace, event)
        for operation in trace.events:
            operation["events"] = [
                inside for inside in operation.get("events", ()) if inside is not gone
            ]

    return change


def other(event: str, field: str, value: Callable[[Any], object]) -> Callable[[Trace], None]:
    """Return a change: another value in the first event of that name where it matters."""

    def change(trace: Trace) -> None:
        for operation in trace.events:
            for inside in operation.get("events", ()):
                if inside["event"] != event or field not in inside:
                    continue
                if value(inside[field]) != inside[field]:
                    inside[field] = value(inside[field])
                    return
        raise StopIteration

    return change


CHANGES = {
    "a record is left out": dropped("submit"),
    "a record is not flushed": dropped("log_append"),
    "an operation does not take effect": dropped("apply"),
    "a checkpoint counts that was not written": dropped("checkpoint_nodes"),
    "a checkpoint counts that was not frozen": dropped("freeze"),
    "a segment is written twice": other("destage", "segment", lambda segment: 0),
    "a chunk is destaged twice": other("destage", "mbas", lambda mbas: [mbas[0]] * len(mbas)),
    "a segment that is in use becomes free": other("free", "segment", lambda segment: segment + 1),
    "an MBA is given out again": other("apply", "mbas", lambda mbas: [1] * len(mbas)),
    "a chunk is dropped that is needed": other("apply", "dropped", lambda mbas: mbas + [2]),
    "an older checkpoint is loaded": other("load", "number", lambda number: number - 1),
    "the usage table is wrong": other(
        "freeze", "usage", lambda usage: [(s, live + 1) for s, live in usage]
    ),
    "a record is replayed that was not the next": other(
        "replay", "sequence", lambda sequence: sequence + 1
    ),
    "a batch is of other blocks": other(
        "submit", "extents", lambda extents: [(lba + 1, count) for lba, count in extents]
    ),
    "a number is left out": other("submit", "sequence", lambda sequence: sequence + 1),
}


def test_the_engine_is_a_behaviour_of_its_spec(honest: list[Trace]) -> None:
    verdicts = judge(honest, {oracles.INNER: inner.judge})
    assert [
        verdict.words(trace)
        for trace, verdict in zip(honest, verdicts, strict=False)
        if verdict.verdict != "pass"
    ] == []


def test_changed_events_are_no_behaviour(honest: list[Trace]) -> None:
    changed: list[Trace] = []
    names: list[str] = []
    for name, change in CHANGES.items():
        for trace in honest:
            broken = copy.deepcopy(trace)
            try:
                change(broken)
            except StopIteration:  # it has no such event
                continue
            if names.count(name) < 5:
                changed.append(broken)
                names.append(name)
    assert set(names) == set(CHANGES)
    found = {
        name
        for name, opinion in zip(names, inner.judge(changed), strict=False)
        if opinion.at is not None
    }
    assert found == set(CHANGES)


def test_planted_bugs_are_found_inside() -> None:
    traces = {bug: of_small_disks(f"refmodel:plant={bug}", count) for bug, count in BUGS.items()}
    opinions = iter(inner.judge([trace for some in traces.values() for trace in some]))
    found = {bug for bug, some in traces.items() for _ in some if next(opinions).inside}
    assert found == set(BUGS)


def test_a_verdict_names_operation_and_event(honest: list[Trace]) -> None:
    trace = copy.deepcopy(
        next(
            trace
            for trace in honest
            if any(
                inside["event"] == "destage"
                for operation in trace.events
                for inside in operation.get("events", ())
            )
        )
    )
    at = next(
        index
        for index, operation in enumerate(trace.events)
        if any(inside["event"] == "destage" for inside in operation.get("events", ()))
    )
    first(trace, "destage")["mbas"] = [10**6]
    [verdict] = judge([trace], {"model": oracles.named("model"), oracles.INNER: inner.judge})
    assert (verdict.verdict, verdict.kind, verdict.at) == ("fail", "inside", at)
    assert '"event": "destage"' in verdict.actual and "LogStructuredDisk" in verdict.actual


def test_an_unknown_event_is_inconclusive(honest: list[Trace]) -> None:
    trace = copy.deepcopy(honest[0])
    trace.events[0]["events"].append({"event": "merge"})
    [verdict] = judge([trace], {oracles.INNER: inner.judge})
    assert verdict.verdict == "inconclusive" and "merge" in verdict.reason


def test_a_trace_without_inner_events_is_passed_over(honest: list[Trace]) -> None:
    trace = copy.deepcopy(honest[0])
    for operation in trace.events:
        operation.pop("events", None)
    assert trace.geometry is None
    assert judge([trace], {oracles.INNER: inner.judge})[0].verdict == "pass"
