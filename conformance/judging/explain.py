"""Verdicts: what is wrong with a trace, and where the wrong data came from, in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conformance.contract import model
from conformance.contract.trace import Event, Trace, line
from conformance.judging.promises import Broken

CLAUSES = {
    "read": "Read: a view reads as the operations before it left it",
    "snapshot": "Snapshot: a snapshot reads for ever as the live disk read when it was taken",
    "unmap": "Unmap: an unmapped block reads as zeroes until it is written again",
    "refusal": "Answer: a request is refused if and only if it has a fault, with that fault's code",
    "nothing": "Answer: a refused operation changes nothing",
    "ack": "Crash (ack): every acknowledged operation survives a power cut; one cut short happens whole or not at all",
    "prefix": "Crash (prefix): a power cut keeps the history up to some point, no earlier than the last flush",
    "block": "Crash (block): each block keeps its value at the last flush or one written since",
    "devices": "Devices: while no more fail than are tolerated, every read returns its data",
    "scrub": "Scrub: everything that is stored is whole, and nothing is stored that nobody holds",
    "space": "Space: `holds` different blocks fit before a request may be refused for want of space",
    "open": "Crash: after a power cut, as after a restart, the disk opens again",
    "inside": "Inside: what happens there is a behaviour of the specs below the contract",
    "dialogue": "the dialogue: one JSON object a line answers each request, in time",
}

KINDS = {
    "lost-acknowledgement": "what was acknowledged, and had to survive, did not survive a power cut",
    "stale": "a block holds an older value than it should",
    "resurrected": "data that was overwritten, unmapped or reverted away came back",
    "zeroed": "a block reads as zeroes that should hold data",
    "snapshot-bleed": "a snapshot changed after it was taken",
    "refused-write": "a write that was refused took place all the same",
    "misplaced": "misdirected: a block holds what was written to another block",
    "foreign": "leaked: a block holds what nobody wrote to this disk",
    "torn": "a block mixes sectors of several writes",
    "garbage": "a block holds what is none of the kit's blocks",
    "half-done": "parts of an operation that had to happen whole or not at all",
    "not-a-prefix": "what survived a power cut is no point of the history",
    "unopenable": "the disk does not open again",
    "missing-refusal": "a request that has a fault was granted",
    "wrong-refusal": "a request was refused that has no fault, or with the wrong code",
    "lost-snapshot": "a snapshot is gone",
    "resurrected-snapshot": "a snapshot that was deleted came back",
    "lost-data": "data was lost without cause: no more devices had failed than the target tolerates",
    "scrub": "the target's own scrub reports a problem though no device is failed",
    "false-no-space": "a request was refused for want of space that the target promises to have",
    "inside": "the contract is kept, but not by steps that the specs below it have",
    "hang": "the target did not answer in time",
    "exit": "the target ended, or broke off",
    "protocol": "the target's answer is none",
}


@dataclass(frozen=True)
class Verdict:
    """What the oracles made of a trace. `at` is the index of an event; all but `verdict` are empty on a pass."""

    verdict: str  # pass, fail, inconclusive
    at: int | None = None
    kind: str = ""  # the class of a failure, such as stale or missing-refusal
    clause: str = ""
    expected: str = ""
    actual: str = ""
    source: str = ""  # where the wrong data came from
    excuse: str = ""  # the faults of the media that make a failure none
    reason: str = ""  # why it is inconclusive, or what the target printed

    def words(self, trace: Trace) -> list[str]:
        """The verdict for people, a few lines."""
        if self.verdict != "fail":
            return [f"{self.verdict}: {self.reason}" if self.reason else self.verdict]
        text = [
            f"{self.kind} at operation {self.at}: {line(trace.events[self.at])}",
            f"  expected  {self.expected}",
            f"  came      {self.actual}",
        ]
        text += [f"  source    {self.source}"] if self.source else []
        text += [f"  clause    {self.clause}"]
        text += (
            ["  it printed"] + ["    " + part for part in self.reason.splitlines()]
            if self.reason
            else []
        )
        return text


PASS = Verdict("pass")


def disallowed_inside(at: int, inside: str) -> Verdict:
    """The contract is kept, but the engine's own events are none that its spec allows."""
    return Verdict(
        "fail",
        at,
        "inside",
        CLAUSES["inside"],
        "an event that the spec of this level allows",
        inside,
    )


def broken_promise(promise: Broken) -> Verdict:
    """Return the failure of a target that did not keep a promise beyond the contract of the specs."""
    clause = CLAUSES["scrub" if promise.kind == "scrub" else "space"]
    return Verdict("fail", promise.at, promise.kind, clause, promise.expected, promise.actual)


WRONG_DATA = frozenset(
    [
        "lost-acknowledgement",
        "stale",
        "resurrected",
        "zeroed",
        "snapshot-bleed",
        "refused-write",
        "misplaced",
        "foreign",
    ]
)


def alike(one: Verdict, other: Verdict) -> bool:
    """Whether two failures may be the same bug: what class wrong data is of depends on what else a trace does."""
    return one.kind == other.kind or one.kind in WRONG_DATA and other.kind in WRONG_DATA


