"""The command `bench`."""

import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import click

from commandline.output_file import STDOUT, Output
from refmodel.array.layout import LAYOUTS
from refmodel.bench import cleaning_theory, nbd_comparison, runner, steady_state
from refmodel.bench.fio_json import jobs
from refmodel.bench.json_lines import Lines, json_lines, recorded
from refmodel.bench.progress import progress
from refmodel.bench.results import describe
from refmodel.bench.scale import cleaning_in_steps, node_writes
from refmodel.bench.scale import table as scale_table
from refmodel.bench.workloads.profiles import PROFILES
from refmodel.bench.workloads.workload import DISK
from refmodel.cli.commands import (
    CACHE,
    CACHE_BLOCK,
    COMPRESSION,
    DEDUPLICATION,
    ENGINE,
    FOLDER,
    MEMORY,
    given,
    main,
    options_planned,
    require_outside,
    run_on,
)
from refmodel.core.finite_range import CountRange, FiniteRange

MOST_SCALE = 1024  # a disk of 64 GiB
SCALE_OPTIONS = {"profile", "blocks", "operations", "memory", "json_path"}


def _cleaning(ctx: click.Context, lines: Lines, options: dict[str, Any]) -> None:
    _require_no_options(ctx, "cleaning")
    click.echo(cleaning_theory.HEADER)
    for row in recorded(cleaning_theory.table(), lines, profile="cleaning"):
        click.echo(cleaning_theory.describe(row))


def _steady(ctx: click.Context, lines: Lines, options: dict[str, Any]) -> None:
    _require_no_options(ctx, "steady")
    _show(steady_state.describe(recorded(steady_state.table(), lines, profile="steady")))


def _scale(ctx: click.Context, lines: Lines, options: dict[str, Any]) -> None:
    if given(ctx, ctx.params).keys() - SCALE_OPTIONS:
        raise click.UsageError(
            "the profile scale takes only --blocks, --operations, --memory, --json"
        )
    largest, writes = options["blocks"] or scale_table.USUAL, options["operations"]
    if largest < scale_table.SIZES[0]:
        raise click.UsageError(
            f"the profile scale needs {scale_table.SIZES[0]} blocks, its smallest disk, at least"
        )
    operations = scale_table.table(
        largest, writes=writes or scale_table.WRITES, memory=options["memory"]
    )
    nodes = node_writes.table(largest, writes=writes or node_writes.WRITES)
    steps = cleaning_in_steps.table()
    what = {"profile": "scale"}
    _show(scale_table.describe(recorded(operations, lines, **what, table="operations")))
    _show(node_writes.describe(recorded(nodes, lines, **what, table="nodes")))
    _show(cleaning_in_steps.describe(recorded(steps, lines, **what, table="cleaning in steps")))


# The profiles that print a table of their own.
TABLES: dict[str, Callable[[click.Context, Lines, dict[str, Any]], None]] = {
    "cleaning": _cleaning,
    "scale": _scale,
    "steady": _steady,
}


