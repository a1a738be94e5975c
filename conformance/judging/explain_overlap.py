"""Verdicts on traces whose requests overlap: which requests have no order, on a time line."""

from dataclasses import replace

from conformance.contract.model import answer_of
from conformance.contract.trace import OVERLAPPING, Event, Trace, line
from conformance.judging.explain import (
    CLAUSES,
    PASS,
    Verdict,
    explain,
    no_answer,
    unopenable,
    unwritten,
)
from conformance.judging.oracles import Opinion, model
from conformance.judging.orders.smallest_core import Core, core
from conformance.judging.orders.steps import CHANGE_NOTHING, by_block, placed
from conformance.judging.origins import covers, writers_of
from conformance.judging.verdict import NO_ORDER

WIDTH = 40  # characters of the longest bar
OF_THE_REQUEST = ("out-of-range", "bad-request")  # faults of a request, whatever is on the disk
MAY_CHANGE = ("ok", "cut", "unknown-outcome")  # answers
NOTHING: Event = {"op": "clean", "result": {"ok": True}}  # it changes no view


def overlapping_verdict(trace: Trace, outcome: Opinion) -> Verdict:
    """Return the verdict on a trace of version 2, on what the oracles say; `drawn` explains it."""
    failed = next((i for i, event in enumerate(trace.events) if "failure" in event), None)
    if outcome.at is None and failed is not None:
        return no_answer(trace, failed)
    if outcome.unsure:
        return Verdict("inconclusive", reason=outcome.unsure)
    if outcome.at is None:
        return PASS
    event = trace.events[outcome.at]
    if event["op"] == "create":
        return Verdict("inconclusive", 0, reason="the target creates no disk")
    if event["op"] in ("crash", "restart") and not (event["result"] or {}).get("ok"):
        return unopenable(trace, outcome.at)
    alone = unwritten(trace, outcome.at) or _whatever_else_happened(trace, outcome.at)
    if alone is not None:
        return alone
    return Verdict(
        "fail",
        outcome.at,
        NO_ORDER,
        CLAUSES["overlap"],
        "an order of these requests, each between its call and its answer, that explains them",
        "none exists",
    )


def drawn(trace: Trace, verdict: Verdict) -> Verdict:
    """Return the verdict with a time line of the requests that have no order; another one as it is.

    If these requests do not overlap, it is what is wrong with the answer to the last one of them.
    It takes up to a second, so the search for a shorter trace does without it."""
    if verdict.kind != NO_ORDER or verdict.at is None:
        return verdict
    apart = not trace.overlapping or by_block(trace)  # a step may come apart from its request
    if not trace.overlapping:
        trace = replace(trace, events=placed(trace.events))
    found = core(trace, verdict.at)
    single = found.about.startswith("block")  # steps of one block have nothing to come apart from
    in_turn = None if apart and not single else _in_turn(trace, verdict.at, found)
    if in_turn is not None:
        return explain(in_turn, verdict.at)
    needed, smallest, about, concerned = found
    several = len(needed) > 1
    actual = f"none exists for {len(needed)} requests" if several else "none exists for one request"
    actual += f" that concern{'' if several else 's'} {about}" if about else ""
    actual += ", of which none can be left out" if smallest and several else ""
    others = _read_writes(trace, [concerned[index] for index in needed]) - set(needed)
    shown = {*needed, *others, *_openings(trace, min(needed), max(needed))}
    block = int(about.removeprefix("block ")) if single else None
    rows = bars(trace, sorted(shown), block)
    for at, index in enumerate(sorted(shown)):
        rows[at] += " (whether it happened or not)" if index in others else ""
    return replace(verdict, actual=actual, reason="\n".join(rows), lba=block)


def _read_writes(trace: Trace, needed: list[Event]) -> set[int]:
    """Return the last writes of what these requests read."""
    found = set()
    for event in needed:
        tags = (event["result"] or {}).get("tags", []) if event["op"] == "read" else []
        for lba, tag in enumerate(tags, event["lba"] if tags else 0):
            before = writers_of(trace, len(trace.events), tag) if tag > 0 else []
            writers = [
                index
                for index, write in before
                if covers(write, lba) and write["called"] < event["answered"]
            ]
            found.update(writers[-1:])
    return found


def _whatever_else_happened(trace: Trace, at: int) -> Verdict | None:
    """Return the verdict on an answer that is wrong in every order of the other requests.

    It depends on the size of the disk, on the name, or on the devices only."""
    event = _unplaced(trace.events[at])
    answer = answer_of(event)
    if answer == "data-lost":  # also if there is no such snapshot
        event.pop("view", None)
    events = [NOTHING if one["op"] in OVERLAPPING else _unplaced(one) for one in trace.events[:at]]
    alone = replace(trace, events=[*events, event], inside=[])
    if model.judge_one(alone).at != at:
        return None
    verdict = explain(alone, at)
    due = answer == "ok" and any(code in verdict.expected for code in OF_THE_REQUEST)
    return verdict if due or answer in (*OF_THE_REQUEST, "data-lost") else None


def _unplaced(event: Event) -> Event:
    return {key: value for key, value in event.items() if key not in ("called", "answered")}


def _in_turn(trace: Trace, at: int, found: Core) -> Trace | None:
    """Return a trace of version 1 that fails at the same event, if what has no order came in turn:
    each request was answered before the next one was called.

    Events that are not about it change nothing in that trace, so that the others keep their
    numbers."""
    needed = set(found.needed)
    kept = {
        index: event
        for index, event in found.concerned.items()
        if index in needed or event["op"] not in CHANGE_NOTHING and answer_of(event) in MAY_CHANGE
    }
    late = any(answer_of(event) == "unknown-outcome" for event in kept.values())
    effects = [
        {**event, "called": event["answered"]} if event["op"] == "crash" else event
        for event in kept.values()
        if event["op"] != "crash" or event["answered"] is not None  # else another crash follows
    ]
    if late or not Trace(trace.hello, effects).in_turn:
        return None
    events = [_unplaced(kept[index]) if index in kept else NOTHING for index in range(at + 1)]
    alone = replace(trace, events=events, inside=[])
    return alone if model.judge_one(alone).at == at else None


def _openings(trace: Trace, first: int, last: int) -> list[int]:
    """Return the power cuts and restarts between two events."""
    return [i for i in range(first, last) if trace.events[i]["op"] in ("crash", "restart")]


def bars(trace: Trace, indices: list[int], around: int | None = None) -> list[str]:
    """Return the requests as bars from call to answer, one line each.

    `|-->` has no answer: it was cut. `around` is as in `line`.
    """
    events = [trace.events[index] for index in indices]
    times = sorted({time for event in events for time in _times(event)})
    column = {time: round(at * WIDTH / max(1, len(times) - 1)) for at, time in enumerate(times)}
    rows = []
    for index, event in zip(indices, events, strict=True):
        start, answered = column[event["called"]], event["answered"]
        stop = WIDTH + 1 if answered is None else column[answered]
        bar = " " * start + "|" + "-" * (stop - start - 1) + (">" if answered is None else "|")
        rows.append(f"{bar:{WIDTH + 3}}{index:4}  {line(event, around)}")
    return rows


def _times(event: Event) -> list[int]:
    return [event["called"], *([] if event["answered"] is None else [event["answered"]])]
