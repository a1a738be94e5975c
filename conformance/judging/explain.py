"""Explanations: why the contract does not allow an event, and where wrong data came from."""

from collections.abc import Sequence
from typing import Any

from conformance.contract import model
from conformance.contract.devices import beyond_tolerance, hint
from conformance.contract.trace import Event, Trace, line
from conformance.judging.origins import (
    allowed,
    covers,
    history_of,
    meaning_of,
    never_together,
    origins_of,
    writers_of,
)
from conformance.judging.verdict import (
    CLAUSES,
    KINDS,
    PASS,
    Verdict,
    alike,
    broken_promise,
    disallowed_inside,
)

__all__ = [
    "CLAUSES",
    "KINDS",
    "PASS",
    "Verdict",
    "alike",
    "allowed",
    "broken_promise",
    "disallowed_inside",
    "explain",
    "no_answer",
    "unopenable",
]


def explain(trace: Trace, at: int) -> Verdict:
    """Return why the contract does not allow `trace.events[at]`."""
    event = trace.events[at]
    if "failure" in event:
        return no_answer(trace, at)
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
        return unopenable(trace, at)
    faults = [model.faults_of(state, event) for state in states]
    if answer == "ok" and all(faults):
        return _missing_refusal(trace, at, faults)
    if answer == "ok" and event["op"] == "read":
        return _wrong_data(
            trace, at, [s for s, fault in zip(states, faults, strict=False) if not fault]
        )
    return _wrong_refusal(trace, at, faults, answer)


def no_answer(trace: Trace, at: int) -> Verdict:
    """Return the verdict on an event at which the target failed, or its answer was invalid."""
    failure = trace.events[at]["failure"]
    past = failure["kind"] == "protocol" and _past_the_end(trace, at)
    return Verdict(
        "fail",
        at,
        failure["kind"],
        CLAUSES["dialogue"],
        "a refusal with out-of-range" if past else "an answer",
        failure["message"],
        reason=failure.get("output", ""),
    )


def _past_the_end(trace: Trace, at: int) -> bool:
    """Return whether a request names blocks that the disk does not have."""
    states = model.init(trace.hello)
    for event in trace.events[:at]:
        if event["op"] == "create":
            states = model.step(states, event)
    return any("out-of-range" in model.faults_of(state, trace.events[at]) for state in states)


def unopenable(trace: Trace, at: int) -> Verdict:
    """Return the verdict on a crash or a restart that was not answered with ok."""
    event = trace.events[at]
    state = model.init(trace.hello)[0]._replace(power=True)
    for before in trace.events[:at]:
        if model.answer_of(before) == "ok":
            (state,) = hint(state, before, "ok")
    expected = "ok: the disk is open again"
    if beyond_tolerance(state):
        expected = "ok: reads may be refused then, since too many devices have failed"
    came = f"{model.answer_of(event) if event['result'] else 'no answer'} {_message(event)}".strip()
    return Verdict("fail", at, "unopenable", CLAUSES["open"], expected, came)


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
        clause = CLAUSES[_reopened(trace, gone, at) or "refusal"]
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
            clause = CLAUSES[_reopened(trace, taken, at) or "snapshot"]
    elif answer == "data-lost":
        kind, clause = "lost-data", CLAUSES["devices"]
    elif answer == "snapshot-exists":
        gone = _last(trace, at, "delete", name)
        if gone is not None:
            kind, source = "resurrected-snapshot", f"{name} was deleted by operation {gone}"
            clause = CLAUSES[_reopened(trace, gone, at) or "refusal"]
    return Verdict(
        "fail", at, kind, clause, expected, f"{answer} {_message(event)}".strip(), source
    )


def _last(trace: Trace, at: int, op: str, name: str | None) -> int | None:
    """Return the last acknowledged `op` of that name before `at`."""
    for index in range(at - 1, -1, -1):
        event = trace.events[index]
        if event["op"] == op and event.get("name") == name and model.answer_of(event) == "ok":
            return index
    return None


