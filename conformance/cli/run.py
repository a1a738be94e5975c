"""`conformance run`: a campaign, random or exhaustive, and its reports.

It has more than 300 lines because most of them are the options and their help.
"""

import json
import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from commandline.output_file import STDOUT, Output
from conformance import targets
from conformance.campaign import overlap, random_campaign, workers
from conformance.campaign.crashes import exhaustive_campaign
from conformance.campaign.crashes.crash_states import LONGEST
from conformance.campaign.results import MOST_FAILURES, Campaign
from conformance.campaign.saved.campaign_file import BadKept, Kept
from conformance.campaign.saved.kept_failures import FOLDER, Again, KeptFailures
from conformance.campaign.saved.resume_log import BadProgress
from conformance.cli import INTERRUPTED
from conformance.cli.parameters import STATUS, oracle_option, refuse_same_file, target_option
from conformance.contract.printable import printable
from conformance.judging import fault_excuses
from conformance.programs import generate, swarm
from conformance.reports import display, evidence, folder, machine, terminal
from refmodel.core.finite_range import FiniteRange
from refmodel.core.output_file import write_output

TRACES = 1000  # default number of traces of a run
UNUSED = ("seed", "jobs", "scheduler", "minutes", "in_flight")  # by exhaustive runs
TRACES_A_ROUND = 20  # traces per round of overlapping requests


def _capabilities(context: click.Context, param: click.Parameter, value: str) -> frozenset[str]:
    names = frozenset(filter(None, value.split(",")))
    unknown = sorted(names - set(swarm.CAPABILITIES))
    if unknown:
        raise click.BadParameter(f"'{unknown[0]}' is none of {', '.join(swarm.CAPABILITIES)}")
    return names


