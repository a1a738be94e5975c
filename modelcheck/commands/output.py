"""The output of the commands: one console, one style of table, progress; and a shared option."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import click
from rich.console import Console
from rich.table import Table

from modelcheck.runs import check


class _Console(Console):
    """A console that reports a reader that is gone; rich would end the process with status 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error, for the group of commands."""
        raise BrokenPipeError


console = _Console(width=None if sys.stdout.isatty() else 160)
Item = TypeVar("Item")
Out = TypeVar("Out")

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Number of checkers that run at the same time.",
)


def done(
    work: Callable[[Item], Out], items: Sequence[Item], jobs: int, name: Callable[[Item], str]
) -> dict[str, Out]:
    """Return the results of `work` on the items, by name; show progress meanwhile."""
    made: dict[str, Out] = {}
    with console.status("") as status:
        status.update(f"0 of {len(items)} done")
        for item, came in check.side_by_side(work, items, jobs):
            made[name(item)] = came
            status.update(f"{len(made)} of {len(items)} done, {name(item)} the last")
    return made


def table(*headings: str) -> Table:
    """Return an empty table, with words to the left and numbers to the right."""
    rows = Table(box=None, pad_edge=False)
    for heading in headings:
        left = heading in (
            "run",
            "spec",
            "check",
            "module",
            "result",
            "for",
            "mutant",
            "found by",
            "what",
        )
        rows.add_column(
            heading,
            justify="left" if left else "right",
            overflow="fold",
            no_wrap=heading in ("run", "module", "mutant"),
        )
    return rows