def _reopened(trace: Trace, after: int, before: int) -> str | None:
    """Return the clause on what survives, if the disk was opened again between two events; else
    None.
    """
    ops = {event["op"] for event in trace.events[after + 1 : before]}
    return _profile(trace) if "crash" in ops else "restart" if "restart" in ops else None


def _wrong_data(trace: Trace, at: int, states: list[model.State]) -> Verdict:
    """Return a read that no state allows: the first block that is wrong by itself, or else the
    blocks together.
    """
    event = trace.events[at]
    view, lba, tags = event.get("view"), event["lba"], event["result"]["tags"]
    for at_lba, tag in enumerate(tags, lba):
        fitting = allowed(states, view, at_lba)
        if tag not in fitting:
            return _wrong_block(trace, at, view, at_lba, tag, fitting)
    odd = never_together(states, view, list(enumerate(tags, lba)))[:8]
    blocks = " and ".join(f"block {at_lba} of {_names(view)}" for at_lba, _ in odd)
    profile = _profile(trace)
    kind = "not-a-prefix" if profile == "prefix" else "half-done"
    return Verdict(
        "fail",
        at,
        kind,
        CLAUSES[profile],
        f"{blocks} as at one moment: each may be so, but not together",
        "; ".join(f"block {at_lba}: {meaning_of(trace, at, at_lba, tag)}" for at_lba, tag in odd),
        "; ".join(origins_of(trace, at, at_lba, tag) for at_lba, tag in odd),
    )


def _wrong_block(
    trace: Trace, at: int, view: str | None, lba: int, tag: int, fitting: frozenset[int]
) -> Verdict:
    what = f"block {lba} of {_names(view)}"
    expected = f"{what}: " + " or ".join(meaning_of(trace, at, lba, t) for t in sorted(fitting)[:6])
    if tag == -1:
        return _unwritten_block(trace, at, lba, expected)
    kind, clause = _class(trace, at, view, lba, tag, fitting)
    return Verdict(
        "fail",
        at,
        kind,
        CLAUSES[clause],
        expected,
        f"{what}: {'zeroes' if tag == 0 else f'tag {tag}'}",
        origins_of(trace, at, lba, tag),
        lba=lba,
    )


def unwritten(trace: Trace, at: int) -> Verdict | None:
    """Return the verdict on a read of a block that the kit did not write, which is wrong whatever
    happened before; None if there is none."""
    event = trace.events[at]
    tags = (event["result"] or {}).get("tags", ()) if event["op"] == "read" else ()
    if -1 not in tags:
        return None
    lba = event["lba"] + tags.index(-1)
    expected = f"block {lba} of {_names(event.get('view'))}: a block that the kit wrote, or zeroes"
    return _unwritten_block(trace, at, lba, expected)


def _unwritten_block(trace: Trace, at: int, lba: int, expected: str) -> Verdict:
    event = trace.events[at]
    found: dict[str, Any] = next(
        (f for f in event["result"].get("found", ()) if f["lba"] == lba),
        {"kind": "garbage", "detail": "none of the kit's blocks"},
    )
    actual = f"block {lba} of {_names(event.get('view'))}: {found['detail']}"
    return Verdict("fail", at, found["kind"], CLAUSES["read"], expected, actual)


def _class(
    trace: Trace, at: int, view: str | None, lba: int, tag: int, fitting: frozenset[int]
) -> tuple[str, str]:
    """Return the class of a wrong block, and the clause."""
    history = history_of(trace, at, lba)
    changed = history[-1][0]
    writers = [
        (index, event) for index, event in writers_of(trace, at, tag) if tag and covers(event, lba)
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
        reopened = _reopened(trace, changed, at)
        if reopened is None:
            return "stale", "read"
        fua = reopened != "restart" and trace.events[changed].get("fua")
        return "lost-acknowledgement", "fua" if fua else reopened
    clause = "read" if view is None else "snapshot"
    if tag == model.ZERO:
        return "zeroed", clause
    if writers:
        return "resurrected", clause
    return ("misplaced" if writers_of(trace, at, tag) else "foreign"), clause


def _names(view: str | None) -> str:
    return "the live disk" if view is None else f"snapshot {view}"
