"""What otherwise happens by itself, and the read cache."""

from pathlib import Path

import click

from refmodel.cache.disk import CachedDisk
from refmodel.cli.commands import DISK, disk_at, main
from refmodel.core.errors import Unsupported
from refmodel.registry import Disk


@main.command()
@DISK
def clean(disk: Path) -> None:
    """Clean until a segment has become free."""
    with disk_at(disk) as opened:
        gained = opened.clean()
        click.echo("cleaned" if gained else "nothing to gain", err=True)


@main.command()
@DISK
def checkpoint(disk: Path) -> None:
    """Write a checkpoint, so that the log may be forgotten."""
    with disk_at(disk) as opened:
        opened.checkpoint()


@main.command("resize-cache")
@DISK
@click.argument("bytes", type=click.IntRange(min=1))
@click.option("--block-bytes", type=int, help="Of a cache block.  [default: as it is]")
def resize_cache(disk: Path, bytes: int, block_bytes: int | None) -> None:
    """Give the read cache another size, while the disk is in use too. It is empty then."""
    with disk_at(disk) as opened:
        _cached(opened).resize(bytes, block_bytes)


@main.command()
@DISK
@click.option("--without-cache", is_flag=True, help="Leave the contents of the read cache behind.")
def migrate(disk: Path, without_cache: bool) -> None:
    """Move to another host: its read cache is another one, which takes the contents along. Of interest while the disk is served."""
    with disk_at(disk) as opened:
        slots = _cached(opened).migrate(contents=not without_cache)
    click.echo(f"{slots} slots of the cache taken along", err=True)


def _cached(disk: Disk) -> CachedDisk:
    if not isinstance(disk, CachedDisk):
        raise Unsupported("the disk has no read cache: create it with --cache-bytes")
    return disk
