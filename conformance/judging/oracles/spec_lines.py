"""The lines of a trace for the Trace specs of the contract: a header, then a line for each event,
or, where requests overlap, one for each call and each answer.

A failure of the target is no event of the contract: it ends the trace.
"""

from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging.orders.steps import timeline

NEEDED = ("op", "blocks", "lba", "count", "tags", "fua", "view", "name", "device")
Line = dict[str, object]


def sequential(trace: Trace) -> list[Line]:
    """Return the lines for specs/TraceVirtualDisk.tla."""
    lines: list[Line] = [{"trace": 1, "hello": trace.hello}]
    for event in trace.events:
        if "failure" in event:
            break
        lines.append(asked(event))
    return lines


def overlapping(trace: Trace) -> tuple[list[Line], list[int]]:
    """Return the lines for specs/TraceOverlappingDisk.tla, and the index of the event that each is
    of.
    """
    lines: list[Line] = [{"trace": 1, "hello": trace.hello}]
    places: list[int] = []
    called: dict[int, int] = {}
    for _, answered, index in timeline(trace.events):
        event = trace.events[index]
        if "failure" in event:
            if answered:
                break
            continue
        if event["op"] not in OVERLAPPING:
            if not answered:
                continue
            lines.append(asked(event))
        elif answered:
            lines.append({"op": "answer", "call": called[index]})
        else:
            called[index] = len(lines)
            lines.append({"op": "call", "asked": asked(event)})
        places.append(index)
    return lines, places


def asked(event: Event) -> Line:
    """Return the operation and its result."""
    line = {key: event[key] for key in NEEDED if event.get(key) is not None}
    result = event["result"]
    if result is not None:
        line["result"] = {key: result[key] for key in ("ok", "error", "tags") if key in result}
    return line
