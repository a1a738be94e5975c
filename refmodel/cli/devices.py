"""Commands for devices: they fail, return and are replaced."""

import sys
from contextlib import closing
from pathlib import Path

import click

from refmodel.cli.commands import DISK, array_disk, disk_at, main
from refmodel.core.errors import BadRequest, DataLost
from refmodel.log_structured.disk import put_back
from refmodel.media.enclosure import Enclosure
from refmodel.observe.describe import counted
from refmodel.registry import open_disk
from refmodel.serving.exit_status import REFUSED

DEVICE = click.argument("device", type=int)


@main.command(
    epilog="More devices may fail than the layout tolerates. Then data is lost until they return."
)
@DISK
@DEVICE
@click.option(
    "--mode",
    type=click.Choice(["absent", "degraded"]),
    default="absent",
    show_default=True,
    help="absent: the device may return, a repair timer runs. degraded: it will not return, "
    "its data is rebuilt on a spare at once.",
)
def fail(disk: Path, device: int, mode: str) -> None:
    """Let DEVICE (a number) fail. Its file is renamed to device-N.pulled."""
    opened = None
    try:
        with disk_at(disk) as opened:
            opened.fail(device, mode)
    except DataLost as lost:
        if opened is None:
            raise
        click.echo(f"device {device} has failed; {lost}", err=True)


@main.command("return")
@DISK
@DEVICE
def return_command(disk: Path, device: int) -> None:
    """Bring an absent DEVICE back.

    Resync copies what it missed, while the disk is used; `refmodel settle` finishes that at once.
    """
    opened = None
    try:
        with disk_at(disk) as opened:
            opened.return_(device)
    except DataLost as lost:
        if opened is not None:
            click.echo(f"device {device} is back; {lost}", err=True)
            return
        with closing(Enclosure(disk)) as enclosure:
            if device in enclosure.present():
                raise BadRequest(f"device {device} is there already") from lost
        put_back(disk, device)  # the disk may need it to be opened
        try:
            open_disk(disk).close()
        except DataLost as still:
            click.echo(f"device {device} is back, but the disk still lacks some: {still}", err=True)


@main.command()
@DISK
@DEVICE
def replace(disk: Path, device: int) -> None:
    """Put a new, empty device in the place of DEVICE.

    DEVICE must have failed. Rebuild fills it, while the disk is used; `refmodel settle` finishes
    that at once.
    """
    with disk_at(disk) as opened:
        opened.replace(device)


@main.command()
@DISK
def settle(disk: Path) -> None:
    """Finish all reclaim, resync and rebuild."""
    with disk_at(disk) as opened:
        opened.settle()


@main.command(epilog="Exit status: 0 if every component is active and no witness is lost, else 1.")
@DISK
def status(disk: Path) -> None:
    """Show the state of each component.

    A component is the part of a leg on one device. It is active, absent, degraded, stale or
    resyncing. Two mirrors have a witness besides; if it is lost, `refmodel scrub` makes a new one.
    """
    with disk_at(disk) as opened:
        disk_of_array = array_disk(opened)
        standings = disk_of_array.status()
        shape, array = disk_of_array.geometry, disk_of_array.array
        tolerated = counted(shape.m, "failed device")
        spares = ", ".join(f"device {device}" for device, _ in array.spares) or "none"
        click.echo(f"layout {shape.layout}, tolerates {tolerated}; spares: {spares}")
        can_rebuild = array.roster.usable_spare() is not None
        for standing in standings:
            left = max(0, shape.repair_timer - standing.absent)
            waits = f", rebuild in {left:.0f} s" if standing.state == "absent" else ""
            if not can_rebuild and standing.state in ("absent", "degraded"):
                waits = ", no spare to rebuild it on"
            lacks = f", lacks {counted(standing.lacks, 'stripe')}" if standing.lacks else ""
            click.echo(
                f"{standing.leg:<12} component {standing.component}  device {standing.device}  "
                f"{standing.state}{waits}{lacks}"
            )
        if lost := array.roster.quorum.witness_lost:
            click.echo("witness lost: refmodel scrub makes a new one once both mirrors are there")
    sys.exit(0 if array.redundant and not lost else REFUSED)
