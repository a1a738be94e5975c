"""Requests that overlap: is there an order in which the contract admits what they answered?

A request is in flight from its call to its answer. The search walks along the calls and answers
of a trace. It keeps every configuration that is still possible: which requests in flight have taken
effect, and the state of the contract (`conformance.contract.model`) after them. A request takes
effect no later than its answer, so only an answer makes the search take steps. This is just-in-time
linearization (Lowe, "Testing for linearizability", 2017), with four reductions that lose nothing:

- What later reads rule out is not tried (`conformance.judging.lookahead`).
- Before a request, only those are tried that it depends on, directly or through others. The rest
  commutes with it, and can take effect afterwards.
- Tags that no read returned are one tag: no answer can tell them apart.
- Under the profile `prefix`, two configurations that differ only in what a power cut may leave are
  one configuration with the union of both: until the power cut, no answer depends on it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.contract import model
from conformance.contract.model import ZERO, Image, State
from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging.lookahead import lookahead

MOST_STEPS = 400_000  # steps of the contract, for one trace
PREFIX_STEPS = 2_000  # steps of the contract, to see where a trace without an order ends
CORE_STEPS = 40_000  # steps of the contract, to explain a failure
CHANGE_NOTHING = frozenset(["read", "flush"])
SNAPSHOTS = frozenset(["snapshot", "delete", "revert"])
UNSEEN = -2  # stands for every tag that no read returned
WHOLE = 1 << 63  # more blocks than any disk has


class Step(NamedTuple):
    """One step of the order: a request, or one block of a request if blocks are atomic."""

    number: int
    event: Event
    request: int  # its index in the trace


class Config(NamedTuple):
    """What may have happened: the steps in flight that took effect, and the state after them."""

    done: frozenset[int]
    state: State


class TooMany(Exception):
    """The search took more steps than `MOST_STEPS`. The text says at which request."""


@dataclass
class Outcome:
    """What the search found: `at` is the index of the first event without an order, or None.

    `unsure` says why the search gave up. `states` are the contract's states at the end."""

    at: int | None = None
    unsure: str = ""
    states: tuple[State, ...] = ()


def judge(trace: Trace, most_steps: int = MOST_STEPS) -> Outcome:
    """Search for an order in which the contract admits the trace."""
    search = _Search(trace, most_steps)
    try:
        at = search.run()
    except (TooMany, model.Undecided) as reason:
        return Outcome(None, str(reason))
    if at is not None:
        at = _first_without_order(trace, at)
    return Outcome(at, "", tuple(config.state for config in search.configs))


def _first_without_order(trace: Trace, at: int) -> int:
    """The index of the first answer up to which the trace is seen to have no order.

    The search looks ahead, so that it ends early: `at` is no later than that answer. What takes
    more than PREFIX_STEPS is not seen: so the answer may not be the first, but none is wrong."""
    answers = sorted(
        (event["answered"], index)
        for index, event in enumerate(trace.events)
        if event["answered"] is not None
    )
    ends = [position for position, _ in answers]
    first = next((n for n, (_, index) in enumerate(answers) if index == at), 0)
    found = bisect_left(ends, True, first, len(ends) - 1, key=lambda end: _has_none(trace, end))
    return answers[found][1]


def _has_none(trace: Trace, end: int) -> bool:
    """Whether a search of PREFIX_STEPS sees that the trace up to `end` has no order."""
    try:
        prefix = Trace(trace.hello, _until(trace.events, end))
        return _Search(prefix, PREFIX_STEPS).run() is not None
    except (TooMany, model.Undecided):
        return False


def _until(events: Sequence[Event], end: int) -> list[Event]:
    """The calls and answers up to the position `end`."""
    return [
        event if (event["answered"] or 0) <= end else {**event, "answered": None, "result": None}
        for event in events
        if event["called"] <= end
    ]


