"""Devices that fail, return and are replaced."""

import sys
from pathlib import Path

import click

from refmodel.cli.commands import DISK, REFUSED, disk_at, main
from refmodel.core.errors import DataLost
from refmodel.log_structured.disk import put_back
from refmodel.registry import open_disk


@main.command(epilog="A disk that cannot be opened without the device stays as it is.")
@DISK
@click.argument("device", type=int)
@click.option(
    "--mode",
    type=click.Choice(["absent", "degraded"]),
    default="absent",
    show_default=True,
    help="It may come back, or it will not.",
)
def fail(disk: Path, device: int, mode: str) -> None:
    """Pull a device out: the file is renamed to device-N.pulled."""
    with disk_at(disk) as opened:
        opened.fail(device, mode)


@main.command("return")
@DISK
@click.argument("device", type=int)
def return_command(disk: Path, device: int) -> None:
    """Put an absent device back; what it missed is resynced while the disk is used, or at once by `settle`."""
    try:
        with disk_at(disk) as opened:
            opened.return_(device)
    except DataLost:
        put_back(disk, device)  # it could not be opened without it
        open_disk(disk).close()


@main.command()
@DISK
@click.argument("device", type=int)
def replace(disk: Path, device: int) -> None:
    """Put a new, empty device in the place of one that is gone; it is rebuilt while the disk is used, or at once by `settle`."""
    with disk_at(disk) as opened:
        opened.replace(device)


@main.command()
@DISK
def settle(disk: Path) -> None:
    """Finish reclaim, resync and rebuild."""
    with disk_at(disk) as opened:
        opened.settle()


@main.command(epilog="Exit status: 0 fully redundant, 1 not.")
@DISK
def status(disk: Path) -> None:
    """Devices and components: who is active, absent, degraded, stale or resyncing."""
    with disk_at(disk) as opened:
        standings = opened.status()
        shape, array = opened.geometry, opened.array
        spares = ", ".join(str(device) for device, _ in array.spares) or "none"
        click.echo(f"layout {shape.layout}, tolerates {shape.m}; spares: {spares}")
        for standing in standings:
            waits = (
                f", repair in {max(0, shape.repair_timer - standing.absent):.0f} s"
                if standing.state == "absent"
                else ""
            )
            lacks = f", lacks {standing.lacks} stripes" if standing.lacks else ""
            click.echo(
                f"{standing.leg:<12} component {standing.component}  device {standing.device}  {standing.state}{waits}{lacks}"
            )
    sys.exit(0 if array.redundant else REFUSED)
