"""The engine's inner events where requests overlap, followed by TLC: honest traces, planted bugs,
and changed events.
"""

import copy
import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from conformance.contract import trace as traces
from conformance.contract.trace import Event, Trace
from conformance.judging.oracles import inner, inside_order
from crosscheck.inner_traces import overlapping

BUGS = {  # whether it needs write-back
    "group-acknowledged-early": False,
    "group-out-of-order": False,
    "write-happens-in-halves": False,
    "shown-before-durable": False,
    "flush-joins-earlier": True,
    "unmap-happens-late": False,
}
SHAPES: tuple[dict[str, Any], ...] = (
    {"layout": "mirror"},
    {"layout": "raid5-2+1", "segment_blocks": 2, "batch": True},
)


@pytest.fixture(scope="module")
def honest() -> list[Trace]:
    return [
        trace
        for shape, write_back in product(SHAPES, (False, True))
        for trace in overlapping("refmodel", range(4), write_back=write_back, **shape)
    ]


def told(trace: Trace, name: str) -> Iterator[tuple[list[Event], Event]]:
    """Return each event of that name while requests were in flight, with the list that it is in."""
    for line in trace.inside:
        for event in line["events"]:
            if event["event"] == name:
                yield line["events"], event


def dropped(name: str) -> Callable[[Trace], None]:
    def change(trace: Trace) -> None:
        events, event = next(told(trace, name))
        events[:] = [one for one in events if one is not event]

    return change


def other(name: str, field: str, value: Callable[[Any], object]) -> Callable[[Trace], None]:
    def change(trace: Trace) -> None:
        event = next(
            one for _, one in told(trace, name) if field in one and value(one[field]) != one[field]
        )
        event[field] = value(event[field])

    return change


def answered_before(trace: Trace) -> None:
    """Answer a write when its record is in the log, and not yet applied."""
    line, submit = next(
        (line, event)
        for line in trace.inside
        for event in line["events"]
        if event["event"] == "submit" and event["op"] == "write"
        if (trace.events[event["id"]]["answered"] or 0) > line["at"]
    )
    events = line["events"]
    at = events.index(submit)
    moved = events[at + 1 :]
    events[at + 1 :] = []
    answered = trace.events[submit["id"]]["answered"]
    later = trace.inside[trace.inside.index(line) + 1 :]
    behind = [one for one in later if one["at"] <= answered]
    for one in behind:
        moved += one["events"]
        one["events"] = []
    trace.inside.append({"op": "inside", "at": answered + 1, "events": moved})
    trace.inside.sort(key=lambda one: one["at"])


def refused(trace: Trace) -> None:
    """Report a change that took effect as refused."""
    id = next(event["id"] for _, event in told(trace, "submit") if event["op"] == "write")
    trace.events[id]["result"] = {"ok": False, "error": "no-space"}


def misread(trace: Trace) -> None:
    """Let a read return what the block never held."""
    read = next(
        event
        for event in trace.events
        if event["op"] == "read" and event["result"] and event["result"]["ok"]
    )
    read["result"]["tags"] = [7777] * read["count"]


CHANGES = {
    "a record is left out": dropped("submit"),
    "a group is not flushed": dropped("log_append"),
    "an operation does not take effect": dropped("apply"),
    "a chunk is destaged twice": other("destage", "mbas", lambda mbas: [mbas[0]] * len(mbas)),
    "a record is of another request": other("submit", "id", lambda id: id + 1),
    "a record is of another block": other("submit", "count", lambda count: count + 1),
    "a number is left out": other("submit", "sequence", lambda sequence: sequence + 1),
    "an MBA is given out again": other("apply", "mbas", lambda mbas: [1] * len(mbas)),
    "a checkpoint holds another position of the log": other(
        "freeze", "sequence", lambda sequence: sequence - 1
    ),
    "a write is answered before it takes effect": answered_before,
    "what is refused takes effect": refused,
    "a read returns what never was": misread,
}


def in_flight(trace: Trace) -> int:
    """Return how many records came to the log one after another, without one taking effect."""
    names = [one["event"] for line in trace.inside for one in line["events"]]
    told = "".join({"submit": "s", "apply": "a"}.get(name, "") for name in names)
    return max(map(len, told.split("a")))


def rejected(some: list[Trace]) -> list[bool]:
    opinions = inner.judge(some)
    assert not [opinion.unsure for opinion in opinions if opinion.unsure]
    return [opinion.at is not None for opinion in opinions]


def test_the_engine_is_a_behaviour_of_its_spec(honest: list[Trace]) -> None:
    assert all(trace.overlapping and trace.geometry for trace in honest)
    names = {one["event"] for trace in honest for line in trace.inside for one in line["events"]}
    assert names >= {"submit", "log_append", "apply", "freeze", "reclaim", "destage"}
    assert max(map(in_flight, honest)) >= 3
    assert rejected(honest) == [False] * len(honest)


def test_changed_events_are_no_behaviour(honest: list[Trace]) -> None:
    changed = []
    for change in CHANGES.values():
        broken = copy.deepcopy(honest[0])
        change(broken)
        changed.append(broken)
    assert dict(zip(CHANGES, rejected(changed), strict=True)) == dict.fromkeys(CHANGES, True)


def test_planted_bugs_are_found_inside() -> None:
    batches = {
        bug: overlapping(f"refmodel:plant={bug}", range(6), layout="mirror", write_back=write_back)
        for bug, write_back in BUGS.items()
    }
    verdicts = iter(rejected([trace for some in batches.values() for trace in some]))
    found = {bug for bug, some in batches.items() for _ in some if next(verdicts)}
    assert found == set(BUGS)


def test_what_happened_inside_is_written_and_read(honest: list[Trace], tmp_path: Path) -> None:
    traces.write(honest[0], tmp_path / "t.jsonl")
    again = traces.read(tmp_path / "t.jsonl")
    for read, written in ((again.inside, honest[0].inside), (again.events, honest[0].events)):
        assert read == json.loads(json.dumps(written))


def test_moments_are_in_the_order_of_the_count(honest: list[Trace]) -> None:
    for trace in honest:
        kinds = [kind for kind, _, _ in inside_order.moments(trace)]
        assert kinds[0] == "alone" and kinds.count("inside") == len(trace.inside)
