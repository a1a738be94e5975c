"""Looking at a disk: counters, pictures, and whether all of it is whole."""

import json
from itertools import islice
from pathlib import Path

import click
from rich.live import Live

from refmodel.cli.commands import DAMAGED, DISK, disk_at, failed, main
from refmodel.core.errors import Unsupported
from refmodel.log_structured.scrub import scrub as scrub_disk
from refmodel.observe import describe as inspection
from refmodel.observe import exporters, pictures
from refmodel.registry import DEFAULT, Disk
from refmodel.serving import live_top as watch


@main.command()
@DISK
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--openmetrics", is_flag=True, help="OpenMetrics text, as Prometheus reads it.")
@click.option(
    "--cheap", is_flag=True, help="With --json: leave out what costs a walk over the maps."
)
def stats(disk: Path, as_json: bool, openmetrics: bool, cheap: bool) -> None:
    """Counters: what the disk holds, and what was done since it was opened; docs/counters.md names them."""
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
    "--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds."
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    help="End after so many.  [default: when the disk is closed]",
)
def top(disk: Path, interval: float, count: int | None) -> None:
    """Watch the counters of a disk that a server or a bench has open."""
    with Live(auto_refresh=False) as live:
        for frame in islice(watch.frames(disk, interval), count):
            live.update(frame, refresh=True)


@main.command(
    epilog="Example: refmodel inspect d --html d.html; refmodel inspect d --svg views > views.svg"
)
@DISK
@click.option(
    "--html",
    type=click.File("w", lazy=True),
    metavar="FILE",
    help="A page with all the pictures, that needs nothing else.",
)
@click.option("--svg", type=click.Choice(list(pictures.PICTURES)), help="One picture, on stdout.")
def inspect(disk: Path, html, svg: str | None) -> None:
    """The log, the views, the maps and the segments in words, or in pictures."""
    with disk_at(disk) as opened:
        _require_log_structured(opened, "inspect")
        if html is not None:
            html.write(pictures.page(opened))
        elif svg is not None:
            click.echo(pictures.svg(opened, svg))
        else:
            click.echo(inspection.describe(opened))


@main.command()
@DISK
def scrub(disk: Path) -> None:
    """Verify every copy of everything, repair what can be, say what is lost."""
    with disk_at(disk) as opened:
        _require_log_structured(opened, "scrub")
        found = scrub_disk(opened)
    for what, count in found.verified.items():
        click.echo(f"{count} {what}s verified, {found.repaired[what]} copies repaired")
    for line in (*found.lost, *found.contradictions):
        click.echo(line, err=True)
    if not found.clean:
        failed(
            f"{len(found.lost)} things are lost, {len(found.contradictions)} contradictions between the maps",
            DAMAGED,
        )


def _require_log_structured(disk: Disk, command: str) -> None:
    if disk.geometry.engine != DEFAULT:
        raise Unsupported(
            f"only the engine {DEFAULT} has the command {command}; this disk is of the engine {disk.geometry.engine}"
        )
