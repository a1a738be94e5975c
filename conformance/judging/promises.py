"""Promises of a target beyond the contract of the specs: `scrub` finds no problem, `holds` blocks
fit, devices fail and return on request, spares replace failed devices, and `outages_end`.

A target that declares `scrub` verifies itself; a problem that it reports while every device is
there is a failure. Some devices may go wrong meanwhile, no more than it tolerates: then what it
repairs is no problem, and nothing is beyond repair. A target that declares `holds` (in `hello` or
in the answer to `create`) must not answer `no-space` while all views together hold at most that
many different blocks, those of the request counted besides. If it declares `snapshots`, too, it may
refuse a snapshot and a revert once there are so many.

While no more devices have failed than are tolerated, a device that is there must fail, and one that
is absent must return or be replaced, as long as no rebuild onto a spare may have begun: such a
request has no fault. What else these operations are answered is left open, but for codes that can
only be about other operations.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from conformance.contract import model
from conformance.contract.devices import OPEN, beyond_tolerance
from conformance.contract.trace import IMPOSSIBLE, OVERLAPPING, Event, Trace
from conformance.judging.orders.configurations import held, times_written
from conformance.judging.orders.steps import placed
from conformance.judging.outages import unended
from conformance.judging.spares import unreplaced

CHANGES = ("write", "unmap", "snapshot", "revert")  # the operations that may need space
ABSENT = "absent"
BACK = "there"  # also of a device that failed and is back
REPLACED = "replaced"  # an absent device that a spare may have replaced
# operation -> the state of a device in which it has no fault
DUE_OF = {"fail": BACK, "return": ABSENT, "replace": ABSENT}
FAULTLESS = frozenset(["tick", "settle", "clean", "checkpoint", "scrub"])
OF_BLOCKS_AND_VIEWS = frozenset(["out-of-range", "no-such-snapshot", "snapshot-exists"])
EMPTY: Mapping[int, int] = {}
OF_VIEWS = ("snapshot", "revert")  # those that need room for one more view


class Broken(NamedTuple):
    """A promise that was not kept: by which event, the class of failure, and the two sides in
    words.
    """

    at: int
    kind: str
    expected: str
    actual: str


def impossible(trace: Trace) -> bool:
    """Return whether no disk can have the options of the trace: then all that counts is that it is
    refused.
    """
    return IMPOSSIBLE in trace.options


def accepted(trace: Trace) -> Broken | None:
    """Return what is wrong with the answer to the creation of an impossible disk, or None."""
    event = trace.events[0]
    result = event["result"] or event.get("failure", {})
    if result.get("error") == "bad-request":
        return None
    actual = "ok" if result.get("ok") else f"{result.get('error')} ({result.get('message', '')})"
    expected = f"bad-request: no disk has such {trace.options[IMPOSSIBLE]}"
    return Broken(0, "missing-refusal", expected, actual)


def broken(trace: Trace, held_before: Mapping[int, int] = EMPTY) -> Broken | None:
    """Return the first promise that the trace does not keep, or None.

    What the trace answers has to be what the contract of the specs allows. Where requests overlap,
    `held_before` is what the search for an order counted."""
    promised = trace.events[0].get("result") or {}
    most = promised.get("holds", trace.hello.get("holds"))
    scrubbed = _scrubbed(trace)
    taken = promised.get("snapshots", trace.hello.get("snapshots"))
    refused = _refused(trace, most, taken, held_before) if most is not None else None
    promises = (scrubbed, refused, _kept_device(trace), _without_fault(trace))
    found = [one for one in (*promises, *_wrongly_lost(trace)) if one is not None]
    return min(found, key=lambda one: one.at, default=None)


def _scrubbed(trace: Trace) -> Broken | None:
    """Return the first scrub, in `settle` or by itself, that found problems while no device was
    away. A scrub by itself may also find what a device with a fault has wrong, until `settle`.
    """
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
        repaired = faulty if event["op"] == "settle" else set[int]()
        if problems and all(
            state.devices.failed <= repaired and not beyond_tolerance(state) for state in states
        ):
            said = "; ".join(problems[:3]) + ("; ..." if len(problems) > 3 else "")
            return Broken(index, "scrub", "no problems: every device is there", said)
        states = _after(states, event)
        if not states:
            return None
    return None


def _begins_fault(event: Event, states: tuple[model.State, ...]) -> bool:
    """Return whether a device that was there has a fault from now on."""
    return (
        "fault" in event
        and model.answer_of(event) == "ok"
        and not any(event["device"] in state.devices.failed for state in states)
    )


def _after(states: tuple[model.State, ...], event: Event) -> tuple[model.State, ...]:
    """Return the states after the event; none if they are too many to follow."""
    try:
        return model.step(states, event)
    except model.Undecided:
        return ()


def refuses_space(trace: Trace) -> bool:
    """Return whether a request is refused for want of space."""
    return any((event["result"] or {}).get("error") == "no-space" for event in trace.events)


def _refused(
    trace: Trace, most: int, taken: int | None, held_before: Mapping[int, int]
) -> Broken | None:
    """Return the first request that was refused for want of space while few enough blocks were
    held.

    If the request needs a view of its own, and `snapshots` limits these, it counts only while fewer
    snapshots were `taken`.
    """
    suspects = [
        index
        for index, event in enumerate(trace.events)
        if event["op"] in CHANGES and (event["result"] or {}).get("error") == "no-space"
    ]
    if not suspects:
        return None
    before = (
        ((held_before.get(index), _most_taken(trace, index)) for index in suspects)
        if trace.overlapping
        else _before_each(trace, suspects)
    )
    for index in suspects:
        most_held, most_taken = next(before)
        if most_held is None:
            continue  # the contract does not allow what came before, or the search gave up
        if taken is not None and trace.events[index]["op"] in OF_VIEWS and most_taken >= taken:
            continue
        most_held += _arriving(trace, index)
        if most_held <= most:
            message = trace.events[index]["result"].get("message")
            return Broken(
                index,
                "false-no-space",
                f"ok: {most_held} blocks at most, those of the request included; "
                f"the target holds {most}",
                f"no-space ({message})" if message else "no-space",
            )
    return None


def _kept_device(trace: Trace) -> Broken | None:
    """Return the first refusal of a `fail`, `return` or `replace` that has no fault.

    It looks no further than to such an operation of unknown outcome, to the failure of more devices
    than are tolerated, and to a device that goes wrong: beside it a target may refuse what it
    likes. A target may call any of these unsupported."""
    devices, tolerates = trace.hello.get("devices", 0), trace.hello.get("tolerates", 0)
    gone: dict[int, str] = {}  # device that failed, and is not known to have caught up -> its state
    for index, event in enumerate(trace.events):
        op, answer = event["op"], model.answer_of(event)
        if op in ("tick", "settle"):
            gone = {one: REPLACED if mode == ABSENT else mode for one, mode in gone.items()}
        if op == "settle" and answer == "ok":
            gone = {one: mode for one, mode in gone.items() if mode != BACK}
        if op not in DUE_OF:
            continue
        device, state = event["device"], gone.get(event["device"], BACK)
        failed = {*gone, device} if op == "fail" else gone
        if answer in OPEN or len(failed) > tolerates or "fault" in event:
            return None
        if answer == "ok":
            if op == "replace" or op == "return" and state == ABSENT:
                gone[device] = BACK
            elif op == "fail" and state in (BACK, ABSENT):
                gone[device] = event["mode"]
        elif answer != "unsupported" and state == DUE_OF[op] and device < devices:
            said = f"{answer} ({event['result'].get('message', '')})"
            return Broken(index, "wrong-refusal", f"ok: the device is {state}", said)
    return None


def _without_fault(trace: Trace) -> Broken | None:
    """Return the first refusal with the code of a fault that such an operation cannot have.

    Once more devices have failed than are tolerated, or one had a `fault`, a target may call any
    request about the whole disk a bad one.
    """
    failed: set[int] = set()  # devices that failed or were replaced, at any time
    faulty = False  # whether a device had a `fault`
    for index, event in enumerate(trace.events):
        op, answer = event["op"], model.answer_of(event)
        if op in ("fail", "replace") and answer in ("ok", *OPEN):
            failed.add(event["device"])  # a new device lacks everything, as one that failed does
            faulty = faulty or "fault" in event
        if op not in DUE_OF and op not in FAULTLESS:
            continue
        kept = not faulty and len(failed) <= trace.hello.get("tolerates", 0)
        whole = op in FAULTLESS and kept
        if answer in OF_BLOCKS_AND_VIEWS or whole and answer == "bad-request":
            said = f"{answer} ({event['result'].get('message', '')})"
            return Broken(index, "wrong-refusal", "ok: the request has no such fault", said)
    return None


def _wrongly_lost(trace: Trace) -> Iterator[Broken]:
    """Yield the first read that was refused though spares stand in for devices that failed, and the
    first `settle` that was though all devices are back.
    """
    for index, why in (
        (unreplaced(trace), "spares stand in for devices that failed"),
        (unended(trace), "every device that was absent is back"),
    ):
        if index is not None:
            said = (trace.events[index]["result"] or {}).get("message", "")
            yield Broken(index, "lost-data", f"ok: {why}", f"data-lost ({said})")


def _before_each(trace: Trace, suspects: list[int]) -> Iterator[tuple[int | None, int]]:
    """Yield how many blocks all views may have held before each of these requests, and how many
    snapshots there may have been.
    """
    states, done, written = model.init(trace.hello), 0, times_written(trace.events)
    for index in suspects:
        for event in trace.events[done:index]:
            states = states and _after(states, event)
        done = index
        yield (
            max((held(state, written) for state in states), default=None),
            max((len(state.snaps) for state in states), default=0),
        )


def _most_taken(trace: Trace, index: int) -> int:
    """Return how many snapshots there may have been, at most, before the request was answered."""
    end = trace.events[index]["answered"]
    called = (event for event in trace.events if event["called"] < end)
    return len(
        {
            event["name"]
            for event in called
            if event["op"] == "snapshot" and model.answer_of(event) in ("ok", *OPEN)
        }
    )


def _arriving(trace: Trace, index: int) -> int:
    """Return how many blocks the request brings, and the writes that may take effect meanwhile:
    those in flight with it, and earlier ones of unknown outcome, which a power cut ends."""
    if not trace.overlapping:
        return len(trace.events[index].get("tags", ()))
    events = placed(trace.events)
    event = events[index]
    cuts = [one["answered"] for one in events if one["op"] == "crash" and one["answered"]]
    together = (
        one
        for one in events
        if one["op"] == "write"
        and one["called"] <= event["answered"]
        and event["called"] <= _last_moment(one, cuts)
    )
    return sum(len(one["tags"]) for one in together)


def _last_moment(event: Event, cuts: list[int]) -> float:
    """Return the position up to which a request may take effect, where power cuts are answered at
    `cuts`.
    """
    if model.answer_of(event) in OPEN:
        return min((cut for cut in cuts if cut > event["called"]), default=math.inf)
    answered: int = event["answered"]
    return answered