def explain(trace: Trace, at: int) -> Verdict:
    """Why the contract does not allow `trace.events[at]`."""
    event = trace.events[at]
    if "failure" in event:
        failure = event["failure"]
        return Verdict(
            "fail",
            at,
            failure["kind"],
            CLAUSES["dialogue"],
            "an answer",
            failure["message"],
            reason=failure.get("output", ""),
        )
    states = model.init(trace.hello)
    for before in trace.events[:at]:
        states = model.step(states, before)
    answer = model.answer_of(event)
    came = line(event).rpartition("-> ")[2]
    if event["op"] == "create":
        return Verdict(
            "inconclusive",
            at,
            reason=f"the target creates no disk: {came} {_message(event)}".strip(),
        )
    if event["op"] in ("crash", "restart") and answer != "ok":
        return Verdict(
            "fail",
            at,
            "unopenable",
            CLAUSES["open"],
            "ok: the disk is open again",
            f"{answer} {_message(event)}".strip(),
        )
    faults = [model.faults_of(state, event) for state in states]
    if answer == "ok" and all(faults):
        return _missing_refusal(trace, at, faults)
    if answer == "ok" and event["op"] == "read":
        return _wrong_data(trace, at, [s for s, fault in zip(states, faults) if not fault])
    return _wrong_refusal(trace, at, faults, answer)


def _message(event: Event) -> str:
    message = (event["result"] or {}).get("message", "")
    return f"({message})" if message else ""


def _profile(trace: Trace) -> str:
    return trace.hello.get("crash_profile") or "ack"


def _codes(faults: Sequence[frozenset[str]]) -> str:
    return " or ".join(sorted(frozenset().union(*faults)))


def _missing_refusal(trace: Trace, at: int, faults: list[frozenset[str]]) -> Verdict:
    event = trace.events[at]
    kind, clause, source = "missing-refusal", CLAUSES["refusal"], ""
    name = event.get("name") or event.get("view")
    gone = _last(trace, at, "delete", name)
    if gone is not None and "no-such-snapshot" in _codes(faults):
        kind, source = "resurrected-snapshot", f"{name} was deleted by operation {gone}"
        clause = CLAUSES[_profile(trace)] if _crashed(trace, gone, at) else clause
    return Verdict("fail", at, kind, clause, f"a refusal with {_codes(faults)}", "ok", source)


def _wrong_refusal(trace: Trace, at: int, faults: list[frozenset[str]], answer: str) -> Verdict:
    event = trace.events[at]
    kind, clause, source = "wrong-refusal", CLAUSES["refusal"], ""
    name = event.get("name") or event.get("view")
    expected = f"a refusal with {_codes(faults)}" if all(faults) else "ok"
    if answer == "no-such-snapshot" and not all(faults):
        taken = _last(trace, at, "snapshot", name)
        if taken is not None:
            kind, source = "lost-snapshot", f"{name} was taken by operation {taken}"
            clause = CLAUSES[_profile(trace) if _crashed(trace, taken, at) else "snapshot"]
    elif answer == "data-lost":
        kind, clause = "lost-data", CLAUSES["devices"]
    elif answer == "snapshot-exists":
        gone = _last(trace, at, "delete", name)
        if gone is not None:
            kind, source = "resurrected-snapshot", f"{name} was deleted by operation {gone}"
    return Verdict(
        "fail", at, kind, clause, expected, f"{answer} {_message(event)}".strip(), source
    )


def _last(trace: Trace, at: int, op: str, name: str | None) -> int | None:
    """The last acknowledged `op` of that name before `at`."""
    for index in range(at - 1, -1, -1):
        event = trace.events[index]
        if event["op"] == op and event.get("name") == name and model.answer_of(event) == "ok":
            return index
    return None


def _crashed(trace: Trace, after: int, before: int) -> bool:
    return any(event["op"] in ("crash", "restart") for event in trace.events[after + 1 : before])


def _wrong_data(trace: Trace, at: int, states: list[model.State]) -> Verdict:
    """A read that no state allows: the first block that is wrong by itself, or else the blocks together."""
    event = trace.events[at]
    view, lba, tags = event.get("view"), event["lba"], event["result"]["tags"]
    for l, tag in enumerate(tags, lba):
        fitting = allowed(states, view, l)
        if tag not in fitting:
            return _wrong_block(trace, at, view, l, tag, fitting)
    profile = _profile(trace)
    kind = "not-a-prefix" if profile == "prefix" else "half-done"
    return Verdict(
        "fail",
        at,
        kind,
        CLAUSES[profile],
        "each block as it is, but not all of them together",
        f"{_names(view)} {lba}+{len(tags)}: {' '.join(map(str, tags))}",
        "; ".join(_origins(trace, at, l, tag) for l, tag in enumerate(tags[:8], lba)),
    )


def allowed(states: Sequence[model.State], view: str | None, lba: int) -> frozenset[int]:
    """The tags that a block of the view may hold in any of the states."""
    tags: frozenset[int] = frozenset()
    for state in states:
        if view is None or view in state.snaps:
            blocks = state.live if view is None else state.snaps[view]
            tags |= model.possible(blocks.get(lba, model.ZERO), state.bound)
    return tags


