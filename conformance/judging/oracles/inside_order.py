"""The order of inner events among the calls and answers of overlapping requests."""

from collections.abc import Iterator
from dataclasses import replace

from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging.oracles.legs import Line, Place
from conformance.judging.oracles.spec_lines import asked
from conformance.judging.orders.steps import timeline


def moments(trace: Trace) -> Iterator[tuple[str, int, Event]]:
    """Yield each `call` and `answer`, and each line `inside`, in their order, with an event's
    index.

    That of a line inside is the last event that was called before. What is sent alone is a moment
    `alone`, since nothing else happens meanwhile. They end where the target failed.
    """
    inside = sorted(trace.inside, key=lambda line: line["at"])
    last = at = position = 0
    for position, answered, index in timeline(trace.events):
        while at < len(inside) and inside[at]["at"] <= position:
            yield "inside", last, inside[at]
            at += 1
        event = trace.events[index]
        if event["op"] not in OVERLAPPING:
            if answered:
                yield "alone", index, event
        elif answered or "failure" not in event:
            yield "answer" if answered else "call", index, event
        last = max(last, index)
        if answered and "failure" in event:
            return
    for line in inside[at:]:
        if line["at"] <= position + 1:  # a trace that was shortened has more
            yield "inside", last, line


def in_turn(trace: Trace) -> tuple[Trace, list[int]]:
    """Return the trace as if what happened inside were operations of their own, named `inside`,
    between what was sent alone; and of each operation, which event of the trace it belongs to.
    """
    events: list[Event] = []
    places: list[int] = []
    for kind, index, event in moments(trace):
        if kind == "inside":
            event = {**event, "result": {"ok": True}}
        elif kind != "alone" and "failure" not in event:
            continue
        events.append(event)
        places.append(index)
    return replace(trace, events=events, inside=[]), places


def disk_lines(trace: Trace, names: frozenset[str]) -> Iterator[tuple[Line, Place]]:
    """Yield the events of these names, and which request was called and answered where."""
    called: dict[int, int] = {}  # index of a request -> its line
    number = 0
    for kind, index, event in moments(trace):
        if kind == "call":
            called[index] = number + 1
            yield {"call": asked(event)}, (index, None)
        elif kind == "answer":
            if "failure" in event:
                return
            yield {"answer": called[index]}, (index, None)
        else:
            if kind == "alone":
                if "failure" in event:
                    return
                yield asked(event), (index, None)
                number += 1
            for at, inside in enumerate(event.get("events", ())):
                if inside["event"] not in names:
                    continue
                line = {key: inside[key] for key in inside if key != "id"}
                if inside.get("id") in called:
                    line["request"] = called[inside["id"]]
                yield line, (index, at)
                number += 1
            continue
        number += 1
