"""The evidence of a failure: its operations, the disk's options, and commands to reproduce it."""

import re
import shlex
from typing import Any

from conformance.campaign.results import Campaign, Failure
from conformance.contract import trace as traces
from conformance.contract.printable import printable
from conformance.judging.explain_overlap import bars
from conformance.reports import summary

LAST = 30  # operations that people see of a failure, besides those that its verdict names


def replay_line(campaign: Campaign, failure: Failure) -> str:
    """Return the command that shows the failure again: a replay of its trace if that is on file."""
    if failure.trace.origin:
        return f"conformance replay {shlex.quote(failure.trace.origin)} {_target(campaign)}"
    return run_line(campaign, failure)


def run_line(campaign: Campaign, failure: Failure) -> str:
    """Return the command that finds the failure again from its seed, without any file."""
    without = f" --without {','.join(campaign.without)}" if campaign.without else ""
    line = f"conformance run {_target(campaign)}{without}{campaign.how}"
    if campaign.workloads or failure.number is None:
        return line
    return f"{line} --seed {campaign.seed} --ops {campaign.ops} --traces {failure.number + 1}"


def shrink_line(campaign: Campaign, failure: Failure) -> str:
    """Return the command that goes on shrinking; empty if that is done, or the trace is no file."""
    if not failure.unfinished or not failure.trace.origin:
        return ""
    return f"conformance shrink {shlex.quote(failure.trace.origin)} {_target(campaign)}"


def _target(campaign: Campaign) -> str:
    return f"--target {shlex.quote(campaign.target)}"


def options(failure: Failure) -> str:
    """Return the options of the disk, such as `layout=mirror, spares=1`; empty if it has none.

    Those that do not matter are only counted."""
    chosen = sorted(failure.trace.options.items())
    shown = [f"{name}={value}" for name, value in chosen if name not in failure.usual]
    usual = len(chosen) - len(shown)
    if usual:
        others = "1 other" if usual == 1 else f"{usual} others"
        shown.append(f"{others} as usual" if shown else f"all {usual} usual")
    return ", ".join(shown)


def how_often(failure: Failure) -> str:
    """Return how often a flaky failure came back, such as `3 of 10`; empty if it always does."""
    return f"{failure.failed} of {failure.repeats}" if failure.flaky else ""


def found_in(group: list[Failure]) -> str:
    """Return where the failures of one bug were found, such as `trace 3, again in traces 8, 9`."""
    numbers = sorted(one.number for one in group if one.number is not None)
    kept = len(group) - len(numbers)
    if kept > 1:
        text = f"{kept} failures kept from earlier runs"
    elif kept:
        text = "a failure kept from an earlier run"
    else:
        text = f"trace {numbers.pop(0)}"
    plural = "trace" if len(numbers) == 1 else "traces"
    return text + (f", again in {plural} {', '.join(map(str, numbers))}" if numbers else "")


def shortened(failure: Failure) -> str:
    """Return how long the trace is and was, and whether shrinking was finished."""
    length = failure.trace.operations
    text = summary.counted(length, "operation")
    if length < failure.before:
        text = f"shortened from {failure.before} to {text}"
    return text + (" (shrinking was not finished)" if failure.unfinished else "")


def found(failure: Failure, shrinking: bool) -> str:
    """Return a line about a failure that is now being shrunk, or that was shrunk or is left as it
    is, such as `failure  trace 2: stale, shortened from 33 to 3 operations: FILE`."""
    text = f"failure  trace {failure.number}: {failure.verdict.kind}"
    if shrinking:
        operations = summary.counted(failure.trace.operations, "operation")
        return f"{text}, {operations}; shrinking takes up to a minute"
    kept = f": {failure.trace.origin}" if failure.trace.origin else ""
    return f"{text}, {shortened(failure)}{kept}"


def listing(failure: Failure, last: int | None = None) -> list[str]:
    """Return the operations up to the one that failed, one line each; a `>` marks it.

    Of requests that overlap all are shown, each with a bar from its call to its answer. With `last`
    only so many are shown up to the failing one, those called before its answer, `create`, and
    what the verdict names.
    """
    at, around, events = failure.verdict.at, failure.verdict.lba, failure.trace.events
    overlapping = failure.trace.overlapping
    indices = range(len(events) if at is None or overlapping else at + 1)
    chosen = sorted(_told(failure, indices, last))
    if overlapping:
        lines = bars(failure.trace, chosen, around)
    else:
        lines = [f"{index:4}  {traces.line(events[index], around)}" for index in chosen]
    shown = []
    for before, index, text in zip([-1, *chosen], chosen, lines, strict=False):
        if index > before + 1:
            shown.append(f"   ...  {index - before - 1} operations")
        shown.append(f"{'>' if index == at else ' '} {printable(text, '')}")
    return shown


def _told(failure: Failure, indices: range, last: int | None) -> set[int]:
    """Return those of `indices` that a listing with `last` shows; all if that leaves out hardly
    any.
    """
    verdict, events = failure.verdict, failure.trace.events
    if last is None or verdict.at is None or verdict.at < last + 5:
        return set(indices)
    end = verdict.at + 1
    answered = events[verdict.at].get("answered")
    late = {index for index in indices[end:] if answered and events[index]["called"] < answered}
    words = " ".join((verdict.expected, verdict.actual, verdict.source))
    named = {0} | {int(number) for number in re.findall(r"\boperation (\d+)", words)}
    return late | set(indices[end - last : end]) | (named & set(indices))


def as_lines(campaign: Campaign, group: list[Failure], last: int | None = LAST) -> list[str]:
    """Return everything about one bug as text: operations, verdict, options, commands.

    `last` is as in `listing`."""
    shown = group[0]
    drawn = shown.number is not None
    notes = {
        "options": printable(options(shown), ""),
        "flaky": how_often(shown)
        and f"sent again, it failed {how_often(shown)} times; a run that failed is shown",
        "found": found_in(group) if len(group) > 1 else "",
        "replay": replay_line(campaign, shown),
        "seed": run_line(campaign, shown) if shown.trace.origin and drawn else "",
        "shrink": shrink_line(campaign, shown),
    }
    return [
        *listing(shown, last),
        *shown.verdict.words(shown.trace),
        *(f"  {name:9} {text}" for name, text in notes.items() if text),
    ]


def operations(failure: Failure) -> list[dict[str, Any]]:
    """Return the operations of the trace as in a trace file, without the engine's own events."""
    return [
        {key: value for key, value in event.items() if key != "events"}
        for event in failure.trace.events
    ]
