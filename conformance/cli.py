"""The command `conformance`."""

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from conformance import display, doctor, exhaustive, faults, generate, linearizable, oracles, overlap, report, runner, swarm, targets, workers
from conformance import trace as traces
from conformance.judge import judge
from conformance.kept import BadKept, Kept
from conformance.media import nbd
from conformance.targets.base import Unusable

OVERLAP_PATIENCE = 20.0  # seconds for an answer
TRACES_A_ROUND = 20  # of requests that overlap
STATUS = {"pass": 0, "fail": 1, "inconclusive": 3}


class Commands(click.Group):
    """The group, with `selftest` where its module is there; it is imported when it is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return super().list_commands(context) + (["selftest"] if find_spec("conformance.selftest") else [])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name == "selftest" and find_spec("conformance.selftest"):
            return import_module("conformance.selftest").command
        return super().get_command(context, name)


class TargetName(click.ParamType):
    """What `--target` takes: a name that resolves to a factory."""

    name = "target"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> targets.Factory:
        if isinstance(value, targets.Factory):
            return value
        try:
            return targets.resolve(value)
        except targets.NoSuchTarget as error:
            self.fail(str(error), param, context)


class OracleNames(click.ParamType):
    """What `--oracle` takes: a comma list of oracles."""

    name = "oracle,..."

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        try:
            return oracles.together(value.split(","))
        except oracles.NoSuchOracle as error:
            self.fail(str(error), param, context)


target_option = click.option("--target", "factory", type=TargetName(), required=True,
                             help="What is tested: see `conformance targets`.")
oracle_option = click.option("--oracle", "judges", type=OracleNames(), default="model", show_default=True,
                              help="Who judges, a comma list: model (the contract in Python), tlc (TLC on specs/, of an engine's inner "
                                   "events too), certified (the checker proved right in Coq, which joins unasked once "
                                   "`make proofs` has built it).")


def _capabilities(context: click.Context, param: click.Parameter, value: str) -> frozenset[str]:
    names = frozenset(filter(None, value.split(",")))
    unknown = sorted(names - set(swarm.CAPABILITIES))
    if unknown:
        raise click.BadParameter(f"'{unknown[0]}' is none of {', '.join(swarm.CAPABILITIES)}")
    return names


def _faults(context: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    try:
        return faults.parse(value)
    except faults.NoSuchFault as error:
        raise click.BadParameter(str(error)) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Is it a virtual disk with snapshots? Test an implementation against the contract, specs/VirtualDisk.tla.

    Exit status: 0 pass, 1 fail, 3 inconclusive, 2 wrong usage."""


@main.command()
@target_option
@click.option("--traces", "count", type=click.IntRange(1),
              help="How many traces; of an exhaustive run, the first so many workloads.  [default: 200; exhaustive: all]")
@click.option("--ops", type=click.IntRange(1, generate.MOST_OPS),
              help="About how many operations a trace, before the views are read back; of an exhaustive run, how many at "
                   "most.  [default: 30; exhaustive: 3]")
@click.option("--seed", type=click.IntRange(0, 2**40), help="The same seed sends the same programs. [default: random]")
@oracle_option
@click.option("--crashes", type=click.Choice(["none", "random", "exhaustive"]), default="random", show_default=True,
              help="Whether power is cut: never; at random between and, where the target can, within operations; or every "
                   "crash state of every short workload (refmodel only).")
@click.option("--resume", type=click.Path(dir_okay=False, path_type=Path),
              help="Keep in this file what has been done, and go on from there.")
@click.option("--jobs", type=click.IntRange(1, 1024), help="Processes. [default: one a core]")
@click.option("--scheduler", metavar="ADDRESS", help="Drive on the workers of this dask scheduler instead; `local` starts one.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Stop after so long, and at --traces if that is given.")
@click.option("--faults", "faulty", callback=_faults, default="", metavar="NAME,...",
              help=f"Of the media (refmodel only): {', '.join(faults.FAULTS)}. One device has them; with @all behind a name, "
                   "every one. What an honest engine may then show is counted, and is no failure.")
@click.option("--overlap", "connections", type=click.IntRange(2, 64), metavar="N",
              help="Requests over N connections at once too, a round for every 20 traces, judged for linearizability, where the "
                   "target takes several (NBD).")
@click.option("--without", "without", metavar="NAME,...", default="", callback=_capabilities,
              help="Leave these capabilities out, to look behind a failure that is known: unmap, device, ...")
@click.option("--report", "folder", type=click.Path(file_okay=False, path_type=Path),
              help="Write report.html, report.md and traces/ into this folder.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JUnit XML.")
