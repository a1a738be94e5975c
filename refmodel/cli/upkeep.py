"""Commands for what the engine otherwise does by itself, and for the read cache."""

from pathlib import Path

import click

from refmodel.cache.disk import CachedDisk
from refmodel.cache.read_cache import ReadCache
from refmodel.cli.commands import DISK, disk_at, main
from refmodel.core.errors import Unsupported
from refmodel.core.finite_range import CountRange
from refmodel.registry import Disk


@main.command()
@DISK
def clean(disk: Path) -> None:
    """Run the cleaner until one segment has become free."""
    with disk_at(disk) as opened:
        cleaned = opened.clean()
        click.echo("cleaned" if cleaned else "nothing to clean", err=True)


@main.command()
@DISK
def checkpoint(disk: Path) -> None:
    """Write a checkpoint of the maps.

    After a crash, recovery replays only what came after it in the durable log.
    """
    with disk_at(disk) as opened:
        opened.checkpoint()


@main.command("resize-cache")
@DISK
@click.argument("bytes", type=CountRange(1))
@click.option(
    "--block-bytes", type=int, help="Size of a cache block in bytes.  [default: unchanged]"
)
def resize_cache(disk: Path, bytes: int, block_bytes: int | None) -> None:
    """Set the size of the read cache to BYTES. The cache is empty afterwards.

    This works while the disk is served, too.
    """
    with disk_at(disk) as opened:
        _cache(opened).resize(bytes, block_bytes)


@main.command()
@DISK
@click.option("--without-cache", is_flag=True, help="Do not copy the contents of the read cache.")
def migrate(disk: Path, without_cache: bool) -> None:
    """Move the read cache to another host.

    A virtual machine that migrates does that. Its contents are copied there. This has an effect
    only while the disk is served: a cache ends with its process.
    """
    with disk_at(disk) as opened:
        slots = _cache(opened).migrate(contents=not without_cache)
    click.echo(f"{slots} slots of the cache were copied", err=True)


def _cache(disk: Disk) -> ReadCache:
    if not isinstance(disk, CachedDisk):
        raise Unsupported("the disk has no read cache: create it with --cache-bytes")
    return disk.cache
