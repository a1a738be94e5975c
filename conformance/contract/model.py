"""The contract of specs/VirtualDisk.tla as a function from states to states.

`init` gives the states before the first operation, `step` those after one more; no states left
means that the contract does not allow what happened. There is more than one state only where an
answer leaves open what became of the disk: an unknown outcome, an operation cut short, a crash.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from conformance.contract.devices import beyond_tolerance, hint
from conformance.contract.faults import (
    DATA_LOST,
    NAME,
    NO_SPACE,
    NONE,
    faults_of,
    missing,
    out_of_range,
    taken,
)
from conformance.contract.state import (
    EMPTY,
    ZERO,
    Choice,
    Devices,
    Image,
    Rules,
    State,
    States,
    buffered,
    cut,
    decided,
    exactly,
    forced,
    possible,
    recorded,
    without,
)

__all__ = [
    "EMPTY",
    "ZERO",
    "Choice",
    "Devices",
    "Image",
    "NAME",
    "Rules",
    "State",
    "States",
    "answer_of",
    "faults_of",
    "init",
    "possible",
    "step",
]

Event = dict[str, Any]

MOST_STATES = 100_000
COMPULSORY = frozenset(["create", "write", "read"])
PROFILES = ("ack", "prefix", "block")


class Undecided(Exception):
    """Raised when there are too many states; the text says how many and where they come from."""


def init(hello: dict[str, Any]) -> States:
    """Return the states before `create`: no disk, and no power until there is one."""
    rules = Rules(
        hello.get("crash_profile") or "ack",
        frozenset(hello.get("capabilities", ())),
        hello.get("tolerates", 0),
    )
    return (
        State(rules, 0, EMPTY, EMPTY, Image(EMPTY, EMPTY, EMPTY, None), False, EMPTY, Devices()),
    )


def step(states: States, event: Event) -> States:
    """Return the states after `event`, a line of a trace; none if the contract does not allow it.

    Raises Undecided where there would be more than MOST_STATES of them."""
    act, answer = ACTIONS.get(event["op"], hint), answer_of(event)
    if answer == "unsupported" and event["op"] not in states[0].rules.capabilities | COMPULSORY:
        return tuple(state for state in states if state.power)
    if len(states) == 1:
        after = tuple(act(states[0], event, answer))
    else:
        after = tuple(new for state in states for new in act(state, event, answer))
    if len(after) > 1:
        after = _distinct(after)
        if len(after) > MOST_STATES:
            raise Undecided(
                f"more than {MOST_STATES} disks are possible here: read all views after a crash, "
                "and after an operation with an unknown outcome, "
                "so that the checker knows which it is"
            )
    return after


def answer_of(event: Event) -> str:
    """Return the `r` of the specification: "ok", an error code, "unknown-outcome" or "cut"."""
    result = event["result"]
    if result is None:
        return "cut"
    return "ok" if result["ok"] else result["error"]


# Answers.


def _answer(
    state: State,
    answer: str,
    faults: frozenset[str],
    excuses: frozenset[str],
    happen: Callable[[], State],
) -> States:
    if not state.power:
        return ()
    if faults:
        if answer in faults or answer == "unknown-outcome":
            return (state,)
        return (state._replace(power=False),) if answer == "cut" else ()
    if answer == "ok":
        return (happen(),)
    if answer == "unknown-outcome":
        after = (
            happen()
        )  # if the disk stays as it is, "did not happen" allows whatever either outcome allows
        return (
            (state,) if after.live is state.live and after.snaps is state.snaps else (after, state)
        )
    if answer == "cut":
        return (cut(state, happen()),)
    return (state,) if answer in excuses else ()


# The operations.


def _create(state: State, event: Event, answer: str) -> States:
    if answer != "ok":
        return ()
    return (
        State(
            state.rules,
            event["blocks"],
            EMPTY,
            EMPTY,
            exactly(EMPTY, EMPTY),
            True,
            EMPTY,
            Devices(),
        ),
    )


def _write(state: State, event: Event, answer: str) -> States:
    lba, tags = event["lba"], event["tags"]

    def happen() -> State:
        changes = list(enumerate(tags, lba))
        live = state.live.update(changes)
        if event.get("fua"):
            return forced(state, live, changes, answer == "ok" and event.get("told", True))
        return buffered(state, live, changes)

    return _answer(state, answer, out_of_range(state, lba, len(tags)), NO_SPACE, happen)


def _unmap(state: State, event: Event, answer: str) -> States:
    lba, count = event["lba"], event["count"]

    def happen() -> State:
        lbas = range(lba, lba + count)
        return buffered(state, without(state.live, lbas), [(at_lba, ZERO) for at_lba in lbas])

    return _answer(state, answer, out_of_range(state, lba, count), NO_SPACE, happen)


def _snapshot(state: State, event: Event, answer: str) -> States:
    name = event["name"]
    return _answer(
        state,
        answer,
        taken(state, name),
        NO_SPACE,
        lambda: recorded(state, state.live, state.snaps.set(name, state.live)),
    )


def _delete(state: State, event: Event, answer: str) -> States:
    name = event["name"]
    return _answer(
        state,
        answer,
        missing(state, name),
        NONE,
        lambda: recorded(state, state.live, state.snaps.delete(name)),
    )


def _revert(state: State, event: Event, answer: str) -> States:
    name = event["name"]
    return _answer(
        state,
        answer,
        missing(state, name),
        NO_SPACE,
        lambda: recorded(state, state.snaps[name], state.snaps),
    )


def _flush(state: State, event: Event, answer: str) -> States:
    return _answer(
        state,
        answer,
        NONE,
        NONE,
        lambda: state._replace(survivors=exactly(state.live, state.snaps)),
    )


def _read(state: State, event: Event, answer: str) -> States:
    lba, view = event["lba"], event.get("view")
    faults = out_of_range(state, lba, event["count"])
    if view is not None:
        faults |= missing(state, view)
    if answer != "ok" or faults or not state.power:
        if beyond_tolerance(state):  # a disk that cannot be opened does not know its views
            faults, excuses = faults and faults | DATA_LOST, DATA_LOST
            return _answer(state, answer, faults, excuses, lambda: state)
        return _answer(state, answer, faults, NONE, lambda: state)
    blocks = state.live if view is None else state.snaps[view]
    bound = state.bound
    for at_lba, tag in enumerate(event["result"]["tags"], lba):
        held = blocks.get(at_lba, ZERO)
        if held != tag:
            found = decided(held, tag, bound)
            if found is None:
                return ()
            bound = found
    return (state,) if bound is state.bound else (state._replace(bound=bound),)


def _crash(state: State, event: Event, answer: str) -> Iterator[State]:
    """Yield the states after a power cut and recovery, which another power cut may cut short."""
    if answer == "cut":
        yield state._replace(power=False)
    if answer != "ok":
        return
    image: Image | None = state.survivors
    while image is not None:
        live = image.live
        for at_lba, pair in image.since.items():
            held, tags = live.get(at_lba, ZERO), set()
            while pair is not None:
                tags.add(pair[0])
                pair = pair[1]
            if tags != {held}:
                live = live.set(at_lba, Choice(held, frozenset(tags)))
            elif at_lba not in live:
                live = live.set(at_lba, ZERO)  # zeroes that were written take space
        yield state._replace(
            live=live, snaps=image.snaps, survivors=exactly(live, image.snaps), power=True
        )
        image = image.older


def _distinct(states: States) -> States:
    """Return one state of those that are alike.

    States that differ in form only may both stay: it does no harm.
    """
    return tuple(
        {
            (
                s.live,
                s.snaps,
                s.bound,
                s.power,
                s.devices,
                s.survivors.older is None and not s.survivors.since or id(s.survivors),
            ): s
            for s in states
        }.values()
    )


ACTIONS: dict[str, Callable[[State, Event, str], Iterable[State]]] = {
    "create": _create,
    "write": _write,
    "unmap": _unmap,
    "read": _read,
    "flush": _flush,
    "restart": _flush,
    "snapshot": _snapshot,
    "delete": _delete,
    "revert": _revert,
    "crash": _crash,
}