def core(trace: Trace, at: int) -> list[int]:
    """A smallest set of requests, by index, for which no order exists up to the answer of `at`.

    A request that is left out of the set may take effect at any time after its call, or never, and
    may have answered anything. No request can be left out of the set without an order appearing,
    unless the search for the set took more than `CORE_STEPS`."""
    events = _until(trace.events, trace.events[at]["answered"])
    needed = [
        index
        for index, event in enumerate(events)
        if event["op"] in OVERLAPPING and event["answered"] is not None
    ]
    budget = CORE_STEPS
    length = len(needed) // 2
    while length and budget > 0:
        for start in range(0, len(needed), length):
            rest = needed[:start] + [i for i in needed[start : start + length] if i == at]
            rest += needed[start + length :]
            search = _Search(Trace(trace.hello, list(_relaxed(events, rest))), budget)
            try:
                fails = len(rest) < len(needed) and search.run() is not None
            except (TooMany, model.Undecided):
                fails = False
            budget -= search.taken
            if fails:
                needed = rest
                break
            if budget <= 0:
                break
        else:
            length //= 2
    return needed


def _relaxed(events: Sequence[Event], needed: Iterable[int]) -> Iterator[Event]:
    kept = set(needed)
    for index, event in enumerate(events):
        if index in kept or event["op"] not in OVERLAPPING:
            yield event
        elif event["op"] not in CHANGE_NOTHING:
            yield {**event, "answered": None, "result": None}  # it may happen, or not


