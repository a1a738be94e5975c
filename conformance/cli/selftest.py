"""`conformance selftest`: every planted bug must be found, and honest targets must pass.

It has more than 300 lines because most of them are the options and the tables.
"""

import json
import os
import statistics
import sys
from concurrent.futures import BrokenExecutor, as_completed
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from commandline.output_file import STDOUT, Output
from conformance.campaign import workers
from conformance.campaign.results import Campaign
from conformance.campaign.saved.resume_log import BadProgress, Progress
from conformance.cli import INCONCLUSIVE
from conformance.cli.parameters import refuse_same_file
from conformance.programs import generate
from conformance.selftest import corpus, hunts
from conformance.selftest.hunts import CHECKS, HONEST, NOT_RUN, USUAL, Hunt
from refmodel.bugs import BUGS
from refmodel.core.output_file import write_output

MOST_SECONDS = 10.0  # median CPU time to find and shrink a bug
SHORT = 10  # operations that a shrunk trace has at most, nine times in ten
MOST_SHORT_SECONDS = 60.0  # nine of ten bugs are found and shrunk in this time
NINE_IN_TEN = 0.9
CORPUS_TRACES = 60
WIDE = 150  # characters: the matrix is wider than most terminals


class _BugName(click.Choice[str]):
    """The name of a planted bug. There are too many to print them all."""

    def convert(
        self, value: str, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        if value not in self.choices:
            self.fail(f"there is no bug '{value}' (see docs/self-test.md)", param, context)
        return value


@click.command()
@click.argument("bugs", nargs=-1, type=_BugName([*BUGS, HONEST]), metavar="[BUG]...")
@click.option(
    "--full",
    is_flag=True,
    help="Use all checks: also the crash states of short workloads, and scrub for every bug.",
)
@click.option(
    "--traces",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Largest number of traces per bug.",
)
@click.option(
    "--ops",
    type=click.IntRange(1, generate.MOST_OPS),
    default=30,
    show_default=True,
    help="Approximate number of operations per trace.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option(
    "--honest",
    type=click.IntRange(1),
    metavar="N",
    help="Plant no bugs: run correct targets of all three crash profiles, N operations each.",
)
@click.option(
    "--json",
    "json_file",
    type=Output(standard=True),
    help="Write the matrix as JSON; `-` is stdout, and all else goes to stderr then.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=os.cpu_count() or 1,
    help="Number of processes.  [default: one per core]",
)
@click.option(
    "--resume",
    type=Output(makes_folders=True),
    help="Save progress in this file; the same command continues from there.",
)
def selftest(
    bugs: tuple[str, ...],
    full: bool,
    traces: int,
    ops: int,
    seed: int,
    honest: int | None,
    json_file: Path | None,
    jobs: int,
    resume: Path | None,
) -> None:
    """Plant bugs in the reference engines, and run small targets that are wrong in one way.

    Each must be found, soon and with a short trace, and honest targets must pass. A line is printed
    for each as soon as its checks are done, then a table of what every check found.

    Exit status: 0 if so, else 1; 3 if so, but the host refuses the file of --json, and if one of
    the processes ended by itself.
    """
    refuse_same_file(resume=resume, json=json_file)
    console = Console(width=max(Console().width, WIDE), stderr=json_file == STDOUT)
    if honest:
        sys.exit(_honest(console, honest, seed))
    checks = CHECKS if full else USUAL
    sizes = {"ops": ops, "seed": seed}
    small = [] if bugs else [*corpus.DISKS, *corpus.DIALOGUES]
    calls = {
        bug: partial(hunts.hunt, bug, checks, traces=traces, **sizes)
        for bug in bugs or (HONEST, *BUGS)
    }
    calls |= {fault: partial(hunts.faulty, fault, traces=CORPUS_TRACES, **sizes) for fault in small}
    try:
        kept = Progress(
            resume, {"selftest": 1, "checks": checks, "traces": traces, **sizes}, hunts.of_line
        )
    except BadProgress as error:
        raise click.UsageError(str(error)) from None
    done = {one.bug: one for one in kept.done}
    with closing(workers.on_this_machine(jobs)) as pool:
        for future in as_completed(
            [pool.submit(call) for name, call in calls.items() if name not in done]
        ):
            try:
                one = future.result()
            except BrokenExecutor:
                click.echo(f"inconclusive: a process ended by itself: {pool.ended(seed)}", err=True)
                sys.exit(INCONCLUSIVE)
            done[one.bug] = one
            kept.add([hunts.as_line(one)])
            console.print(
                f"{sum(name in done for name in calls)} of {len(calls)}  {_in_words(one)}",
                highlight=False,
                soft_wrap=True,
            )
    found, wrong = (
        [done[bug] for bug in calls if bug not in small],
        [done[fault] for fault in small],
    )
    hunts.judge_shortest(found, checks)
    console.print()
    console.print(_matrix(found))
    if wrong:
        console.print()
        console.print(_corpus(wrong))
    refused = _write(found + wrong, json_file)
    console.print()
    verdicts = _verdicts(found, wrong)
    for text, good in verdicts:
        console.print(
            f"[{'green' if good else 'red'}]{'ok' if good else 'NOT SO'}[/]  {text}",
            highlight=False,
            soft_wrap=True,
        )
    if refused:
        click.echo(refused, err=True)
    good = all(good for _, good in verdicts)
    sys.exit(1 if not good else INCONCLUSIVE if refused else 0)


def _write(done: list[Hunt], json_file: Path | None) -> str:
    """Write the matrix as JSON. Returns a line if the host refuses, "" if it does not."""
    try:
        if json_file is not None:
            write_output(json_file, json.dumps([_as_json(one) for one in done], indent=1) + "\n")
    except OSError as error:
        return f"the matrix is not written: {error.filename}: {error.strerror}"
    return ""


def _in_words(one: Hunt) -> str:
    """Return a hunt as a line such as `late-discard: stale, model 396 ops, shrunk to 3, 1.0 s`."""
    cells = (f"{check} {cell}" for check, cell in one.cells.items() if cell != NOT_RUN)
    shrunk = () if one.shrunk is None else (f"shrunk to {one.shrunk}",)
    return f"{one.bug}: {', '.join((one.kind, *cells, *shrunk))}, {one.seconds:.1f} s"


def _honest(console: Console, operations: int, seed: int) -> int:
    """Run the honest targets. Return the exit status."""
    results = hunts.honest(operations, seed)
    for profile, result in results.items():
        good = _enough(result, operations)
        console.print(
            f"[{'green' if good else 'red'}]{result.verdict}[/]  {profile}: {result.target}, "
            f"{result.operations:,} operations, {result.crashes:,} crashes, "
            f"{len(result.failures)} alarms",
            highlight=False,
        )
        for one in result.failures:
            console.print(
                f"      {one.verdict.kind}, after {one.trace.operations} operations: "
                f"{one.verdict.clause}; expected {one.verdict.expected}, came {one.verdict.actual}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    return int(not all(_enough(result, operations) for result in results.values()))


def _enough(result: Campaign, operations: int) -> bool:
    return result.verdict == "pass" and result.operations >= operations


def _matrix(found: list[Hunt]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("bug", "no.", "found as", *CHECKS, "shrunk to", "seconds"):
        table.add_column(
            heading,
            justify="right" if heading in ("no.", "shrunk to", "seconds") else "left",
            no_wrap=True,
        )
    for one in sorted(found, key=lambda one: BUGS[one.bug].number if one.bug in BUGS else 0):
        table.add_row(*_row(one))
    return table


def _row(one: Hunt) -> tuple[str, ...]:
    number = "" if one.bug == HONEST else str(BUGS[one.bug].number)
    cells = (one.cells[check] for check in CHECKS)
    return (
        one.bug,
        number,
        one.kind if one.as_it_should_be else f"[red]{one.kind}[/]",
        *cells,
        str(one.shrunk or ""),
        f"{one.seconds:.1f}",
    )


def _corpus(wrong: list[Hunt]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("small target", "is to be", "found as", "operations", "shrunk to"):
        table.add_column(
            heading,
            justify="right" if heading in ("operations", "shrunk to") else "left",
            no_wrap=True,
        )
    for one in wrong:
        table.add_row(
            one.bug,
            " or ".join(sorted(one.expected)),
            one.kind if one.as_it_should_be else f"[red]{one.kind}[/]",
            f"{one.operations:,}",
            str("" if one.shrunk is None else one.shrunk),
        )
    return table


def _verdicts(found: list[Hunt], wrong: list[Hunt]) -> list[tuple[str, bool]]:
    """Return what has to be so, in words, and whether it is."""
    planted = [one for one in found if one.bug != HONEST]
    honest = [one for one in found if one.bug == HONEST]
    missed = [one.bug for one in planted if not one.as_it_should_be]
    verdicts = [
        (
            f"{len(planted) - len(missed)} of {len(planted)} planted bugs found" + _naming(missed),
            not missed,
        )
    ]
    if honest:
        alarms = [one.bug for one in honest if not one.as_it_should_be]
        verdicts.append(
            (
                f"no alarm in {sum(one.operations for one in honest):,} operations of the engine "
                "without a bug",
                not alarms,
            )
        )
    if wrong:
        others = [one.bug for one in wrong if not one.as_it_should_be]
        verdicts.append(
            (
                f"{len(wrong) - len(others)} of {len(wrong)} small targets found as what they are"
                + _naming(others),
                not others,
            )
        )
    shrunk = [one for one in planted if one.failure]
    if len(shrunk) > 1:
        median = statistics.median(one.seconds for one in shrunk)
        verdicts.append(
            (
                f"median to find and shrink one: {median:.1f} s of CPU time (at most "
                f"{MOST_SECONDS:g})",
                median <= MOST_SECONDS,
            )
        )
        short = sum(
            (one.shrunk or 0) <= SHORT and one.seconds <= MOST_SHORT_SECONDS for one in shrunk
        )
        verdicts.append(
            (
                f"{short} of {len(shrunk)} shrunk to at most {SHORT} operations, within "
                f"{MOST_SHORT_SECONDS:g} s (at least nine in ten)",
                short >= NINE_IN_TEN * len(shrunk),
            )
        )
    not_run = sorted(
        {check for check in CHECKS if all(one.cells[check] == NOT_RUN for one in found)},
        key=CHECKS.index,
    )
    if not_run:
        verdicts.append((f"not run: {', '.join(not_run)}", True))
    return verdicts


def _naming(missed: list[str]) -> str:
    return f"; not as it should be: {', '.join(missed)}" if missed else ""


def _as_json(one: Hunt) -> dict[str, Any]:
    return {
        "bug": one.bug,
        "number": BUGS[one.bug].number if one.bug in BUGS else None,
        "expected": sorted(one.expected),
        "class": one.failure.verdict.kind if one.failure else None,
        "checks": one.cells,
        "traces": one.traces,
        "operations": one.operations,
        "shrunk": one.shrunk,
        "needs": one.needs,
        "seconds": round(one.seconds, 2),
        "good": one.as_it_should_be,
    }
