"""What the opening of a disk has repaired: no command says nothing of damage."""

import click

from refmodel.cache.disk import behind_cache
from refmodel.inplace.disk import InPlaceDisk
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.observe.describe import counted
from refmodel.registry import Disk


def say_what_was_repaired(disk: Disk) -> None:
    """Print a line to stderr for each kind of thing that was wrong when the disk was opened."""
    for what, count in _repaired(behind_cache(disk)).items():
        if count:
            click.echo(f"{counted(count, what)} repaired when the disk was opened", err=True)


def _repaired(disk: Disk) -> dict[str, int]:
    if isinstance(disk, LogStructuredDisk):
        records = disk.state.log.remirrored
    elif isinstance(disk, InPlaceDisk):
        records = disk.journal.remirrored
    else:
        return {}
    array = disk.array
    return {
        "label": array.labels_repaired,
        "checkpoint": array.slots_repaired,
        "page": array.performance.repairs,
        "log record": records,
    }