@click.pass_context
def run(context: click.Context, factory: targets.Factory, count: int | None, ops: int | None, seed: int | None,
        judges: dict[str, Any], crashes: str, resume: Path | None, jobs: int | None, scheduler: str | None,
        minutes: float | None, faulty: tuple[str, ...], connections: int | None, without: frozenset[str], folder: Path | None,
        json_file: Path | None, junit: Path | None) -> None:
    """Generate traces, run the target through them, and judge each.

    \b
    conformance run --target refmodel --traces 200 --oracle model,tlc
    conformance run --target 'exec:python3 my_disk.py' --report out
    """
    if crashes == "exhaustive":
        ops = exhaustive.LONGEST if ops is None else ops
        if without or faulty or connections:
            raise click.UsageError("--without, --faults and --overlap are of random runs: an exhaustive one has its own operations")
        result = _exhaust(factory, count, ops, judges, resume)
    else:
        if resume is not None and seed is None:
            raise click.UsageError("--resume of a random run needs its --seed")
        ops, seed = ops or 30, random.SystemRandom().randrange(2**31) if seed is None else seed
        count = 200 if count is None and minutes is None else count
        factory = _with_faults(replace(factory, without=without), faulty)
        try:
            crew = _workers(scheduler, jobs, runner.parts_of(ops, judges, count))
            with display.campaign(count, minutes) as progress, _writing():
                result = runner.campaign(factory, count=count, ops=ops, seed=seed, oracles=judges, crashes=crashes == "random",
                                         faulty=faulty, progress=progress, workers=crew, minutes=minutes,
                                         kept=Kept(resume) if resume else None)
        except (workers.NoCluster, BadKept) as error:
            raise click.UsageError(str(error)) from None
        if connections:
            rounds = max(1, len(result.judged) // TRACES_A_ROUND)
            result.overlap = overlap.run(factory, connections, rounds, ops, seed, crashes == "random")
    with _writing():
        if folder is not None:
            report.save(result, folder, ops)
        if json_file is not None:
            json_file.write_text(json.dumps(report.as_json(result), indent=1) + "\n", encoding="utf-8")
        if junit is not None:
            junit.write_text(report.as_junit(result), encoding="utf-8")
    report.show(result, Console(), ops, folder)
    context.exit(STATUS[result.verdict])


def _workers(scheduler: str | None, jobs: int | None, parts: int | None) -> workers.Workers | None:
    """Who drives so many parts; nobody else where there is one only."""
    if scheduler is not None:
        return workers.on_cluster(scheduler)
    jobs = len(os.sched_getaffinity(0)) if jobs is None else jobs
    jobs = jobs if parts is None else min(jobs, parts)
    return workers.on_this_machine(jobs) if jobs > 1 else None


def _with_faults(factory: targets.Factory, faulty: tuple[str, ...]) -> targets.Factory:
    try:
        return faults.on_media(factory, faulty) if faulty else factory
    except faults.NoSuchFault as error:
        raise click.UsageError(str(error)) from None


def _exhaust(factory: targets.Factory, most: int | None, longest: int, judges: dict[str, Any],
             resume: Path | None) -> runner.Campaign:
    """An exhaustive run. Raises UsageError for a target whose media are not the kit's."""
    if factory.name.partition(":")[0] != "refmodel":
        raise click.UsageError(f"{factory.name}: exhaustive runs need media that the kit owns, which only refmodel has")
    if longest > exhaustive.MOST:
        raise click.UsageError(f"--ops {longest} is out of reach: exhaustive runs have at most {exhaustive.MOST} operations")
    workloads = exhaustive.total(factory, longest)
    try:
        with display.bar("workloads", min(most or workloads, workloads)) as progress, _writing():
            return exhaustive.campaign(factory, longest=longest, oracles=judges, most=most, kept=resume, progress=progress)
    except exhaustive.BadProgress as error:
        raise click.UsageError(str(error)) from None


@main.command()
@click.argument("files", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
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


@main.command()
@click.argument("file", metavar="TRACE", type=click.Path(path_type=Path))
@target_option
@oracle_option
@click.pass_context
def replay(context: click.Context, file: Path, factory: targets.Factory, judges: dict[str, Any]) -> None:
    """Send the operations of a recorded trace to a target, and judge what it answers now."""
    try:
        recorded = traces.read(file)
        bench = runner.Bench(factory)
        try:
            again = bench.drive(recorded.program, recorded.seed, recorded.options)
        finally:
            bench.clear()
    except traces.BadTrace as error:
        click.echo(f"inconclusive: {error}", err=True)
        context.exit(STATUS["inconclusive"])
    except Unusable as error:
        click.echo(f"inconclusive: the target is unusable: {error.message}\n{error.output}".rstrip(), err=True)
        context.exit(STATUS["inconclusive"])
    for text in traces.numbered(again.events):
        click.echo(text)
    again.origin = f"replay of {file}"
    context.exit(_show_verdicts([again], judges, 0))


@main.command("doctor")
@target_option
@click.pass_context
def doctor_command(context: click.Context, factory: targets.Factory) -> None:
    """Say whether a target is usable, and what it declares: a few operations of each kind, no verdict.

    Exit status: 0 usable, 1 it does something wrong already, 3 it cannot be tested."""
    try:
        hello, checks = doctor.examine(factory)
    except Unusable as error:
        click.echo(f"unusable: {error.message}\n{error.output}".rstrip())
        context.exit(STATUS["inconclusive"])
    profile = hello["crash_profile"]
    click.echo(f"target        {factory.name}: {hello.get('name', '')} {hello.get('version', '')}".rstrip())
    click.echo(f"blocks        {hello['block_size']} bytes")
    click.echo(f"crash profile {profile or 'none'}: {doctor.PROFILES[profile]}")
    for name in swarm.CAPABILITIES:
        declared = "declared" if name in hello["capabilities"] else "not declared, will be skipped"
        click.echo(f"{name:13} {declared}: {doctor.MEANINGS[name]}")
    for knob, values in factory.knobs.items():
        click.echo(f"option        {knob}: one of {', '.join(map(str, dict.fromkeys(values)))}")
    for check in checks:
        click.echo(f"{'ok' if check.ok else 'WRONG':13} {check.what}{': ' if check.detail else ''}{check.detail}")
    usable = all(check.ok for check in checks)
    click.echo("usable" if usable else "it can be tested, and will fail")
    context.exit(STATUS["pass" if usable else "fail"])


@main.command("overlap")
@click.argument("uri", metavar="NBD_URI")
@click.option("--threads", type=click.IntRange(2, 64), default=4, show_default=True, help="Connections, each with a thread.")
@click.option("--requests", type=click.IntRange(1, 100_000), default=500, show_default=True, help="Of each of them.")
@click.option("--seed", type=click.IntRange(0, 2**40), default=1, show_default=True, help="What they ask for; not how they interleave.")
@click.pass_context
def overlap_command(context: click.Context, uri: str, threads: int, requests: int, seed: int) -> None:
    """Send requests that overlap in time to a zero-filled NBD device; is there an order in which their answers are right?

    The device is written to. Exit status: 0 pass, 1 fail, 3 inconclusive."""
    try:
        history = overlap.drive(lambda: nbd.Device(uri, OVERLAP_PATIENCE), threads, requests, seed)
        opinion = linearizable.judge(history)
    except overlap.Wrong as wrong:
        click.echo(f"fail: {wrong}")
        context.exit(STATUS["fail"])
    except (nbd.Refused, nbd.Unavailable, TimeoutError) as error:
        click.echo(f"inconclusive: {error}", err=True)
        context.exit(STATUS["inconclusive"])
    where = "" if opinion.lba is None else f": block {opinion.lba}"
    click.echo(f"{opinion.verdict}{where}; {threads} connections, {len(history)} calls to single blocks, seed {seed}")
    for call in opinion.stuck:
        click.echo(f"  none of these can come next: {call.op} tag {call.tag}, from {call.invoked} to {call.returned} ns")
    context.exit(STATUS[opinion.verdict])


@main.command("targets")
def targets_command() -> None:
    """What TARGET can be."""
    width = max(map(len, targets.KINDS)) + 2
    for name, meaning in targets.KINDS.items():
        click.echo(f"{name:{width}}{meaning}")


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
            console.print(f"[bold {report.COLOURS[verdict.verdict]}]{verdict.verdict}[/]  {escape(trace.origin)}")
            for text in verdict.words(trace):
                console.print("  " + escape(text), highlight=False, soft_wrap=True)
    found = {verdict.verdict for verdict in verdicts}
    together = "fail" if "fail" in found else "inconclusive" if "inconclusive" in found or bad else "pass"
    unread = f", {bad} unreadable" if bad else ""
    by = [name for name in judges if name != oracles.INNER or any(trace.geometry for trace in read)]
    console.print(f"[bold {report.COLOURS[together]}]{together}[/]  {report.words(read)}{unread}, judged by {', '.join(by)}",
                  highlight=False)
    return STATUS[together]


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot write {error.filename}: {error.strerror}") from None


if __name__ == "__main__":
    main()
