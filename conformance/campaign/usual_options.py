"""The options of a failing disk that do not matter get their usual values."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from conformance.contract.trace import Trace
from conformance.judging import promises
from conformance.judging.explain import Verdict
from conformance.judging.explain_overlap import drawn
from conformance.programs.shrink import Shrunk, to_failure
from conformance.targets.base import Message, Unusable
from conformance.targets.time_limit import TooLate, limit

MOST_SECONDS = 5.0  # CPU seconds, or six times as many of wall-clock time

Options = dict[str, Any]
Attempt = Callable[[list[Message], Options], tuple[Trace, Verdict] | None]


def with_usual_options(found: Shrunk, usual: Mapping[str, Any], attempt: Attempt) -> Shrunk:
    """Return the failure with as many options at their usual value as it does without the others.

    `attempt` sends a program to a target with other options, and returns its trace and verdict
    if it fails alike, else None. What does not always fail stays as it is, and so do options
    that were not tried when the time limit passed."""
    if found.failed < found.repeats or not found.repeats or found.interrupted:
        return found
    if promises.impossible(found.trace):  # the options are what fails
        return found
    best = found
    try:
        with suppress(TooLate), limit(MOST_SECONDS):
            for name, value in sorted(found.trace.options.items()):
                if usual.get(name, value) != value:
                    options = {**best.trace.options, name: usual[name]}
                    best = _with(options, best, attempt)
    except KeyboardInterrupt:
        best = replace(best, interrupted=True)
    return best if best is found else replace(best, verdict=drawn(best.trace, best.verdict))


def usual_names(trace: Trace, usual: Mapping[str, Any]) -> list[str]:
    """Return the options of the trace that have their usual value."""
    chosen = trace.options
    return [name for name, value in usual.items() if name in chosen and chosen[name] == value]


def _with(options: Options, found: Shrunk, attempt: Attempt) -> Shrunk:
    """Return the failure with these options if it fails alike with them, else as it is."""
    try:
        again = attempt(found.trace.program, options)
    except Unusable:  # these options do not go together
        again = None
    if again is None:
        return found
    trace, verdict = again
    return replace(found, trace=replace(trace, events=to_failure(trace, verdict)), verdict=verdict)
