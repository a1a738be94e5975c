"""Requests that overlap: is there an order in which the contract admits what they answered?

A request is in flight from its call to its answer. The search walks along the calls and answers
of a trace. It keeps every configuration that is still possible: which requests in flight have taken
effect, and the state of the contract (`conformance.contract.model`) after them. A request takes
effect no later than its answer, so only an answer makes the search take steps. This is just-in-time
linearization (Lowe, "Testing for linearizability", 2017), with four reductions that lose nothing:

- What later reads rule out is not tried (`conformance.judging.orders.lookahead`).
- Before a request, only those are tried that it may need, directly or through others. The rest can
  take effect afterwards. A flush takes effect when it is called.
- Tags that no read returned are one tag: no answer can tell them apart.
- Under the profile `prefix`, two configurations that differ only in what a power cut may leave are
  one configuration with the union of both: until the power cut, no answer depends on it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from conformance.contract import model
from conformance.contract.model import State
from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging.orders.configurations import Config, agrees, merged
from conformance.judging.orders.lookahead import lookahead
from conformance.judging.orders.steps import (
    CHANGE_NOTHING,
    SNAPSHOTS,
    Rules,
    Step,
    live,
    parts_of,
    placed,
    timeline,
    until,
)

MOST_STEPS = 400_000  # steps of the contract, for one trace
PREFIX_STEPS = 2_000  # steps of the contract, to see where a trace without an order ends
UNSEEN = -2  # stands for every tag that no read returned


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
    trace = replace(trace, events=placed(trace.events))
    search = Search(trace, most_steps)
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
        prefix = Trace(trace.hello, until(trace.events, end))
        return Search(prefix, PREFIX_STEPS).run() is not None
    except (TooMany, model.Undecided):
        return False


@dataclass
class Search:
    """The search for an order of one trace."""

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
        self._rules = Rules(hello.get("crash_profile") if crashes else None)
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
        if event["op"] == "flush" and model.answer_of(event) == "ok":
            self._advance(event)  # at once: the sooner it is, the more a power cut may leave
            return
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
            self.configs = merged(
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
        self.configs = merged(found)

    def _levels(
        self, configs: list[Config], able: Callable[[Config], Iterable[int]]
    ) -> Iterator[list[Config]]:
        """Configurations by how many steps they have taken; those left in the list go on."""
        levels: dict[int, list[Config]] = {}
        for config in configs:
            levels.setdefault(len(config.done), []).append(config)
        while levels:
            size = min(levels)
            level = merged(levels.pop(size))
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
            if image is None or agrees(state, image)
        ]

    def _too_late(self, config: Config, step: Step) -> bool:
        """Whether a write has taken effect that, by what is read later, comes after `step`."""
        if step.event["op"] not in ("write", "unmap") or not self._known.later:
            return False
        return any(
            other.number in config.done or other.number not in self.open
            for lba in live(step.event)
            for index in self._known.later.get((step.request, lba), ())
            for other in self._steps.get(index, ())
            if lba in live(other.event)
        )

    def _depends(self, step: Step) -> set[int]:
        """The steps in flight that `step` may have to come after, and itself."""
        reached = {step.number}
        waiting = [step]
        while waiting:
            current = waiting.pop()
            for number, other in self.open.items():
                if number not in reached and self._rules.needs(current.event, other.event):
                    reached.add(number)
                    waiting.append(other)
        return reached

    def _alone(self, event: Event) -> bool:
        """An operation with nothing in flight, or a power cut, which ends what is in flight."""
        if event["op"] == "crash":
            self._cut()
        self._advance(event)
        return bool(self.configs)

    def _advance(self, event: Event) -> None:
        """The event takes effect in every configuration."""
        self.configs = merged(
            Config(config.done, state)
            for config in self.configs
            for state in model.step((config.state,), event)
        )

    def _cut(self) -> None:
        """Each step in flight took effect before the power cut, or never does."""
        able = {
            number for number, step in self.open.items() if step.event["op"] not in CHANGE_NOTHING
        }
        found: list[Config] = []
        if self._rules.profile == "block" and not any(
            self.open[number].event["op"] in SNAPSHOTS for number in able
        ):  # a write only adds to what a power cut may leave of its blocks
            found = [self._all_taken(config, able - config.done) for config in self.configs]
        else:
            for configs in self._levels(self.configs, lambda config: able - config.done):
                found += configs
        self.open.clear()
        self.configs = merged(Config(frozenset(), config.state) for config in found)

    def _all_taken(self, config: Config, numbers: Iterable[int]) -> Config:
        """The configuration after all of these steps that can take effect."""
        for number in numbers:
            for state in model.step((config.state,), self.open[number].event):
                config = Config(config.done | {number}, state)
        return config