@dataclass
class _Search:
    trace: Trace
    most_steps: int
    configs: list[Config] = field(default_factory=list)
    open: dict[int, Step] = field(default_factory=dict)  # called, and not answered with certainty
    taken: int = 0

    def run(self) -> int | None:
        """The index of the first event whose answer has no order; None if all have one."""
        hello = self.trace.hello
        self.configs = [Config(frozenset(), state) for state in model.init(hello)]
        by_block = hello.get("atomic") == "block"
        crashes = any(event["op"] == "crash" for event in self.trace.events)
        self._rules = _Rules(hello.get("crash_profile") if crashes else None)
        self._seen = {
            tag
            for event in self.trace.events
            if event["op"] == "read" and event["result"] is not None and event["result"]["ok"]
            for tag in event["result"]["tags"]
        }
        undoes = hello.get("crash_profile") in ("prefix", "block")
        self._known = lookahead(self.trace.events, undoes)
        self._steps: dict[int, list[Step]] = {}
        self._number = 0
        for _, answered, index in timeline(self.trace.events):
            event = self.trace.events[index]
            if not answered:
                self._call(index, event, by_block)
            elif "failure" in event:
                return None
            elif event["op"] not in OVERLAPPING:
                if not self._alone(event):
                    return index
            elif not self._answer(index, event):
                return index
        return None

    def _call(self, index: int, event: Event, by_block: bool) -> None:
        if event["op"] not in OVERLAPPING or "failure" in event:
            return
        self._steps[index] = []
        if event["op"] == "write":
            event = {
                **event,
                "tags": [tag if tag in self._seen else UNSEEN for tag in event["tags"]],
            }
        for part in parts_of(event, by_block):
            step = Step(self._number, part, index)
            self._number += 1
            self._steps[index].append(step)
            self.open[step.number] = step

    def _answer(self, index: int, event: Event) -> bool:
        """The request has taken effect by now. False if no configuration admits that."""
        if model.answer_of(event) == "unknown-outcome":
            return True  # it takes effect later, or never
        for step in self._steps[index]:
            self._take(step)
            del self.open[step.number]
            self.configs = _merged(
                Config(config.done - {step.number}, config.state) for config in self.configs
            )
            if not self.configs:
                return False
        return True

    def _take(self, step: Step) -> None:
        """Keep the configurations in which `step` has taken effect, with all ways to get there."""
        before = self._depends(step)
        found: list[Config] = []
        for configs in self._levels(self.configs, lambda config: before - config.done):
            found += [config for config in configs if step.number in config.done]
            configs[:] = [config for config in configs if step.number not in config.done]
        self.configs = _merged(found)

    def _levels(
        self, configs: list[Config], able: Callable[[Config], Iterable[int]]
    ) -> Iterator[list[Config]]:
        """Configurations by how many steps they have taken; those left in the list go on."""
        levels: dict[int, list[Config]] = {}
        for config in configs:
            levels.setdefault(len(config.done), []).append(config)
        while levels:
            size = min(levels)
            level = _merged(levels.pop(size))
            yield level
            for config in level:
                for number in able(config):
                    levels.setdefault(size + 1, []).extend(self._after(config, self.open[number]))

    def _after(self, config: Config, step: Step) -> list[Config]:
        self.taken += 1
        if self.taken > self.most_steps:
            raise TooMany(
                f"more than {self.most_steps} steps to find an order: use fewer requests in flight"
            )
        if self._too_late(config, step):
            return []
        done = config.done | {step.number}
        image = self._known.images.get(step.request)
        return [
            Config(done, state)
            for state in model.step((config.state,), step.event)
            if image is None or _agrees(state, image)
        ]

    def _too_late(self, config: Config, step: Step) -> bool:
        """Whether a write has taken effect that, by what is read later, comes after `step`."""
        if step.event["op"] not in ("write", "unmap") or not self._known.later:
            return False
        return any(
            other.number in config.done or other.number not in self.open
            for lba in _live(step.event)
            for index in self._known.later.get((step.request, lba), ())
            for other in self._steps.get(index, ())
            if lba in _live(other.event)
        )

    def _depends(self, step: Step) -> set[int]:
        """The steps in flight that `step` may have to come after, and itself."""
        reached = {step.number}
        waiting = [step]
        while waiting:
            current = waiting.pop()
            for number, other in self.open.items():
                if number not in reached and self._rules.conflict(current.event, other.event):
                    reached.add(number)
                    waiting.append(other)
        return reached

    def _alone(self, event: Event) -> bool:
        """An operation with nothing in flight, or a power cut, which ends what is in flight."""
        if event["op"] == "crash":
            self._cut()
        self.configs = _merged(
            Config(config.done, state)
            for config in self.configs
            for state in model.step((config.state,), event)
        )
        return bool(self.configs)

    def _cut(self) -> None:
        """Each step in flight took effect before the power cut, or never does."""
        able = {
            number for number, step in self.open.items() if step.event["op"] not in CHANGE_NOTHING
        }
        found: list[Config] = []
        for configs in self._levels(self.configs, lambda config: able - config.done):
            found += configs
        self.open.clear()
        self.configs = _merged(Config(frozenset(), config.state) for config in found)


def timeline(events: Sequence[Event]) -> list[tuple[int, bool, int]]:
    """(position, whether it is an answer, index), in the order of the positions.

    Events without positions follow one another."""
    line: list[tuple[int, bool, int]] = []
    last = -1
    for index, event in enumerate(events):
        called = event.get("called", last + 1)
        answered = event.get("answered", called + 1) if "called" in event else called + 1
        line.append((called, False, index))
        last = max(last, called)
        if answered is not None:
            line.append((answered, True, index))
            last = max(last, answered)
        elif event["op"] not in OVERLAPPING:  # such as a crash cut short: it ends there
            line.append((called, True, index))
    return sorted(line)


def parts_of(event: Event, by_block: bool) -> list[Event]:
    """The steps of a request, as events. One without an answer takes effect as if acknowledged."""
    answer = model.answer_of(event)
    if answer in ("cut", "unknown-outcome"):
        if event["op"] == "read":
            return []
        event = {**event, "result": {"ok": True}}
    elif answer != "ok":
        return [event]
    if not by_block or event["op"] not in ("read", "write", "unmap"):
        return [event]
    count = len(event["tags"]) if event["op"] == "write" else event["count"]
    return [_block(event, offset) for offset in range(count)]


