"""Random histories of overlapping requests, of a disk whose requests take effect at random moments
between their calls and their answers. Judges are compared on them.
"""

import random
from collections.abc import Iterator
from typing import Any

from conformance.contract import model
from conformance.contract.trace import Event, Trace
from conformance.judging.orders.steps import parts_of

OK = {"ok": True}


def history(
    choose: random.Random,
    requests: int,
    blocks: int = 2,
    in_flight: int = 4,
    wrong: float = 0.15,
    profile: str | None = None,
    cuts: float = 0,
) -> Trace:
    """Return a history of about `requests` requests. `wrong` is the share of reads that get another
    answer; a third as many answers of others become unknown outcomes. `cuts`: how often the power
    fails, besides when nothing is in flight."""
    profile = profile or choose.choice(["ack", "prefix", "block"])
    hello = {
        "name": "t",
        "version": "1",
        "block_size": 512,
        "crash_profile": profile,
        "capabilities": ["unmap", "flush", "snapshot", "delete", "revert", "crash", "fua"],
        "atomic": choose.choice(["request", "request", "block"]),
        "in_flight": in_flight,
    }
    create = {"op": "create", "blocks": blocks, "result": OK, "called": 0, "answered": 1}
    events: list[Event] = [create]
    states = model.step(model.init(hello), create)
    clock, tag = 2, 0
    flying: list[tuple[int, list[Event], list[Any]]] = []

    def effect(number: int) -> None:
        _, parts, given = flying[number]
        given.append(settle(parts.pop(0)))

    def settle(part: Event) -> Event:
        """Let the part take effect on the first possible state; return the contract's answer."""
        nonlocal states
        for answer in answers(part, states[0]):
            after = model.step(states[:1], {**part, "result": answer})
            if after:
                states = after[:1]
                return dict(answer)
        raise AssertionError(part)

    def cut() -> None:
        """Cut the power: nothing in flight is answered."""
        nonlocal states, clock
        after = model.step(states, {"op": "crash", "result": OK})
        states = (choose.choice(after),)
        flying.clear()
        events.append({"op": "crash", "called": clock, "answered": clock + 1, "result": OK})
        clock += 2

    while len(events) <= requests or flying:
        act = choose.random()
        if cuts and len(events) <= requests and choose.random() < cuts:
            cut()
        elif len(events) <= requests and act < 0.45 and len(flying) < in_flight:
            request = _request(choose, blocks, tag)
            tag += 10
            event = {**request, "called": clock, "answered": None, "result": None}
            clock += 1
            events.append(event)
            whole = (
                event["op"] not in ("read", "write", "unmap")
                or "view" in event
                or model.faults_of(states[0], event)
            )
            parts = (
                [dict(event)]
                if whole
                else parts_of({**event, **pretended(event)}, hello["atomic"] == "block")
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
            events[index]["result"] = joined(events[index], given)
            clock += 1
            flying.pop(number)
        elif choose.random() < 0.3 and len(events) <= requests:
            cut()
    for event in events[1:]:
        if event["op"] == "read" and event["result"] and event["result"]["ok"]:
            if choose.random() < wrong:
                tags = [choose.choice([0, *range(0, tag, 10)]) for _ in event["result"]["tags"]]
                event["result"] = {"ok": True, "tags": tags}
        elif event["answered"] and choose.random() < wrong / 3:
            event["result"] = {"ok": False, "error": "unknown-outcome"}
    return Trace(hello, events)


def _request(choose: random.Random, blocks: int, tag: int) -> Event:
    lba = choose.randrange(blocks)
    count = choose.choice([1, min(2, blocks - lba)])
    op = choose.choice(
        ["read"] * 4 + ["write"] * 4 + ["unmap", "flush", "snapshot", "delete", "revert"]
    )
    if op == "write":
        request = {"op": op, "lba": lba, "tags": [tag + n + 1 for n in range(count)]}
        return request | ({"fua": True} if choose.random() < 0.2 else {})
    if op == "read":
        view = choose.choice([None, None, "a", "b"])
        return {"op": op, "lba": lba, "count": count} | ({"view": view} if view else {})
    if op == "unmap":
        return {"op": op, "lba": lba, "count": count}
    return {"op": op} if op == "flush" else {"op": op, "name": choose.choice("ab")}


def pretended(event: Event) -> Event:
    """Return a result, so that the request can be split into its steps."""
    if event["op"] == "read":
        return {"result": {"ok": True, "tags": [0] * event["count"]}}
    return {"result": OK}


def answers(part: Event, state: model.State) -> Iterator[Any]:
    """Yield the answers that the contract may allow."""
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


def joined(event: Event, given: list[Any]) -> Any:
    """Return the answer of a request whose steps were answered so."""
    if event["op"] == "read" and given[0]["ok"]:
        return {"ok": True, "tags": [tag for part in given for tag in part["tags"]]}
    return given[0]
