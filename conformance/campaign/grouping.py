"""Grouping of failures: those whose shrunk traces have the same parts are one bug."""

from collections.abc import Sequence

from conformance.campaign.results import Failure
from conformance.contract.trace import IMPOSSIBLE, Trace
from conformance.judging.explain import Verdict, alike

Outline = tuple[str, str, tuple[str, ...]]

# Operations that stand for each other: a bug that shows after a restart also shows after a crash.
STANDS_FOR = {
    "restart": "crash",
    "replace": "return",
    "checkpoint": "clean",
    "settle": "clean",
    "tick": "clean",
}


def outline(trace: Trace, verdict: Verdict) -> Outline:
    """Return the class, the clause, and the operations up to the failure, in their order."""
    last = len(trace.events) if verdict.at is None else verdict.at
    return verdict.kind, verdict.clause, tuple(event["op"] for event in trace.events[: last + 1])


def grouped(failures: Sequence[Failure]) -> list[list[Failure]]:
    """Return the failures in groups, one group per bug as far as the traces tell; none is empty.

    Two failures are one bug if their classes are alike, the same operation fails, and both traces
    need the same kinds of operations. A trace that could not be shrunk holds what is not needed: it
    joins a group whose needs it contains. The shortest of a group comes first, the others follow as
    they were found; groups come in the order in which they were found."""
    groups: list[list[Failure]] = []
    for failure in sorted(failures, key=lambda one: one.unfinished):
        group = next((group for group in groups if _one_bug(group[0], failure)), None)
        if group is None:
            groups.append([failure])
        else:
            group.append(failure)
            group.sort(key=lambda one: (one.unfinished, one.trace.operations))
    return sorted(groups, key=lambda group: min(failures.index(one) for one in group))


def _one_bug(one: Failure, other: Failure) -> bool:
    """Return whether `other` shows the bug of `one`, which is the better shrunk of the two."""
    if not alike(one.verdict, other.verdict) or _last(one) != _last(other):
        return False
    return _needs(one) <= _needs(other) if other.unfinished else _needs(one) == _needs(other)


def _last(failure: Failure) -> str:
    at = failure.verdict.at
    return _kind(failure.trace.events[-1 if at is None else at]["op"])


def _needs(failure: Failure) -> frozenset[str]:
    """Return the kinds of operations before the one that failed, except reads, and the option that
    should have been refused.
    """
    before, options = failure.trace.events[1 : failure.verdict.at], failure.trace.options
    kinds = frozenset(_kind(event["op"]) for event in before) - {"read"}
    return kinds | {options[IMPOSSIBLE]} if IMPOSSIBLE in options else kinds


def _kind(op: str) -> str:
    return STANDS_FOR.get(op, op)
