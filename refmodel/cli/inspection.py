"""Commands that look at a disk: counters, pictures, and whether everything stored is correct."""

import json
from itertools import islice
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

from commandline.output_file import Output
from refmodel.array.member import ACTIVE
from refmodel.cache.disk import behind_cache
from refmodel.cli.commands import DISK, disk_at, fail, log_structured, main, require_outside
from refmodel.core.finite_range import CountRange, FiniteRange
from refmodel.core.output_file import write_output
from refmodel.engine.array_disk import ArrayDisk
from refmodel.engine.disk import Disk
from refmodel.inplace.check import check as check_parity
from refmodel.inplace.disk import InPlaceDisk
from refmodel.log_structured.scrub import Findings
from refmodel.log_structured.scrub import scrub as scrub_disk
from refmodel.observe import exporters, pictures
from refmodel.observe.describe import copies, counted, describe
from refmodel.redolog.check import check as check_tables
from refmodel.redolog.disk import RedoLogDisk
from refmodel.serving import live_top
from refmodel.serving.exit_status import DAMAGED, REFUSED


@main.command()
@DISK
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--openmetrics", is_flag=True, help="Print OpenMetrics text, as Prometheus reads it.")
@click.option(
    "--cheap",
    is_flag=True,
    help="With --json: leave out the counters that need a walk over all maps.",
)
def stats(disk: Path, as_json: bool, openmetrics: bool, cheap: bool) -> None:
    """Print the counters of the disk.

    They say what it did since it was opened, and what it holds now. docs/counters.md describes
    each.
    """
    if as_json and openmetrics:
        raise click.UsageError("--json and --openmetrics exclude each other")
    if cheap and not as_json:
        raise click.UsageError("--cheap goes with --json only")
    with disk_at(disk) as opened:
        if as_json:
            click.echo(json.dumps(exporters.as_json(opened, walk=not cheap)))
        elif openmetrics:
            click.echo(exporters.openmetrics(opened), nl=False)
        else:
            click.echo("\n".join(exporters.table(opened)))


@main.command()
@DISK
@click.option(
    "--interval",
    type=FiniteRange(min=0.1),
    default=1.0,
    show_default=True,
    help="Seconds between two updates.",
)
@click.option(
    "--count",
    type=CountRange(1),
    help="End after this number of updates.  [default: end when the disk is closed]",
)
def top(disk: Path, interval: float, count: int | None) -> None:
    """Show live rates of a disk that is open.

    A server or a bench must have it open. A table shows what the disk does, and its state. Into a
    file or a pipe each update is printed below the one before.
    """
    console, frames = Console(), islice(live_top.frames(disk, interval), count)
    if not console.is_terminal:
        for frame in frames:
            console.print(frame, "")
        return
    with Live(console=console, auto_refresh=False) as live:
        for frame in frames:
            live.update(frame, refresh=True)


@main.command(
    epilog="Examples: refmodel inspect d --html d.html; refmodel inspect d --svg views > views.svg"
)
@DISK
@click.option(
    "--html",
    type=Output(standard=True),
    metavar="FILE",
    help="Write all pictures to one HTML file, which needs no other file; -: to stdout.",
)
@click.option(
    "--svg", type=click.Choice(list(pictures.PICTURES)), help="Print one picture on stdout."
)
def inspect(disk: Path, html: Path | None, svg: str | None) -> None:
    """Describe the log, the views, the maps and the segments.

    Without an option it prints text.
    """
    if html is not None and svg is not None:
        raise click.UsageError("--html and --svg exclude each other")
    require_outside(disk, html)
    with disk_at(disk) as opened:
        found = log_structured(opened, "inspect")
        if html is not None:
            write_output(html, pictures.page(found))
        elif svg is not None:
            click.echo(pictures.svg(found, svg))
        else:
            click.echo(describe(found))


@main.command(epilog="Exit status: 5 if data is lost, or what is stored contradicts itself.")
@DISK
def scrub(disk: Path) -> None:
    """Verify every stored copy, and repair wrong ones.

    Of a redo-log chain there is one copy: its tables are compared with each other. An array in
    place has no checksums: its parity is compared with its data, and computed again where it
    differs.
    """
    found = Findings()
    with disk_at(disk) as opened:
        engine = behind_cache(opened)
        if isinstance(engine, RedoLogDisk):
            found.contradictions, found.verified["grain table"] = check_tables(engine)
        elif isinstance(engine, InPlaceDisk):
            found.contradictions, found.verified["parity stripe"] = check_parity(engine)
            found.repaired["parity stripe"] = len(found.contradictions)
            if not engine.array.redundant:
                fail("a device is away: parity cannot be compared", REFUSED)
        else:
            found = scrub_disk(log_structured(opened, "scrub"))
        away = _not_verified(engine)
    for what, count in found.verified.items():
        click.echo(f"{counted(count, what)} verified, {copies(found.repaired[what])} repaired")
    for line in (*found.lost, *found.contradictions, *away):
        click.echo(line, err=True)
    if not found.clean:
        fail(
            f"scrub found {counted(len(found.lost), 'piece')} of data lost "
            f"and {counted(len(found.contradictions), 'contradiction')}",
            DAMAGED,
        )


def _not_verified(disk: Disk) -> list[str]:
    """Return a line for each device of an array whose copies a scrub cannot verify, or not all."""
    return [
        f"device {member.index} is {member.state}: its copies are not all verified"
        for member in (disk.array.members if isinstance(disk, ArrayDisk) else ())
        if member.state is not ACTIVE
    ]
