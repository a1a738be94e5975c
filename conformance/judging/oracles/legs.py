"""The lines of a trace for specs/TraceRedundancy.tla: for each leg what became of its components,
and what was read and written there.
"""

from collections.abc import Iterator
from typing import Any

from conformance.contract.trace import Event, Trace

Line = dict[str, Any]
Place = tuple[
    int, int | None
]  # index of the operation, and of the event inside it, None for the operation itself

LEGS = ("performance", "capacity")
CLAUSES = {  # event -> its rule, in the words of specs/Redundancy.tla
    "members": "a disk opens with the components and the spares that it was left with; "
    "a component that lacks something is not active",
    "fail": "Fail: what fails is a component that can be reached, or a spare",
    "return": "Return: a device that comes back was absent, and is stale if it missed anything",
    "replace": "Replace: a new device takes the place of one that will not come back",
    "rebuild": "Rebuild: a degraded member is rebuilt on a spare at once, "
    "an absent one when the repair timer has run out",
    "missed": "Put: a component misses each write that could not reach it",
    "resync": "Fetch and Resync: data is copied from components that do not lack it",
    "active": "CaughtUp: a component is active once it lacks nothing",
    "read": "NeverStale: a component is read only where it lacks nothing",
    "write": "Write: a write reaches every component that can be reached",
    "submit": "Write: a written record can be read",
}
EVENTS = frozenset(CLAUSES)
COMMANDS = frozenset(("fail", "return", "replace"))
ALSO = frozenset(("checkpoint_nodes", "checkpoint_commit"))  # LogStructuredDisk's own


def lines(trace: Trace) -> Iterator[tuple[list[Line], list[Place]]]:
    """Yield for each leg with events: a header, the events, and the place of each in the trace."""
    for leg in LEGS:
        found = list(_events(trace, leg))
        if trace.geometry is not None and any(_tells(line) for line, _ in found):
            yield (
                [
                    _header(trace.geometry, leg, [line for line, _ in found]),
                    *(line for line, _ in found),
                ],
                [place for _, place in found],
            )


def _header(geometry: Event, leg: str, events: list[Line]) -> Line:
    k, m = geometry["k"], geometry["m"]
    own = [line for line in events if line.get("leg", leg) == leg]
    stripes = sorted({stripe for line in own for stripe in _stripes(line)})
    return {
        "trace": 1,
        "leg": leg,
        "k": 1 if leg == "performance" else k,
        "members": k + m,
        "devices": geometry["devices"],
        "components": m + 1 if leg == "performance" else k + m,
        "timer": geometry["timer"],
        "stripes": stripes,
    }


def _events(trace: Trace, leg: str) -> Iterator[tuple[Line, Place]]:
    for index, event in enumerate(trace.events):
        if "failure" in event:
            return
        if event["op"] == "tick":
            yield {"event": "tick", "seconds": event["seconds"]}, (index, None)
        for number, inside in enumerate(event.get("events", ())):
            if _concerns(inside, leg):
                yield inside, (index, number)
        if event["op"] in COMMANDS and event["result"] is None:
            yield {"event": "cut", "device": event["device"]}, (index, None)


def _concerns(inside: Event, leg: str) -> bool:
    """Return whether an event is followed on a leg.

    A member resyncs as one: both legs are told of it.
    """
    match inside["event"]:
        case "resync":
            return True
        case "submit":
            return leg == "performance"
        case event:
            return event in EVENTS | ALSO and inside.get("leg", leg) == leg


def _tells(line: Line) -> bool:
    """Return whether it says that not all was active, or was about to change."""
    if line["event"] == "members":
        return any(state != "active" for _, state in line["members"])
    return line["event"] not in ALSO and line["event"] not in ("submit", "tick")


def _stripes(line: Line) -> Iterator[int]:
    yield from line.get("stripes", ())
    yield from line.get("living", ())
    yield from line.get("pages", ())
    yield from (segment for segment, _ in line.get("usage", ()))
    match line["event"]:
        case "resync":
            yield line["stripe"]
        case "submit":
            yield -line["sequence"]
