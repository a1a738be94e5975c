"""`conformance check` and `conformance replay`: traces that were recorded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from conformance import targets
from conformance.campaign import interrupts
from conformance.campaign.driver import Bench
from conformance.cli import INTERRUPTED
from conformance.cli.parameters import STATUS, Recorded, oracle_option, target_option
from conformance.contract import trace as traces
from conformance.contract.printable import printable
from conformance.judging import oracles
from conformance.judging.explain_overlap import drawn
from conformance.judging.judge import judge
from conformance.programs import swarm
from conformance.reports import terminal
from conformance.reports.summary import COLOURS, how_much
from conformance.targets.base import Unusable


@click.command()
@click.argument("files", metavar="TRACE...", nargs=-1, required=True, type=Recorded(folder=True))
@oracle_option
@click.pass_context
def check(context: click.Context, files: tuple[Path, ...], judges: dict[str, Any]) -> None:
    """Judge recorded traces; no target is needed.

    A TRACE may be a folder: every *.jsonl file in it, or below, is judged."""
    read, paths = [], list(_trace_files(files))
    for path in paths:
        try:
            read.append(traces.read(path))
        except traces.BadTrace as error:
            _complain(str(error))
    context.exit(_show_verdicts(read, judges, len(paths) - len(read)))


@click.command()
@click.argument("files", metavar="TRACE...", nargs=-1, required=True, type=Recorded(folder=True))
@click.option(
    "--as-left",
    is_flag=True,
    help="Let each crash leave what it left when the trace was recorded (kernel targets).",
)
@target_option
@oracle_option
@click.pass_context
def replay(
    context: click.Context,
    files: tuple[Path, ...],
    as_left: bool,
    factory: targets.Factory,
    judges: dict[str, Any],
) -> None:
    """Send the operations of recorded traces again, and judge.

    A TRACE may be a folder: every *.jsonl file in it, or below, is replayed. The operations are
    printed if one TRACE is given, or if it fails."""
    if as_left and factory.name.partition(":")[0] != "kernel":
        raise click.UsageError(f"--as-left is for kernel targets, not {factory.name}")
    paths = list(_trace_files(files))
    again: list[traces.Trace] = []
    interrupted = False
    bench = Bench(factory)
    try:
        for path in paths:
            interrupts.look()
            try:
                recorded = traces.read(path)
            except traces.BadTrace as error:
                _complain(str(error))
                continue
            if lacking := swarm.lacking(recorded, bench.hello(recorded.options)):
                _complain(f"{path} has {lacking}, which the target does not declare")
                continue
            again.append(
                bench.drive(recorded.program_with(as_left), recorded.seed, recorded.options)
            )
            again[-1].origin = f"replay of {path}"
    except Unusable as error:
        _complain(f"the target is unusable: {error.message}\n{error.output}".rstrip())
    except KeyboardInterrupt:
        interrupted = True
        _complain("interrupted")
    finally:
        bench.clear()
    if len(paths) == 1:
        for trace in again:
            click.echo("\n".join(traces.numbered(trace.events)))
    status = _show_verdicts(again, judges, len(paths) - len(again), listed=len(paths) > 1)
    context.exit(INTERRUPTED if interrupted else status)


def _complain(text: str) -> None:
    """Say on stderr why something was not judged."""
    click.echo(printable(f"inconclusive: {text}"), err=True)


def _trace_files(files: tuple[Path, ...]) -> Iterator[Path]:
    for path in files:
        if path.is_dir():
            found = sorted(path.rglob("*.jsonl"))
            if not found:
                raise click.UsageError(f"{path}: no *.jsonl in it, or below")
            yield from found
        else:
            yield path


def _show_verdicts(
    read: list[traces.Trace], judges: dict[str, Any], missing: int, listed: bool = False
) -> int:
    """Print a verdict per trace that did not pass, and a summary; return the exit status.

    `missing` traces were not judged. With `listed`, a trace that fails is printed too."""
    console = terminal.console()

    def say(marked: str, text: str) -> None:
        console.print(marked + escape(text), highlight=False, soft_wrap=True)

    verdicts = judge(read, judges) if read else []
    for trace, verdict in zip(read, verdicts, strict=True):
        if verdict.verdict == "pass":
            continue
        say(f"[bold {COLOURS[verdict.verdict]}]{verdict.verdict}[/]  ", trace.origin)
        lines = traces.numbered(trace.events) if listed else []
        for text in [*lines, *drawn(trace, verdict).words(trace)]:
            say("  ", text)
    found = {verdict.verdict for verdict in verdicts} | ({"inconclusive"} if missing else set())
    together = next((one for one in ("fail", "inconclusive") if one in found), "pass")
    unjudged = f", {missing} not judged" if missing else ""
    by = [name for name in judges if name != oracles.INNER or any(trace.geometry for trace in read)]
    say(
        f"[bold {COLOURS[together]}]{together}[/]  ",
        f"{how_much(read)}{unjudged}, judge: {', '.join(by)}",
    )
    return STATUS[together]