@main.command(
    "bench",
    epilog="docs/workloads.md describes the profiles. "
    "Example: refmodel bench --profile hpe-8k-50 --scale 0.2",
)
@click.argument("disk", metavar="[DIR]", type=FOLDER, required=False)
@click.option(
    "--profile",
    metavar="NAME",
    type=click.Choice([*PROFILES, *TABLES]),
    multiple=True,
    help="Workload profile to run; may be repeated.  [default: the three of 4 KiB at random]",
)
@ENGINE
@click.option(
    "--layout",
    type=click.Choice(list(LAYOUTS)),
    help="Layout of the devices.  [default: the profile's, if the engine has layouts]",
)
@click.option(
    "--scale",
    type=FiniteRange(0.001, MOST_SCALE),
    default=1.0,
    show_default=True,
    help="Multiplies the size of the disk (64 MiB at 1) and the number of operations.",
)
@click.option(
    "--snapshots",
    type=CountRange(0),
    default=0,
    show_default=True,
    help="Number of snapshots that the disk has when the run begins.",
)
@click.option("--operations", type=CountRange(1), help="Number of operations; overrides --scale.")
@click.option(
    "--blocks",
    type=CountRange(runner.FILL),
    help="Size of the disk in blocks; overrides --scale. Of the profile scale: of its largest "
    "disk.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 1024),
    help="Operations in flight at the same time.  [default: the profile's]",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the operations.")
@COMPRESSION
@DEDUPLICATION
@CACHE
@CACHE_BLOCK
@MEMORY
@click.option(
    "--compare", is_flag=True, help="Run the same operations on a file and on SQLite, too."
)
@click.option(
    "--nbd",
    is_flag=True,
    help="Compare servers in place of a profile: fio over NBD on the engine (RAID-6), on qcow2 in "
    "qemu-nbd, and on memory in the engine's server.",
)
@click.option(
    "--json",
    "json_path",
    type=Output(standard=True),
    metavar="FILE",
    help="Write the results to FILE at the end: one JSON object per line and run, or row; -: to "
    "stdout, and everything else to stderr.",
)
@click.option(
    "--sync",
    is_flag=True,
    help="Wait for the medium at every flush.",
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "processor"]),
    default="wall",
    show_default=True,
    help="Clock of rates and latencies. CPU time is reproducible where other work runs, too; it "
    "does not contain waiting.",
)
@click.pass_context
def bench_command(
    ctx: click.Context,
    /,
    disk: Path | None,
    profile: tuple[str, ...],
    json_path: Path | None,
    nbd: bool,
    clock: str,
    **options: Any,
) -> None:
    """Run workload profiles on a new disk.

    It prints rates and latencies by wall-clock time, CPU time per operation, and device I/Os per
    operation. The disk is made in DIR and stays there. Without DIR it is temporary. The profile
    `cleaning` compares the write amplification of every victim policy with theory; it takes half an
    hour. The profile `scale` shows what single operations cost on disks of 64 MiB to 4 GiB, or up
    to the size that --blocks says, with 0, 12 and 200 snapshots, how many nodes are written, and
    what it costs to clean in steps; it takes a quarter of an hour. The profile `steady` compares
    writes while the cleaner works with writes where nothing is cleaned; it takes three minutes.
    """
    require_outside(disk, json_path)
    for_people = redirect_stdout(sys.stderr) if json_path == STDOUT else nullcontext()
    with json_lines(json_path) as lines, for_people:
        if nbd:
            _over_nbd(ctx, lines, options)
            return
        names = profile or ("4k-random-write", "4k-random-read", "4k-random-50-50")
        if disk is not None and len(names) > 1:
            raise click.UsageError("DIR can take one profile only: name it with --profile")
        if (table := next(filter(TABLES.get, names), None)) is not None:
            if len(names) > 1:
                raise click.UsageError(f"the profile {table} runs alone")
            TABLES[table](ctx, lines, options)
            return
        for name in names:
            with options_planned(), progress(name) as watch_run:
                result = runner.run(
                    name,
                    path=disk,
                    watch=watch_run,
                    run_command=run_on,
                    wall=clock == "wall",
                    **options,
                )
            click.echo(describe(result))
            lines.append({**result.as_dict(), "jobs": jobs(result)})


def _require_no_options(ctx: click.Context, profile: str) -> None:
    if given(ctx, ctx.params).keys() - {"profile", "json_path"}:
        raise click.UsageError(f"the profile {profile} runs alone, and takes no options but --json")


def _show(printed: Iterable[str]) -> None:
    for line in printed:
        click.echo(line)


def _over_nbd(ctx: click.Context, lines: Lines, options: dict[str, Any]) -> None:
    known = {"nbd", "json_path", "layout", "blocks", "operations", "sync"}
    if given(ctx, ctx.params).keys() - known:
        raise click.UsageError("--nbd takes only --layout, --blocks, --operations, --sync, --json")
    layout = options["layout"] or "raid6-4+2"
    try:
        runs = list(
            nbd_comparison.compare(
                layout=layout,
                blocks=options["blocks"] or DISK,
                operations=options["operations"] or 10_000,
                sync=options["sync"],
            )
        )
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None
    click.echo(nbd_comparison.describe(runs, layout, sync=options["sync"]))
    lines += ({"server": name, "layout": layout, **run.as_dict()} for name, run in runs)
