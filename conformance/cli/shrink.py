"""`conformance shrink`: make a failing trace shorter."""

from pathlib import Path
from typing import Any

import click

from commandline.output_file import Output
from conformance import targets
from conformance.campaign.attempts import Attempts
from conformance.campaign.batches import judged
from conformance.campaign.driver import Bench
from conformance.campaign.results import Campaign, Failure
from conformance.campaign.saved.kept_failures import FOLDER
from conformance.campaign.usual_options import usual_names, with_usual_options
from conformance.cli import INTERRUPTED
from conformance.cli.parameters import STATUS, Recorded, oracle_option, target_option
from conformance.contract import trace as traces
from conformance.contract.printable import printable
from conformance.contract.trace import BadTrace, Trace
from conformance.judging.explain import Verdict
from conformance.programs.shrink import REPEATS
from conformance.reports import evidence
from conformance.targets.base import Unusable
from refmodel.core.finite_range import FiniteRange

SHORT = ".short.jsonl"  # how the name of a file ends that was shrunk


@click.command()
@click.argument("file", metavar="TRACE", type=Recorded())
@target_option
@oracle_option
@click.option(
    "--seconds",
    type=FiniteRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Stop after this many seconds; of CPU time if the target runs in this process.",
)
@click.option(
    "--output",
    type=Output(),
    help="Write the shorter trace here, which may be TRACE itself.  [default: TRACE.short.jsonl; "
    f"TRACE itself if it is in {FOLDER}/, or was shrunk before]",
)
@click.pass_context
def shrink(
    context: click.Context,
    file: Path,
    factory: targets.Factory,
    judges: dict[str, Any],
    seconds: float,
    output: Path | None,
) -> None:
    """Make a failing trace shorter.

    It sends shorter programs to the target, and keeps what fails.

    If the time runs out, the same command on its output continues. Exit status: 1 the target
    fails, 3 the failure did not come back."""
    bench = Bench(factory)
    try:
        recorded = traces.read(file)
        output = Output().convert(output or _place(file), None, context)  # before the long search
        failed = _first_failure(bench, recorded, judges)
        if failed is None:
            click.echo(f"inconclusive: it does not fail: it was sent {REPEATS} times", err=True)
            context.exit(STATUS["inconclusive"])
        trace, verdict = failed
        attempts = Attempts(bench, trace, verdict, lambda again: judged([again], judges, ())[0])
        found = attempts.shrunk(seconds)
        found = with_usual_options(found, bench.usual, attempts.send_with)
    except BadTrace as error:
        click.echo(f"inconclusive: {error}", err=True)
        context.exit(STATUS["inconclusive"])
    except Unusable as error:
        text = f"inconclusive: the target is unusable: {error.message}\n{error.output}"
        click.echo(printable(text.rstrip()), err=True)
        context.exit(STATUS["inconclusive"])
    finally:
        bench.clear()
    shown = Failure(
        found.trace,
        found.verdict,
        None,
        recorded.before or recorded.operations,
        found.failed,
        found.repeats,
        found.unfinished,
        usual_names(found.trace, bench.usual),
    )
    refused = _write(shown, output)
    found.trace.origin = str(file if refused else output)
    name = Campaign(factory.name, recorded.seed or 0)
    for line in evidence.as_lines(name, [shown], None if refused else evidence.LAST):
        click.echo(line)
    click.echo(f"{evidence.shortened(shown)}: {output}{refused}")
    context.exit(INTERRUPTED if found.interrupted else STATUS["fail"])


def _place(file: Path) -> Path:
    """Return the file of the shorter trace, if the user names none.

    It replaces a kept failure, which the next run would send as well, and what was shrunk before.
    """
    if FOLDER.name in file.absolute().parts or file.name.endswith(SHORT):
        return file
    return file.with_suffix(SHORT)


def _write(failure: Failure, path: Path) -> str:
    """Write the trace. Returns why the host refuses, "" if it does not."""
    try:
        traces.write(failure.on_file, path)
    except OSError as error:
        return f" is not written: {error.strerror}"
    return ""


def _first_failure(
    bench: Bench, recorded: Trace, judges: dict[str, Any]
) -> tuple[Trace, Verdict] | None:
    """Return the trace as it fails now, and its verdict.

    None if it does not fail in REPEATS times.
    """
    for _ in range(REPEATS):
        trace = bench.drive(recorded.program, recorded.seed, recorded.options)
        verdict = judged([trace], judges, ())[0]
        if verdict.verdict == "fail":
            return trace, verdict
    return None
