"""What a target promises beyond the contract of the specs: `scrub` finds nothing, and `holds`
blocks fit.

A target that declares `scrub` verifies itself; a problem that it reports while every device is
there is a failure. Some devices may go wrong meanwhile, no more than it tolerates: then what it
repairs is no problem, and nothing is beyond repair. A target that declares `holds` (in `hello` or
in the answer to `create`) must not answer `no-space` while all views together hold at most that
many different blocks, those of the request counted besides.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from conformance.contract import model
from conformance.contract.devices import beyond_tolerance
from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging.orders import search
from conformance.judging.orders.configurations import held
from conformance.judging.orders.steps import placed, until
from conformance.judging.orders.walk import UNSEEN

CHANGES = ("write", "unmap", "snapshot", "revert")  # the operations that may need space


class Broken(NamedTuple):
    """A promise that was not kept: by which event, the class of failure, and the two sides in
    words.
    """

    at: int
    kind: str
    expected: str
    actual: str


def broken(trace: Trace) -> Broken | None:
    """Return the first promise that the trace does not keep, or None.

    What the trace answers has to be what the contract of the specs allows."""
    promised = trace.events[0].get("result") or {}
    most = promised.get("holds", trace.hello.get("holds"))
    scrubbed = _scrubbed(trace)
    refused = _refused(trace, most) if most is not None else None
    found = [one for one in (scrubbed, refused) if one is not None]
    return min(found, key=lambda one: one.at, default=None)


def _scrubbed(trace: Trace) -> Broken | None:
    """The first scrub, in `settle` or by itself, that found problems while no device was away."""
    if not any((event["result"] or {}).get("problems") for event in trace.events):
        return None
    states = model.init(trace.hello)
    faulty: set[int] = set()  # devices that are there, and go wrong or did
    for index, event in enumerate(trace.events):
        if event["op"] in OVERLAPPING:  # devices change by what is sent alone
            continue
        if _begins_fault(event, states):
            faulty.add(event["device"])
        elif event["op"] == "replace" or event["op"] == "fail" and "fault" not in event:
            faulty.discard(event["device"])
        problems = (event["result"] or {}).get("problems")
        if problems and all(
            state.devices.failed <= faulty and not beyond_tolerance(state) for state in states
        ):
            said = "; ".join(problems[:3]) + ("; ..." if len(problems) > 3 else "")
            return Broken(index, "scrub", "no problems: every device is there", said)
        states = _after(states, event)
        if not states:
            return None
    return None


def _begins_fault(event: Event, states: tuple[model.State, ...]) -> bool:
    """Whether a device that was there has a fault from now on."""
    return (
        "fault" in event
        and model.answer_of(event) == "ok"
        and not any(event["device"] in state.devices.failed for state in states)
    )


def _after(states: tuple[model.State, ...], event: Event) -> tuple[model.State, ...]:
    """The states after the event; none if they are too many to follow."""
    try:
        return model.step(states, event)
    except model.Undecided:
        return ()


def _refused(trace: Trace, most: int) -> Broken | None:
    """The first request that was refused for want of space while so few blocks were held."""
    suspects = [
        index
        for index, event in enumerate(trace.events)
        if event["op"] in CHANGES and (event["result"] or {}).get("error") == "no-space"
    ]
    if not suspects:
        return None
    repeats = _repeats(trace)
    before = _before_each(trace, suspects)
    for index in suspects:
        most_held = next(before)
        if most_held is None:
            continue  # the contract does not allow what came before, or the search gave up
        most_held += repeats + _arriving(trace, index)
        if most_held <= most:
            event = trace.events[index]
            return Broken(
                index,
                "false-no-space",
                f"ok: {most_held} blocks at most, those of the request included; "
                f"the target holds {most}",
                f"no-space ({event['result'].get('message', '')})",
            )
    return None


def _before_each(trace: Trace, suspects: list[int]) -> Iterator[int | None]:
    """How many blocks all views may have held when each of these requests was called, but for what
    was in flight then.
    """
    if trace.overlapping:
        events = placed(trace.events)
        for index in suspects:
            before = until(events, events[index]["called"] - 1)
            yield search.judge(replace(trace, events=before)).held
        return
    states, done = model.init(trace.hello), 0
    for index in suspects:
        for event in trace.events[done:index]:
            states = states and _after(states, event)
        done = index
        yield max((held(state, UNSEEN) for state in states), default=None)


def _arriving(trace: Trace, index: int) -> int:
    """How many blocks the request brings, and the writes that were in flight with it."""
    if not trace.overlapping:
        return len(trace.events[index].get("tags", ()))
    events = placed(trace.events)
    event = events[index]
    together = [
        other
        for other in events
        if other["called"] <= event["answered"]
        and (other["answered"] is None or other["answered"] >= event["called"])
    ]
    return sum(len(one["tags"]) for one in together if one["op"] == "write")


def _repeats(trace: Trace) -> int:
    """How often a tag was written again to the same block: the engine may hold both."""
    written = Counter(
        pair
        for event in trace.events
        if event["op"] == "write"
        for pair in enumerate(event["tags"], event["lba"])
    )
    return sum(times - 1 for times in written.values())