def _wrong_block(
    trace: Trace, at: int, view: str | None, lba: int, tag: int, fitting: frozenset[int]
) -> Verdict:
    what = f"block {lba} of {_names(view)}"
    expected = f"{what}: " + " or ".join(_meaning(trace, at, lba, t) for t in sorted(fitting)[:6])
    if tag == -1:
        found: dict[str, Any] = next(
            (f for f in trace.events[at]["result"].get("found", ()) if f["lba"] == lba),
            {"kind": "garbage", "detail": "none of the kit's blocks"},
        )
        return Verdict(
            "fail", at, found["kind"], CLAUSES["read"], expected, f"{what}: {found['detail']}"
        )
    kind, clause = _class(trace, at, view, lba, tag, fitting)
    return Verdict(
        "fail",
        at,
        kind,
        CLAUSES[clause],
        expected,
        f"{what}: {'zeroes' if tag == 0 else f'tag {tag}'}",
        _origins(trace, at, lba, tag),
    )


def _class(
    trace: Trace, at: int, view: str | None, lba: int, tag: int, fitting: frozenset[int]
) -> tuple[str, str]:
    """The class of a wrong block, and the clause."""
    profile = _profile(trace)
    history = _history(trace, at, lba)
    changed = history[-1][0]
    writers = [
        (index, event) for index, event in _writers(trace, at, tag) if tag and _covers(event, lba)
    ]
    if writers and all(
        model.answer_of(event) not in ("ok", "cut", "unknown-outcome") for _, event in writers
    ):
        return "refused-write", "nothing"
    if view is not None:
        taken = _last(trace, at, "snapshot", view) or 0
        if any(tag in tags for index, tags in history if index > taken) or any(
            index > taken for index, _ in writers
        ):
            return "snapshot-bleed", "snapshot"
        if any(tag in tags for index, tags in history if index <= taken):
            return "stale", "snapshot"
    elif any(tag in tags for _, tags in history):
        if fitting == {model.ZERO} and trace.events[changed]["op"] == "unmap":
            return "resurrected", "unmap"
        return (
            ("lost-acknowledgement", profile) if _crashed(trace, changed, at) else ("stale", "read")
        )
    clause = "read" if view is None else "snapshot"
    if tag == model.ZERO:
        return "zeroed", clause
    if writers:
        return "resurrected", clause
    return ("misplaced" if _writers(trace, at, tag) else "foreign"), clause


def _history(trace: Trace, at: int, lba: int) -> list[tuple[int, frozenset[int]]]:
    """What the live block could hold, each time that changed: (index of the event, tags)."""
    states, history = model.init(trace.hello), []
    for index, event in enumerate(trace.events[:at]):
        states = model.step(states, event)
        tags = allowed(states, None, lba)
        if not history or tags != history[-1][1] and event["op"] not in ("read", "crash"):
            history.append((index, tags))
    return history


def _writers(trace: Trace, at: int, tag: int) -> list[tuple[int, Event]]:
    return [
        (index, event)
        for index, event in enumerate(trace.events[:at])
        if event["op"] == "write" and tag in event["tags"]
    ]


def _covers(event: Event, lba: int) -> bool:
    return event["lba"] <= lba < event["lba"] + len(event["tags"])


def _meaning(trace: Trace, at: int, lba: int, tag: int) -> str:
    """A tag that was allowed, and who wrote it."""
    if tag == model.ZERO:
        unmapped = [
            index
            for index, event in enumerate(trace.events[:at])
            if event["op"] == "unmap"
            and event["lba"] <= lba < event["lba"] + event["count"]
            and model.answer_of(event) == "ok"
        ]
        return f"zeroes (unmapped by operation {unmapped[-1]})" if unmapped else "zeroes"
    writers = [index for index, event in _writers(trace, at, tag) if _covers(event, lba)]
    return f"tag {tag} (written by operation {writers[-1]})" if writers else f"tag {tag}"


def _origins(trace: Trace, at: int, lba: int, tag: int) -> str:
    """Where a tag came from: the operations that wrote it, and the snapshots that hold it."""
    if tag == model.ZERO:
        meaning = _meaning(trace, at, lba, tag)
        return "never written, or unmapped" if meaning == "zeroes" else meaning
    writers = _writers(trace, at, tag)
    if not writers:
        return f"tag {tag}: no operation of this trace wrote it"
    here = [w for w in writers if _covers(w[1], lba)] or writers
    text = "; ".join(f"operation {index}: {line(event)}" for index, event in here[-3:])
    states = model.init(trace.hello)
    for event in trace.events[:at]:
        states = model.step(states, event)
    holding = sorted(
        {name for state in states for name in state.snaps if tag in allowed([state], name, lba)}
    )
    return text + (f" (snapshot {', '.join(holding)} holds it)" if holding else "")


def _names(view: str | None) -> str:
    return "the live disk" if view is None else f"snapshot {view}"