def _faults(context: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    try:
        return fault_excuses.parse(value)
    except fault_excuses.NoSuchFault as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@target_option
@click.option(
    "--traces",
    "count",
    type=click.IntRange(1),
    help="Number of traces; with --crashes exhaustive, of workloads.  "
    f"[default: {TRACES}; exhaustive: all]",
)
@click.option(
    "--ops",
    type=click.IntRange(1, generate.MOST_OPS),
    help="Approximate number of operations per trace, before all views are read back; with "
    "--crashes exhaustive, the largest number per workload.  [default: 30; exhaustive: 3]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**40),
    help="Seed of the programs: the same seed sends the same programs.  [default: random]",
)
@oracle_option
@click.option(
    "--crashes",
    type=click.Choice(["none", "random", "exhaustive"]),
    default="random",
    show_default=True,
    help="Power cuts: none; random, between operations, and within them if the target can; or "
    "exhaustive, every crash state of every short workload (refmodel only).",
)
@click.option(
    "--resume",
    type=Output(makes_folders=True),
    help="Save progress in this file in parts of up to 100 traces; the same command "
    "continues from there.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 1024), help="Number of processes.  [default: one per core]"
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the workers of this dask scheduler; `local` starts one.",
)
@click.option(
    "--minutes",
    type=FiniteRange(0, min_open=True),
    help="Begin no trace after this many minutes. The last one is still judged, which may take "
    "another minute.",
)
@click.option(
    "--failures",
    "most_failures",
    type=click.IntRange(1),
    default=MOST_FAILURES,
    show_default=True,
    help="Stop after this many failures. Each is shrunk, which takes up to a minute.",
)
@click.option(
    "--faults",
    "faulty",
    callback=_faults,
    default="",
    metavar="NAME,...",
    help=f"Faults of the media (refmodel only): {', '.join(fault_excuses.FAULTS)}. One device has "
    "them, or every device with @all behind a name. What an honest engine may then show is "
    "counted, and is no failure.",
)
@click.option(
    "--in-flight",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="Largest number of requests in flight, if the target takes several (version 2).",
)
@click.option(
    "--overlap",
    "connections",
    type=click.IntRange(2, 64),
    metavar="N",
    help="Also send requests over N connections at once, one round per 20 traces, and judge them "
    "for linearizability. The target must take several connections (NBD).",
)
@click.option(
    "--without",
    "without",
    metavar="NAME,...",
    default="",
    callback=_capabilities,
    help="Do not use these capabilities (unmap, device, ...), to find failures behind a known one.",
)
@click.option(
    "--keep/--no-keep",
    default=True,
    show_default=True,
    help=f"Keep failures in {FOLDER}/, run them first the next time, and remove those that pass.",
)
@click.option(
    "--report",
    "report_folder",
    type=Output(folder=True),
    help="Write report.html, report.md and traces/ into this folder.",
)
@click.option(
    "--json",
    "json_file",
    type=Output(standard=True),
    help="Write the result as JSON; `-` is stdout, and all else goes to stderr then.",
)
@click.option(
    "--junit",
    type=Output(standard=True),
    help="Write the result as JUnit XML; `-` as above.",
)
@click.pass_context
def run(
    context: click.Context,
    factory: targets.Factory,
    count: int | None,
    ops: int | None,
    seed: int | None,
    judges: dict[str, Any],
    crashes: str,
    resume: Path | None,
    jobs: int | None,
    scheduler: str | None,
    minutes: float | None,
    most_failures: int,
    faulty: tuple[str, ...],
    in_flight: int,
    connections: int | None,
    without: frozenset[str],
    keep: bool,
    report_folder: Path | None,
    json_file: Path | None,
    junit: Path | None,
) -> None:
    """Generate traces, run the target through them, and judge each.

    \b
    conformance run --target refmodel --traces 200 --oracle model,tlc
    conformance run --target 'exec:python3 my_disk.py' --report out
    """
    refuse_same_file(resume=resume, json=json_file, junit=junit)
    if crashes == "exhaustive":
        ops = LONGEST if ops is None else ops
        if without or faulty or connections:
            raise click.UsageError(
                "--without, --faults and --overlap are for random runs: an exhaustive run has "
                "operations of its own"
            )
        _refuse_unused(context)
        result = _exhaust(factory, count, ops, judges, resume, most_failures)
    else:
        if resume is not None and seed is None:
            raise click.UsageError("--resume of a random run needs its --seed")
        ops, seed = ops or 30, random.SystemRandom().randrange(2**31) if seed is None else seed
        count = TRACES if count is None and minutes is None else count
        factory = _with_faults(replace(factory, without=without), faulty)
        kept = KeptFailures(FOLDER, factory.name) if keep else None
        again = _again(kept, factory, judges, faulty)
        try:
            file = Kept(resume) if resume else None
            crew = _workers(scheduler, jobs, random_campaign.parts_of(ops, judges, count))
            with display.campaign(count, minutes) as progress:
                result = random_campaign.campaign(
                    factory,
                    count=count,
                    ops=ops,
                    seed=seed,
                    oracles=judges,
                    crashes=crashes == "random",
                    faulty=faulty,
                    progress=progress,
                    found=lambda result: _tell(kept, result),
                    most_failures=most_failures,
                    workers=crew,
                    minutes=minutes,
                    kept=file,
                    in_flight=in_flight,
                )
        except (workers.NoCluster, BadKept) as error:
            raise click.UsageError(str(error)) from None
        if connections and not result.interrupted:
            rounds = max(1, len(result.judged) // TRACES_A_ROUND)
            result.overlap = overlap.run(
                factory, connections, rounds, ops, seed, crashes == "random"
            )
        result.failures[:0] = again.failures
        _keep(kept, result)
        if again.words:
            click.echo(again.words, err=True)
        if file and result.interrupted:
            held = f"{file.traces:,} of {len(result.judged):,} traces"
            click.echo(f"resume   {resume} has {held}, which are whole parts", err=True)
    refused = _write(result, report_folder, json_file, junit)
    console = terminal.console(stderr=STDOUT in (json_file, junit))
    terminal.show(result, console, None if refused else report_folder)
    if refused:
        click.echo(refused, err=True)
    status = STATUS[result.verdict]
    if refused and result.verdict != "fail":
        status = STATUS["inconclusive"]
    context.exit(INTERRUPTED if result.interrupted else status)


def _refuse_unused(context: click.Context) -> None:
    """Raises UsageError if an option was given that an exhaustive run does not use."""
    for name in UNUSED:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for random runs: an exhaustive run draws nothing, "
                "and is one process that ends with its last workload"
            )


def _write(
    result: Campaign, report_folder: Path | None, json_file: Path | None, junit: Path | None
) -> str:
    """Write the reports. Returns a line for each that the host refuses, "" if there is none."""

    def as_json() -> str:
        return json.dumps(machine.as_json(result), indent=1) + "\n"

    outputs: list[tuple[Path | None, Callable[[Path], None]]] = [
        (report_folder, lambda path: folder.save(result, path)),  # first: the others name its files
        (json_file, lambda path: write_output(path, as_json())),
        (junit, lambda path: write_output(path, machine.as_junit(result))),
    ]
    refused = []
    for path, write in outputs:
        try:
            if path is not None:
                write(path)
        except OSError as error:
            refused.append(f"the report is not written: {error.filename}: {error.strerror}")
    return "\n".join(refused)


def _again(
    kept: KeptFailures | None,
    factory: targets.Factory,
    judges: dict[str, Any],
    faulty: tuple[str, ...],
) -> Again:
    """Send the failures of earlier runs again. Kept failures that cannot be read are no error."""
    if kept is None:
        return Again([], 0, [])
    try:
        return kept.run_again(factory, judges, faulty)
    except OSError as error:
        click.echo(f"kept failures are not run: {error.filename}: {error.strerror}", err=True)
        return Again([], 0, [])


def _keep(kept: KeptFailures | None, result: Campaign) -> None:
    """Keep the failures; a folder that cannot be written to is no error."""
    try:
        if kept is not None:
            kept.keep(result)
    except OSError as error:
        click.echo(f"failures are not kept: {error.filename}: {error.strerror}", err=True)


def _tell(kept: KeptFailures | None, result: Campaign) -> None:
    """Say what was just found, and keep it: the run may be killed before it ends."""
    if kept is not None:
        with suppress(OSError):  # the end of the run says so
            kept.keep(result)
    click.echo(printable(evidence.found(result.failures[-1], result.shrinking)), err=True)


def _workers(scheduler: str | None, jobs: int | None, parts: int | None) -> workers.Workers | None:
    """Return the workers for a number of parts; None if this process drives them."""
    if scheduler is not None:
        return workers.on_cluster(scheduler)
    jobs = len(os.sched_getaffinity(0)) if jobs is None else jobs
    jobs = jobs if parts is None else min(jobs, parts)
    return workers.on_this_machine(jobs) if jobs > 1 else None


def _with_faults(factory: targets.Factory, faulty: tuple[str, ...]) -> targets.Factory:
    try:
        return fault_excuses.on_media(factory, faulty) if faulty else factory
    except fault_excuses.NoSuchFault as error:
        raise click.UsageError(str(error)) from None


def _exhaust(
    factory: targets.Factory,
    most: int | None,
    longest: int,
    judges: dict[str, Any],
    resume: Path | None,
    most_failures: int,
) -> Campaign:
    """Return an exhaustive run. Raises UsageError for a target whose media are not the kit's."""
    if factory.name.partition(":")[0] not in ("refmodel", "kernel"):
        raise click.UsageError(
            f"{factory.name}: exhaustive runs need media that the kit owns: refmodel or kernel"
        )
    if longest > exhaustive_campaign.MOST:
        raise click.UsageError(
            f"--ops {longest} is out of reach: exhaustive runs have at most "
            f"{exhaustive_campaign.MOST} operations"
        )
    workloads = exhaustive_campaign.total(factory, longest)
    try:
        with display.bar("workloads", min(most or workloads, workloads)) as progress:
            return exhaustive_campaign.campaign(
                factory,
                longest=longest,
                oracles=judges,
                most=most,
                most_failures=most_failures,
                kept=resume,
                progress=progress,
            )
    except BadProgress as error:
        raise click.UsageError(str(error)) from None
