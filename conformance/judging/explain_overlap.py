"""Verdicts on traces whose requests overlap: which requests have no order, on a time line."""

from dataclasses import replace

from conformance.contract.trace import Event, Trace, line
from conformance.judging.explain import CLAUSES, PASS, Verdict, unopenable
from conformance.judging.oracles import Opinion
from conformance.judging.orders.smallest_core import core
from conformance.judging.orders.steps import placed
from conformance.judging.verdict import NO_ORDER

WIDTH = 40  # characters of the longest bar


def overlapping_verdict(trace: Trace, outcome: Opinion) -> Verdict:
    """Return the verdict on a trace of version 2, on what the oracles say; `drawn` explains it."""
    failed = next((i for i, event in enumerate(trace.events) if "failure" in event), None)
    if outcome.at is None and failed is not None:
        return _of_dialogue(trace, failed)
    if outcome.unsure:
        return Verdict("inconclusive", reason=outcome.unsure)
    if outcome.at is None:
        return PASS
    event = trace.events[outcome.at]
    if event["op"] == "create":
        return Verdict("inconclusive", 0, reason="the target creates no disk")
    if event["op"] in ("crash", "restart") and not (event["result"] or {}).get("ok"):
        return unopenable(trace, outcome.at)
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

    It takes up to a second, so the search for a shorter trace does without it."""
    if verdict.kind != NO_ORDER or verdict.at is None:
        return verdict
    if not trace.overlapping:  # a step of it may come apart from its request
        trace = replace(trace, events=placed(trace.events))
    needed, smallest, about = core(trace, verdict.at)
    several = len(needed) > 1
    actual = f"none exists for {len(needed)} requests" if several else "none exists for one request"
    actual += f" that concern{'' if several else 's'} {about}" if about else ""
    actual += ", of which none can be left out" if smallest and several else ""
    return replace(verdict, actual=actual, reason="\n".join(bars(trace, needed)))


def _of_dialogue(trace: Trace, at: int) -> Verdict:
    failure = trace.events[at]["failure"]
    return Verdict(
        "fail",
        at,
        failure["kind"],
        CLAUSES["dialogue"],
        "an answer",
        failure["message"],
        reason=failure.get("output", ""),
    )


def bars(trace: Trace, indices: list[int]) -> list[str]:
    """Return the requests as bars from call to answer, one line each.

    `|-->` has no answer: it was cut.
    """
    events = [trace.events[index] for index in indices]
    times = sorted({time for event in events for time in _times(event)})
    column = {time: round(at * WIDTH / max(1, len(times) - 1)) for at, time in enumerate(times)}
    rows = []
    for index, event in zip(indices, events, strict=True):
        start, answered = column[event["called"]], event["answered"]
        stop = WIDTH + 1 if answered is None else column[answered]
        bar = " " * start + "|" + "-" * (stop - start - 1) + (">" if answered is None else "|")
        rows.append(f"{bar:{WIDTH + 3}}{index:4}  {line(event)}")
    return rows


def _times(event: Event) -> list[int]:
    return [event["called"], *([] if event["answered"] is None else [event["answered"]])]
