"""The result of a campaign on the terminal."""

import sys
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conformance.campaign.grouping import grouped
from conformance.campaign.results import Campaign, Failure
from conformance.contract.printable import printable
from conformance.reports import evidence
from conformance.reports.summary import COLOURS, coverage, figures, in_a_row, unclear
from conformance.reports.worth import worth

PIPED_WIDTH = 10_000  # characters: what is piped to a file or a program is not wrapped
SHOWN_LINES = 20  # lines of the output of an unusable target


class Lasting(Console):
    """A console that is silent once nobody reads it.

    The exit status is still that of the verdict.
    """

    def on_broken_pipe(self) -> None:
        with suppress(SystemExit):  # with status 1, which would say that the target fails
            super().on_broken_pipe()


def console(stderr: bool = False) -> Console:
    """Return a console on stdout, or stderr. It wraps lines only if that is a terminal."""
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Lasting(stderr=stderr, width=None if terminal else PIPED_WIDTH)


def show(campaign: Campaign, out: Console, folder: Path | None) -> None:
    """Print the verdict, what happened, every bug with its shortest trace, and where the files are.

    `folder` is where `--report` wrote; None if it was not given."""
    _say(out, _verdict(campaign.verdict), f"[bold]{_safe(campaign.target)}[/]  ", figures(campaign))
    _note(out, campaign.reason)
    if campaign.output:
        shown = campaign.output.splitlines()[-SHOWN_LINES:]
        _note(out, "it printed:", *("  " + line for line in shown))
    for number, reason in unclear(campaign)[:3]:
        _say(out, _verdict("inconclusive"), f"trace {number}: ", reason)
    if campaign.judged:
        out.print(_coverage_table(campaign))
        if campaign.verdict != "pass":
            _say(out, "[dim]reached[/]   ", "", in_a_row(campaign))
    for group in grouped(campaign.failures):
        _show_bug(campaign, group, out)
    lines = worth(campaign)
    if campaign.counters:
        lines.append(("counters", f"{len(campaign.counters)} of the target: --json, --report"))
    for name, line in lines:
        _say(out, f"[dim]{name:8}[/]  ", "", line)
    if folder is not None:
        _say(out, "[dim]report[/]    ", "", f"{folder / 'report.html'}, report.md, traces/")


def _verdict(verdict: str) -> str:
    return f"[bold {COLOURS[verdict]}]{verdict}[/]  "


def _safe(text: str) -> str:
    """Return the text without control characters and without markup."""
    return escape(printable(text, "\t"))


def _say(out: Console, marked: str, more: str, text: str) -> None:
    """Print a line: `marked` and `more` may hold markup, `text` holds none."""
    out.print(marked + more + _safe(text), highlight=False, soft_wrap=True)


def _note(out: Console, *lines: str) -> None:
    for line in filter(None, lines):
        _say(out, "  ", "", line)


def _show_bug(campaign: Campaign, group: list[Failure], out: Console) -> None:
    title = f"{evidence.found_in(group[:1])}, {evidence.shortened(group[0])}"
    out.print()
    _say(out, _verdict("fail"), "", title)
    _note(out, *evidence.as_lines(campaign, group))
    out.print()


def _coverage_table(campaign: Campaign) -> Table:
    table = _table("operation", "outcomes")
    rows: dict[str, list[str]] = {}
    for op, outcome, times in coverage(campaign):
        shown = f"{outcome} {times}" if times else f"[yellow]{outcome} never[/]"
        rows.setdefault(op, []).append(shown)
    for op, outcomes in rows.items():
        table.add_row(op, ", ".join(outcomes))
    return table


def _table(first: str, second: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, no_wrap=True)
    table.add_column(second)
    return table
