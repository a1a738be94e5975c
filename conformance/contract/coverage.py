"""Coverage: outcomes of operations, events inside the engine, and consecutive pairs of them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from conformance.contract.model import answer_of
from conformance.contract.trace import Event, Trace

Outcome = tuple[str, str]  # an operation, and what came of it


def outcome_of(event: Event) -> str:
    """Return the answer to the operation, or how the target failed."""
    return event["failure"]["kind"] if "failure" in event else answer_of(event)


@dataclass
class Coverage:
    """Counts of outcomes and of events inside: of single ones, and of two in a row."""

    outcomes: Counter[Any] = field(default_factory=Counter)  # Outcome -> times
    pairs: Counter[Any] = field(default_factory=Counter)  # (Outcome, Outcome) -> times
    inside: Counter[Any] = field(default_factory=Counter)  # name of an event -> times
    inside_pairs: Counter[Any] = field(default_factory=Counter)  # (name, name) -> times

    def add(self, trace: Trace) -> None:
        """Count what happened in the trace, but for the creation of its disk."""
        outcomes = [
            (event["op"], outcome_of(event)) for event in trace.events if event["op"] != "create"
        ]
        inside = [
            one["event"]
            for event in trace.events
            for one in event.get("events", ())
            if "event" in one
        ]
        self.outcomes.update(outcomes)
        self.pairs.update(pairwise(outcomes))
        self.inside.update(inside)
        self.inside_pairs.update(pairwise(inside))

    def merge(self, other: "Coverage") -> None:
        """Add what the other has counted."""
        for mine, more in zip(self._counters(), other._counters(), strict=False):
            mine.update(more)

    def as_json(self) -> list[list[Any]]:
        """Return the counters as lists of `[key, times]`, in their order."""
        return [
            sorted(([key, times] for key, times in counter.items()), key=str)
            for counter in self._counters()
        ]

    @classmethod
    def from_json(cls, lists: list[list[Any]]) -> "Coverage":
        """Return the coverage that `as_json` wrote."""
        return cls(*(Counter({_key(key): times for key, times in one}) for one in lists))

    def _counters(self) -> tuple[Counter[Any], ...]:
        return self.outcomes, self.pairs, self.inside, self.inside_pairs


# Answers to a request that has a fault: it was sent to be refused.
DUE_REFUSALS = frozenset(["out-of-range", "no-such-snapshot", "snapshot-exists", "bad-request"])
FEWEST_ASKED = 30  # operations of a kind, from which on their share that succeeded says something
LEAST_SHARE = 0.1


def too_little(outcomes: Counter[Outcome]) -> str:
    """Return which kind of operation hardly ever succeeded, in words, or "" if there is none.

    What was refused tests nothing: a disk that refuses every write keeps the contract."""
    for op in sorted({op for op, _ in outcomes}):
        answers = {answer: times for (of, answer), times in outcomes.items() if of == op and times}
        asked = sum(times for answer, times in answers.items() if answer not in DUE_REFUSALS)
        succeeded = answers.get("ok", 0)
        if asked >= FEWEST_ASKED and succeeded < LEAST_SHARE * asked:
            others = {a: times for a, times in answers.items() if a not in {"ok", *DUE_REFUSALS}}
            mostly = max(others, key=lambda answer: others[answer])
            return f"too little succeeded: {succeeded} of {asked} {op}, most of them {mostly}"
    return ""


def missing_pairs(
    pairs: Counter[Any], declared: Iterable[Outcome]
) -> list[tuple[Outcome, Outcome]]:
    """Return pairs of outcomes that both happened or were expected, but never in a row."""
    single = sorted(declared)
    return [(first, second) for first in single for second in single if not pairs[first, second]]


def _key(key: Any) -> Any:
    return tuple(map(_key, key)) if isinstance(key, list) else key
