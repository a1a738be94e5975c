"""What is right of a small overlapping history by definition: all orders are tried; and one that
is cut while a request is answered."""

from typing import Any

from conformance.contract import model
from conformance.contract.trace import OVERLAPPING, Trace
from conformance.judging.orders.steps import parts_of

OK = {"ok": True}


def admitted(trace: Trace) -> bool:
    """Return whether the contract admits some order of what took effect: the definition."""
    by_block = trace.hello.get("atomic") == "block"
    steps = []  # (called, must be done by, never after, event)
    for event in trace.events:
        crash = next(
            (
                other["answered"]
                for other in trace.events
                if other["op"] == "crash" and other["called"] > event["called"]
            ),
            None,
        )
        if event["op"] not in OVERLAPPING:
            steps.append((event["called"], event["answered"], None, event))
            continue
        sure = event["answered"] is not None and model.answer_of(event) != "unknown-outcome"
        for part in parts_of(event, by_block):
            steps.append((event["called"], event["answered"] if sure else None, crash, part))

    tried = set()

    def search(left: frozenset[int], states: model.States) -> bool:
        if (left, states) in tried:
            return False
        tried.add((left, states))
        if all(steps[n][1] is None for n in left):
            return True
        first = min((steps[n][1] for n in left if steps[n][1] is not None), default=None)
        for n in left:
            called, _, never_after, event = steps[n]
            if first is not None and called > first:
                continue
            if event["op"] == "crash":
                rest = frozenset(m for m in left - {n} if steps[m][2] != event["answered"])
                if any(
                    steps[m][1] is not None and steps[m][1] < event["answered"] for m in left - {n}
                ):
                    continue
            else:
                rest = left - {n}
            after = model.step(states, event)
            if after and search(rest, after):
                return True
        return False

    return search(frozenset(range(len(steps))), model.init(trace.hello))


def answered_meanwhile(profile: str, tag: int, recovers: bool) -> Trace:
    """Tag 1 was written; `tag` is read. The first `crash` recovers, or is cut short itself."""
    hello: dict[str, Any] = {
        "name": "t",
        "version": "1",
        "block_size": 512,
        "crash_profile": profile,
        "capabilities": ["crash"],
        "in_flight": 2,
    }
    read = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [tag]}}
    events = [
        {"op": "create", "blocks": 1, "result": OK, "called": 0, "answered": 1},
        {"op": "write", "lba": 0, "tags": [1], "result": OK, "called": 2, "answered": 3},
        {**read, "called": 4, "answered": 6},
        {"op": "crash", "result": OK, "called": 5, "answered": 7}
        if recovers
        else {"op": "crash", "result": None, "called": 5, "answered": None},
        {"op": "crash", "result": OK, "called": 8, "answered": 9},
    ]
    return Trace(hello, events)
