"""The doctor: it finds out whether a target is usable, and what it declares.

It asks for one thing at a time, before anything is generated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conformance.campaign.driver import Bench
from conformance.contract import trace as traces
from conformance.contract.model import faults_of, init, step
from conformance.judging.judge import judge
from conformance.judging.oracles import model
from conformance.programs import swarm
from conformance.targets import Factory
from conformance.targets.base import Message, Unusable

PROFILES = {
    "ack": "every acknowledged operation survives a power cut",
    "prefix": "a power cut keeps the history up to some point, no earlier than the last flush",
    "block": "each block keeps its value at the last flush or one written since; "
    "an acknowledged snapshot, deletion or revert survives, and is a flush",
    None: "nothing is promised about power cuts, so none are sent",
}
MEANINGS = {
    "unmap": "unmapped blocks read as zeroes",
    "flush": "makes all earlier changes durable",
    "snapshot": "keeps the disk under a name, which can be read",
    "delete": "removes a snapshot",
    "revert": "makes the live disk equal to a snapshot",
    "crash": "the power is cut, and the disk recovers",
    "restart": "the disk is closed and opened",
    "device": "devices fail and return",
    "clean": "does some background work",
    "scrub": "verifies everything that is stored",
    "fua": "a write is durable once it is answered",
}
CREATE: Message = {"op": "create", "blocks": 8}
WRITE: Message = {"op": "write", "lba": 2, "tags": [1, 2]}
READ: Message = {"op": "read", "lba": 0, "count": 8}


@dataclass(frozen=True)
class Check:
    """One thing that was asked of the target."""

    what: str
    ok: bool
    detail: str = ""
    hung: bool = False
    output: str = ""  # what the target printed last, if it ended or hung


def examine(factory: Factory) -> tuple[dict[str, Any], list[Check]]:
    """Return the target's hello and the result of each check.

    Raises Unusable if the target does not answer hello.
    """
    bench = Bench(factory)
    options = factory.first
    try:
        hello = bench.hello(options)
        checks: list[Check] = []
        for what, program in (*_programs(hello), *_moments(hello)):
            checks.append(_tried(bench, options, what, program))
            if checks[-1].hung:
                break  # the others would time out, too
        return hello, checks
    finally:
        bench.clear()


def _programs(hello: Message) -> Iterator[tuple[str, list[Message]]]:
    """Yield what is checked, each a short program that every sound target of this hello passes."""
    able = _asked(hello)
    yield "creates a disk that reads as zeroes", [CREATE, READ]
    yield "reads what was written", [CREATE, WRITE, READ]
    yield (
        "refuses what reaches past the end",
        [CREATE, {**WRITE, "lba": 7}, {**READ, "lba": 1}, READ],
    )
    if "snapshot" in able:
        missing = {**READ, "view": "missing"}
        yield "refuses to read a snapshot that does not exist", [CREATE, WRITE, missing, READ]
    if "device" in able and hello.get("tolerates"):
        fail = {"op": "fail", "device": 0, "mode": "absent"}
        back: list[Message] = [{"op": "return", "device": 0}, {"op": "settle"}]
        yield "device", [CREATE, WRITE, fail, READ, {**WRITE, "lba": 4}, *back, READ]
        fail, back = {**fail, "mode": "degraded"}, [{"op": "replace", "device": 0}, back[-1]]
        tick = {"op": "tick", "seconds": 3600}
        yield "replaces a device", [CREATE, WRITE, fail, tick, READ, *back, READ]
    for name in swarm.CAPABILITIES:
        if name not in able or name == "device":
            continue
        snapshot = (
            [{"op": "snapshot", "name": "s1"}]
            if name in ("delete", "revert") and "snapshot" in able
            else []
        )
        asked = {
            "op": name,
            **({"name": "s1"} if name in ("snapshot", "delete", "revert") else {}),
            **({"lba": 2, "count": 1} if name == "unmap" else {}),
        }
        if name == swarm.FUA:
            asked = {**WRITE, "lba": 4, "fua": True}
        view = [{**READ, "view": "s1"}] if name == "snapshot" else []
        yield name, [CREATE, WRITE, *snapshot, asked, READ, *view]
        if name == "clean":
            yield "checkpoint", [CREATE, WRITE, {"op": "checkpoint"}, READ]


def _moments(hello: Message) -> Iterator[tuple[str, list[Message]]]:
    """Yield programs of the same kind, of requests in flight and of power cuts next to them."""
    beside: list[Message] = [WRITE, {**WRITE, "lba": 4, "overlaps": 1}]
    crashes = "crash" in _asked(hello)
    if hello.get("protocol") == 2 and hello.get("in_flight", 1) > 1:
        yield "answers requests in flight", [CREATE, *beside, {**READ, "overlaps": 2}, READ]
        if crashes:
            cut = {"op": "crash", "overlaps": 2}
            yield "loses its power while they are in flight", [CREATE, *beside, cut, READ]
    if hello.get("cuts") and crashes:
        cut = {**WRITE, "cut": {"after": 1, "seed": 1}}
        yield "loses its power at a device write", [CREATE, cut, READ]


def _asked(hello: Message) -> set[str]:
    """Return the capabilities that the target declares and can be asked for."""
    return set(hello["capabilities"]).difference(swarm.unasked(hello))


def _tried(bench: Bench, options: dict[str, Any], what: str, program: list[Message]) -> Check:
    try:
        trace = bench.drive(program, 0, options)
    except Unusable as error:
        return Check(what, False, error.message, output=error.output)
    verdict = judge([trace], {"model": model.judge})[0]
    if verdict.at is None:
        return _unrefused(what, trace)
    judged = verdict.verdict != "inconclusive"
    wrong = f"expected {verdict.expected}; came {verdict.actual}" if judged else verdict.reason
    return Check(
        what,
        False,
        f"{traces.line(trace.events[verdict.at])}: {wrong}",
        verdict.kind == "hang",
        verdict.reason if judged else "",
    )


def _unrefused(what: str, trace: traces.Trace) -> Check:
    """Return a check of a trace that the contract allows: it is sound unless something was refused
    that it need not have been.

    The contract lets a disk that is full refuse a write; one of 8 blocks with two of them written
    is not full, and a target that refuses all the same would pass every test without having been
    tested.
    """
    states = init(trace.hello)
    for event in trace.events:
        refused = event["result"] and not event["result"]["ok"]
        if refused and (trace.overlapping or not faults_of(states[0], event)):
            return Check(
                what,
                False,
                f"{traces.line(event)}: allowed, but on a disk of 8 blocks with next to nothing "
                "on it there is no reason to refuse; what is refused cannot be tested",
            )
        if not trace.overlapping:  # else nothing that was asked must be refused
            states = step(states, event)
    refusals = [
        event["result"]["error"]
        for event in trace.events
        if event["op"] == what and event["result"] and not event["result"]["ok"]
    ]
    return Check(what, True, f"refused with {refusals[0]}" if refusals else "")