def _block(event: Event, offset: int) -> Event:
    part = {**event, "lba": event["lba"] + offset}
    if event["op"] == "write":
        return {**part, "tags": [event["tags"][offset]]}
    if event["op"] == "read":
        result: dict[str, Any] = {**event["result"], "tags": [event["result"]["tags"][offset]]}
        return {**part, "count": 1, "result": result}
    return {**part, "count": 1}


class _Rules(NamedTuple):
    """Which steps do not commute. `profile` is None if there is no power cut in the trace."""

    profile: str | None

    def conflict(self, one: Event, other: Event) -> bool:
        """Whether the order of the two may matter to an answer, or to what a power cut leaves."""
        changes = [event for event in (one, other) if _changes(event)]
        if not changes:
            return False
        if self.profile in ("prefix", "block"):
            if "flush" in (one["op"], other["op"]):
                return True
            if len(changes) == 2 and (
                self.profile == "prefix" or any(event["op"] in SNAPSHOTS for event in changes)
            ):
                return True
        if any(event["op"] in ("snapshot", "delete") for event in changes) and (
            _name(one) is not None and _name(one) == _name(other)
        ):
            return True
        if any(event["op"] in ("write", "unmap", "revert") for event in changes):
            first, second = _live(one), _live(other)
            return first.start < second.stop and second.start < first.stop
        return False


def _changes(event: Event) -> bool:
    return event["op"] not in CHANGE_NOTHING and event["result"]["ok"]


def _name(event: Event) -> str | None:
    """The snapshot that the event speaks of."""
    return event.get("view") if event["op"] == "read" else event.get("name")


def _live(event: Event) -> range:
    """The blocks of the live disk that the event reads or changes."""
    if not event["result"]["ok"] or event.get("view") is not None:
        return range(0)
    if event["op"] in ("snapshot", "revert"):
        return range(WHOLE)
    if "lba" not in event:
        return range(0)
    count = len(event["tags"]) if event["op"] == "write" else event["count"]
    return range(event["lba"], event["lba"] + count)


def _agrees(state: State, image: dict[int, int]) -> bool:
    """Whether the live disk may hold these tags."""
    return all(
        tag in model.possible(state.live.get(lba, ZERO), state.bound) for lba, tag in image.items()
    )


def _key(config: Config) -> tuple[Any, ...]:
    """What two configurations must have alike to be one."""
    state = config.state
    left = state.survivors
    key = (config.done, state.live, state.snaps, state.bound, state.power, state.devices)
    if state.rules.profile == "block":
        since = frozenset((lba, frozenset(_linked(pair))) for lba, pair in left.since.items())
        return (*key, left.live, left.snaps, since)
    return key


def _linked(pair: Any) -> Iterator[int]:
    while pair is not None:
        yield pair[0]
        pair = pair[1]


def _merged(configs: Iterable[Config]) -> list[Config]:
    """One configuration of those that are alike, with everything that a power cut may leave."""
    merged: dict[tuple[Any, ...], Config] = {}
    for config in configs:
        key = _key(config)
        known = merged.get(key)
        if known is None:
            merged[key] = config
        elif known.state.rules.profile == "prefix":
            merged[key] = known._replace(
                state=known.state._replace(
                    survivors=_union(known.state.survivors, config.state.survivors)
                )
            )
    return list(merged.values())


def _union(one: Image, other: Image) -> Image:
    """All images of both lists, the newest of `one` first."""
    if one is other:
        return one
    shared = {id(image) for image in _images(one)}
    known = {(image.live, image.snaps) for image in _images(one)}
    extra = []
    for image in _images(other):
        if id(image) in shared:
            break
        if (image.live, image.snaps) not in known:
            extra.append(image)
    if not extra:
        return one
    older = one.older
    for image in reversed(extra):
        older = image._replace(older=older)
    return one._replace(older=older)


def _images(image: Image | None) -> Iterator[Image]:
    while image is not None:
        yield image
        image = image.older
