"""Progress on stderr. Progress is shown only when stderr is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from conformance.campaign.results import OUTCOMES, Campaign


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows a bar: it is told how many are done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with _shown(columns, total) as update:
        yield lambda done: update(completed=done)


@contextmanager
def campaign(total: int | None, minutes: float | None) -> Iterator[Callable[[Campaign], None]]:
    """Yield a function that shows a campaign in one line: traces, traces per second, coverage,
    pairs of outcomes, findings."""
    columns = (
        TextColumn("traces"),
        BarColumn(20),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    seconds = None if minutes is None else 60 * minutes
    with _shown(columns, total or seconds, words="") as update:
        yield lambda result: update(
            completed=len(result.judged) if total else result.seconds, words=words(result)
        )


def words(result: Campaign) -> str:
    """Return one line such as `1,200, 31/s, coverage 40 of 52, 310 pairs, 2 findings`."""
    if result.shrinking:
        return f"{len(result.judged):,}, shrinking failure {len(result.failures)}"
    expected = {(op, outcome) for op, outcomes in OUTCOMES.items() for outcome in outcomes}
    happened = sum(1 for one in expected if result.coverage[one])
    speed = len(result.judged) / result.seconds if result.seconds else 0
    return (
        f"{len(result.judged):,}, {speed:.0f}/s, coverage {happened} of {len(expected)}, "
        f"{len(result.happened.pairs):,} pairs, {len(result.failures)} findings"
    )


@contextmanager
def _shown(
    columns: tuple[Any, ...], total: float | None, **fields: Any
) -> Iterator[Callable[..., None]]:
    if not sys.stderr.isatty():
        yield lambda **changed: None
        return
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total, **fields)
        yield lambda **changed: progress.update(task, **changed)
