"""The contract of specs/VirtualDisk.tla as a function from states to states.

`init` gives the states before the first operation, `step` those after one more; no states left means that
the contract does not allow what happened. A state is immutable. There is more than one only where an answer
leaves open what became of the disk: an unknown outcome, an operation cut short, a crash.

The names are those of the specification. Two things differ from it in form, not in meaning:

- The survivors of a power cut are linked cells, the newest image first, so that a history costs one cell an
  operation and a thousand states share it.
- A block that a crash leaves open (profile `block`) stays open: it holds a `Choice`, shared by every view
  that copies it, until a read decides it for all of them. Nothing is lost by deciding the least: a block read
  as 5 that may have held 5 of its own, or taken it from a base that is open too, is 5 either way, and the
  first way leaves the base free, so what it allows includes what the second allows.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from immutables import Map

Event = dict[str, Any]
Blocks = Map  # LBA -> a tag, or the Choice of one; blocks that are not in it are zero

ZERO = 0
EMPTY: Map = Map()
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
MOST_STATES = 100_000
COMPULSORY = frozenset(["create", "write", "read"])
PROFILES = ("ack", "prefix", "block")


class Undecided(Exception):
    """There are more states than anyone would wait for; the text says how many and where they come from."""


class Choice:
    """A block that a crash left open: what `base` is, or one of `tags`. It is compared by identity."""

    __slots__ = ("base", "tags")

    def __init__(self, base: "int | Choice", tags: frozenset[int]):
        self.base, self.tags = base, tags

    def possible(self, bound: Map) -> frozenset[int]:
        """The tags that the block may still turn out to hold."""
        if self in bound:
            return frozenset([bound[self]])
        return self.tags | possible(self.base, bound)


class Image(NamedTuple):
    """One image that a power cut may leave, and `older`, the rest of them."""

    live: Blocks
    snaps: Map  # name -> Blocks
    since: Map  # LBA -> the tags it may hold instead, as linked pairs (tag, older pair or None)
    older: "Image | None"


class Rules(NamedTuple):
    """What the target promises in its `hello`."""

    profile: str
    capabilities: frozenset[str]
    tolerates: int


class Devices(NamedTuple):
    """Which devices are not, or not yet again, good for their data; counted so as never to accuse wrongly."""

    failed: frozenset[int] = frozenset()
    back: frozenset[int] = frozenset()  # of the failed: returned or replaced, until the next settle
    lost: bool = False  # one was replaced while too many had failed: some data is gone for good


class State(NamedTuple):
    rules: Rules
    size: int
    live: Blocks
    snaps: Map  # name -> Blocks
    survivors: Image
    power: bool
    bound: Map  # Choice -> the tag that a read found
    devices: Devices


States = tuple[State, ...]


def init(hello: dict[str, Any]) -> States:
    """The states before `create`: no disk, and no power until there is one."""
    rules = Rules(
        hello.get("crash_profile") or "ack",
        frozenset(hello.get("capabilities", ())),
        hello.get("tolerates", 0),
    )
    return (
        State(rules, 0, EMPTY, EMPTY, Image(EMPTY, EMPTY, EMPTY, None), False, EMPTY, Devices()),
    )


def step(states: States, event: Event) -> States:
    """The states after `event`, a line of a trace; none if the contract does not allow it.

    Raises Undecided where there would be more than MOST_STATES of them."""
    act, answer = ACTIONS.get(event["op"], _hint), answer_of(event)
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
                f"more than {MOST_STATES} disks are possible here: read all views after a crash, and "
                "after an operation with an unknown outcome, so that the checker knows which it is"
            )
    return after


def answer_of(event: Event) -> str:
    """The `r` of the specification: "ok", an error code, "unknown-outcome" or "cut"."""
    result = event["result"]
    if result is None:
        return "cut"
    return "ok" if result["ok"] else result["error"]


def possible(held: int | Choice, bound: Map) -> frozenset[int]:
    """The tags that what a block holds may turn out to be."""
    return held.possible(bound) if isinstance(held, Choice) else frozenset([held])


# What survives a power cut.


def _exactly(live: Blocks, snaps: Map) -> Image:
    return Image(live, snaps, EMPTY, None)


def _buffered(state: State, live: Blocks, changes: Iterable[tuple[int, int]]) -> State:
    """After a write or an unmap that sets the `changes`."""
    survivors = state.survivors
    match state.rules.profile:
        case "ack":
            survivors = _exactly(live, state.snaps)
        case "prefix":
            survivors = Image(live, state.snaps, EMPTY, survivors)
        case "block":
            since = survivors.since
            survivors = survivors._replace(
                since=since.update((l, (tag, since.get(l))) for l, tag in changes)
            )
    return state._replace(live=live, survivors=survivors)


def _recorded(state: State, live: Blocks, snaps: Map) -> State:
    """After a snapshot operation."""
    older = state.survivors if state.rules.profile == "prefix" else None
    return state._replace(live=live, snaps=snaps, survivors=Image(live, snaps, EMPTY, older))


def _cut(state: State, after: State) -> State:
    """The power fails before the answer: what survives is what would have, had it happened or not."""
    left, survivors = after.survivors, state.survivors
    if after.live is not state.live or after.snaps is not state.snaps:
        includes = left.older is survivors or left.since
        survivors = left if includes else left._replace(older=survivors)
    return state._replace(survivors=survivors, power=False)


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
    if answer == "data-lost" and _beyond_tolerance(state):
        return (state,)  # of any request: a disk that cannot be opened does not know its views
    if faults:
        if answer in faults or answer == "unknown-outcome":
            return (state,)
        return (state._replace(power=False),) if answer == "cut" else ()
    if answer == "ok":
        return (happen(),)
    if answer == "unknown-outcome":
        after = (
            happen()
        )  # where the disk stays as it is, that it did not happen allows all that both allow
        return (
            (state,) if after.live is state.live and after.snaps is state.snaps else (after, state)
        )
    if answer == "cut":
        return (_cut(state, happen()),)
    return (state,) if answer in excuses else ()


NONE: frozenset[str] = frozenset()
NO_SPACE = frozenset(["no-space"])
OUT_OF_RANGE = frozenset(["out-of-range"])


def _out_of_range(state: State, lba: int, count: int) -> frozenset[str]:
    return NONE if 0 <= lba < state.size and lba + count <= state.size else OUT_OF_RANGE


def _missing(state: State, name: str) -> frozenset[str]:
    if name in state.snaps:
        return NONE
    return frozenset(
        ["no-such-snapshot"] if NAME.fullmatch(name) else ["bad-request", "no-such-snapshot"]
    )


def _taken(state: State, name: str) -> frozenset[str]:
    if name in state.snaps:
        return frozenset(["snapshot-exists"])
    return NONE if NAME.fullmatch(name) else frozenset(["bad-request"])


def faults_of(state: State, event: Event) -> frozenset[str]:
    """The codes with one of which the request must be refused; none if it must not be."""
    faults, lba = NONE, event.get("lba")
    if lba is not None:
        faults = _out_of_range(
            state, lba, len(event["tags"]) if event["op"] == "write" else event["count"]
        )
    match event["op"]:
        case "snapshot":
            return _taken(state, event["name"])
        case "delete" | "revert":
            return _missing(state, event["name"])
        case "read" if event.get("view") is not None:
            return faults | _missing(state, event["view"])
    return faults


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
            _exactly(EMPTY, EMPTY),
            True,
            EMPTY,
            Devices(),
        ),
    )


def _write(state: State, event: Event, answer: str) -> States:
    lba, tags = event["lba"], event["tags"]

    def happen() -> State:
        changes = list(enumerate(tags, lba))
        return _buffered(state, state.live.update(changes), changes)

    return _answer(state, answer, _out_of_range(state, lba, len(tags)), NO_SPACE, happen)


def _unmap(state: State, event: Event, answer: str) -> States:
    lba, count = event["lba"], event["count"]

    def happen() -> State:
        changes = [(l, ZERO) for l in range(lba, lba + count)]
        return _buffered(state, state.live.update(changes), changes)

    return _answer(state, answer, _out_of_range(state, lba, count), NO_SPACE, happen)


def _snapshot(state: State, event: Event, answer: str) -> States:
    name = event["name"]
    return _answer(
        state,
        answer,
        _taken(state, name),
        NO_SPACE,
        lambda: _recorded(state, state.live, state.snaps.set(name, state.live)),
    )


def _delete(state: State, event: Event, answer: str) -> States:
    name = event["name"]
    return _answer(
        state,
        answer,
        _missing(state, name),
        NONE,
        lambda: _recorded(state, state.live, state.snaps.delete(name)),
    )


def _revert(state: State, event: Event, answer: str) -> States:
    name = event["name"]
    return _answer(
        state,
        answer,
        _missing(state, name),
        NO_SPACE,
        lambda: _recorded(state, state.snaps[name], state.snaps),
    )


def _flush(state: State, event: Event, answer: str) -> States:
    return _answer(
        state,
        answer,
        NONE,
        NONE,
        lambda: state._replace(survivors=_exactly(state.live, state.snaps)),
    )


def _read(state: State, event: Event, answer: str) -> States:
    lba, view = event["lba"], event.get("view")
    faults = _out_of_range(state, lba, event["count"])
    if view is not None:
        faults |= _missing(state, view)
    if answer != "ok" or faults or not state.power:
        return _answer(state, answer, faults, NONE, lambda: state)
    blocks = state.live if view is None else state.snaps[view]
    bound = state.bound
    for l, tag in enumerate(event["result"]["tags"], lba):
        held = blocks.get(l, ZERO)
        if held != tag:
            bound = _decided(held, tag, bound)
            if bound is None:
                return ()
    return (state,) if bound is state.bound else (state._replace(bound=bound),)


def _decided(held: int | Choice, tag: int, bound: Map) -> Map | None:
    """`bound` once what is `held` was read as `tag`; None if it cannot be."""
    taken = []
    while isinstance(held, Choice) and held not in bound:
        taken.append(held)
        if tag in held.tags:
            break
        held = held.base
    else:
        if tag != (bound[held] if isinstance(held, Choice) else held):
            return None
    return bound.update((choice, tag) for choice in taken)


def _crash(state: State, event: Event, answer: str) -> Iterator[State]:
    """A power cut, and recovery, which another power cut may cut short."""
    if answer == "cut":
        yield state._replace(power=False)
    if answer != "ok":
        return
    image: Image | None = state.survivors
    while image is not None:
        live = image.live
        for l, pair in image.since.items():
            held, tags = live.get(l, ZERO), set()
            while pair is not None:
                tags.add(pair[0])
                pair = pair[1]
            if tags != {held}:
                live = live.set(l, Choice(held, frozenset(tags)))
        yield state._replace(
            live=live, snaps=image.snaps, survivors=_exactly(live, image.snaps), power=True
        )
        image = image.older


# Devices and hints: none of it is visible in what the disk reads as.


def _hint(state: State, event: Event, answer: str) -> States:
    if not state.power:
        return ()
    failed, back, lost = state.devices
    device = event.get("device")
    if answer == "cut":
        if event["op"] in ("fail", "replace"):  # whether it took effect is not known
            lost = (
                lost or event["op"] == "replace" and len(failed | {device}) > state.rules.tolerates
            )
            state = state._replace(devices=Devices(failed | {device}, back - {device}, lost))
        return (state._replace(power=False),)
    match event["op"]:
        case "fail":
            failed, back = failed | {device}, back - {device}
        case "return" if device in failed:
            back = back | {device}
        case "replace":
            lost = lost or len(failed | {device}) > state.rules.tolerates
            failed, back = failed | {device}, back | {device}
        case "settle" if answer == "ok":
            failed, back = failed - back, frozenset()
        case _:
            return (state,)
    return (state._replace(devices=Devices(failed, back, lost)),)


def _beyond_tolerance(state: State) -> bool:
    return state.devices.lost or len(state.devices.failed) > state.rules.tolerates


def _distinct(states: States) -> States:
    """One state of those that are alike. States that differ in form only may both stay: it does no harm."""
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
