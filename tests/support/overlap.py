"""Small overlapping histories by chance, and what is right of them by definition: all orders are
tried.
"""

import random
from collections.abc import Iterator
from typing import Any

from conformance.contract import model
from conformance.contract.trace import Event, Trace
from conformance.judging.overlapping import OVERLAPPING, _parts

OK = {"ok": True}


def history(choose: random.Random, requests: int, blocks: int = 2) -> Trace:
    """Return a history of a disk that takes effect at random moments; some answers are wrong."""
    profile = choose.choice(["ack", "prefix", "block"])
    hello = {
        "name": "t",
        "version": "1",
        "block_size": 512,
        "crash_profile": profile,
        "capabilities": ["unmap", "flush", "snapshot", "delete", "revert", "crash"],
        "atomic": choose.choice(["request", "request", "block"]),
        "in_flight": 4,
    }
    create = {"op": "create", "blocks": blocks, "result": OK, "called": 0, "answered": 1}
    events: list[Event] = [create]
    states = model.step(model.init(hello), create)
    clock, tag = 2, 0
    flying: list[tuple[int, list[Event], list[Any]]] = []

    def effect(number: int) -> None:
        nonlocal states
        index, parts, _ = flying[number]
        part = parts.pop(0)
        flying[number][2].append(settle(part))
        del index

    def settle(part: Event) -> Event:
        """The part takes effect on the first possible state; return the contract's answer."""
        nonlocal states
        for answer in answers(part, states[0]):
            after = model.step(states[:1], {**part, "result": answer})
            if after:
                states = after[:1]
                return answer
        raise AssertionError(part)

    while len(events) <= requests or flying:
        act = choose.random()
        if len(events) <= requests and act < 0.45 and len(flying) < 4:
            request = _request(choose, blocks, tag)
            tag += 10
            event = {**request, "called": clock, "answered": None, "result": None}
            clock += 1
            events.append(event)
            whole = event["op"] not in ("read", "write", "unmap") or model.faults_of(
                states[0], event
            )
            parts = (
                [dict(event)]
                if whole
                else _parts({**event, **_pretend(event)}, hello["atomic"] == "block")
            )
            flying.append((len(events) - 1, parts, []))
        elif flying and act < 0.8:
            number = choose.randrange(len(flying))
            if flying[number][1]:
                effect(number)
        elif flying and act < 0.97:
            number = choose.randrange(len(flying))
            index, parts, given = flying[number]
            while flying[number][1]:
                effect(number)
            events[index]["answered"] = clock
            events[index]["result"] = _joined(events[index], given)
            clock += 1
            flying.pop(number)
        elif choose.random() < 0.3 and len(events) <= requests:
            after = model.step(states, {"op": "crash", "result": OK})
            states = (choose.choice(after),)
            flying.clear()
            events.append({"op": "crash", "called": clock, "answered": clock + 1, "result": OK})
            clock += 2
    for event in events[1:]:
        if event["op"] == "read" and event["result"] and event["result"]["ok"]:
            if choose.random() < 0.15:
                tags = [choose.choice([0, *range(0, tag, 10)]) for _ in event["result"]["tags"]]
                event["result"] = {"ok": True, "tags": tags}
        elif event["answered"] and choose.random() < 0.05:
            event["result"] = {"ok": False, "error": "unknown-outcome"}
    return Trace(hello, events)


def _request(choose: random.Random, blocks: int, tag: int) -> Event:
    lba = choose.randrange(blocks)
    count = choose.choice([1, min(2, blocks - lba)])
    op = choose.choice(
        ["read"] * 4 + ["write"] * 4 + ["unmap", "flush", "snapshot", "delete", "revert"]
    )
    if op == "write":
        return {"op": op, "lba": lba, "tags": [tag + n + 1 for n in range(count)]}
    if op == "read":
        view = choose.choice([None, None, "a", "b"])
        return {"op": op, "lba": lba, "count": count} | ({"view": view} if view else {})
    if op == "unmap":
        return {"op": op, "lba": lba, "count": count}
    return {"op": op} if op == "flush" else {"op": op, "name": choose.choice("ab")}


def _pretend(event: Event) -> Event:
    if event["op"] == "read":
        return {"result": {"ok": True, "tags": [0] * event["count"]}}
    return {"result": OK}


def answers(part: Event, state: model.State) -> Iterator[Any]:
    """The answers that the contract may allow."""
    if part["op"] == "read":
        view = part.get("view")
        if view is None or view in state.snaps:
            held = state.live if view is None else state.snaps[view]
            tags = [
                min(model.possible(held.get(lba, 0), state.bound))
                for lba in range(part["lba"], part["lba"] + part["count"])
            ]
            yield {"ok": True, "tags": tags}
    else:
        yield OK
    for error in sorted(model.faults_of(state, part)):
        yield {"ok": False, "error": error}


def _joined(event: Event, given: list[Any]) -> Any:
    if event["op"] == "read" and given[0]["ok"]:
        return {"ok": True, "tags": [tag for part in given for tag in part["tags"]]}
    return given[0]


def admitted(trace: Trace) -> bool:
    """The definition: some order of what took effect is admitted by the contract."""
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
        for part in _parts(event, by_block):
            steps.append((event["called"], event["answered"] if sure else None, crash, part))

    def search(left: frozenset[int], states: model.States) -> bool:
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
