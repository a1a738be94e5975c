"""`conformance check` and `conformance replay`: traces that were recorded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.cli.parameters import STATUS, oracle_option, target_option
from conformance.contract import trace as traces
from conformance.judging import oracles
from conformance.judging.judge import judge
from conformance.reports import report
from conformance.targets.base import Unusable


@click.command()
@click.argument(
    "files", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@oracle_option
@click.pass_context
def check(context: click.Context, files: tuple[Path, ...], judges: dict[str, Any]) -> None:
    """Judge recorded traces; no target is needed. A TRACE may be a folder of *.jsonl."""
    read, bad = [], 0
    for path in _trace_files(files):
        try:
            read.append(traces.read(path))
        except traces.BadTrace as error:
            bad += 1
            click.echo(f"inconclusive: {error}", err=True)
    context.exit(_show_verdicts(read, judges, bad))


@click.command()
@click.argument("file", metavar="TRACE", type=click.Path(path_type=Path))
@target_option
@oracle_option
@click.pass_context
def replay(
    context: click.Context, file: Path, factory: targets.Factory, judges: dict[str, Any]
) -> None:
    """Send the operations of a recorded trace to a target, and judge what it answers now."""
    try:
        recorded = traces.read(file)
        bench = Bench(factory)
        try:
            again = bench.drive(recorded.program, recorded.seed, recorded.options)
        finally:
            bench.clear()
    except traces.BadTrace as error:
        click.echo(f"inconclusive: {error}", err=True)
        context.exit(STATUS["inconclusive"])
    except Unusable as error:
        click.echo(
            f"inconclusive: the target is unusable: {error.message}\n{error.output}".rstrip(),
            err=True,
        )
        context.exit(STATUS["inconclusive"])
    for text in traces.numbered(again.events):
        click.echo(text)
    again.origin = f"replay of {file}"
    context.exit(_show_verdicts([again], judges, 0))


def _trace_files(files: tuple[Path, ...]) -> Iterator[Path]:
    for path in files:
        if path.is_dir():
            found = sorted(path.glob("*.jsonl"))
            if not found:
                raise click.UsageError(f"{path}: no *.jsonl in it")
            yield from found
        else:
            yield path


def _show_verdicts(read: list[traces.Trace], judges: dict[str, Any], bad: int) -> int:
    """Print a verdict a trace that did not pass and a summary; the exit status."""
    console = Console()
    verdicts = judge(read, judges) if read else []
    for trace, verdict in zip(read, verdicts):
        if verdict.verdict != "pass":
            console.print(
                f"[bold {report.COLOURS[verdict.verdict]}]{verdict.verdict}[/]  {escape(trace.origin)}"
            )
            for text in verdict.words(trace):
                console.print("  " + escape(text), highlight=False, soft_wrap=True)
    found = {verdict.verdict for verdict in verdicts}
    together = (
        "fail" if "fail" in found else "inconclusive" if "inconclusive" in found or bad else "pass"
    )
    unread = f", {bad} unreadable" if bad else ""
    by = [name for name in judges if name != oracles.INNER or any(trace.geometry for trace in read)]
    console.print(
        f"[bold {report.COLOURS[together]}]{together}[/]  {report.words(read)}{unread}, judged by {', '.join(by)}",
        highlight=False,
    )
    return STATUS[together]
