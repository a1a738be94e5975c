"""Operations on a disk: what the contract has, and making one."""

import sys
from pathlib import Path

import click

from refmodel.array.layout import LAYOUTS
from refmodel.cache.settings import CacheSettings
from refmodel.cli.commands import (
    CACHE,
    CACHE_BLOCK,
    COMPRESSION,
    DEDUPLICATION,
    DISK,
    ENGINE,
    UNSYNCED,
    Call,
    disk_at,
    given,
    main,
)
from refmodel.log_structured.geometry import CLEANERS
from refmodel.registry import create, plan


@main.command("create")
@DISK
@ENGINE
@click.option(
    "--blocks",
    type=click.IntRange(min=1),
    required=True,
    help="Size of the virtual disk, in blocks.",
)
@click.option("--layout", type=click.Choice(list(LAYOUTS)), default="mirror", show_default=True)
@click.option(
    "--spares", type=int, default=0, show_default=True, help="Devices that wait for one to fail."
)
@click.option(
    "--repair-timer",
    type=float,
    default=3600,
    show_default=True,
    help="Seconds that a device may be absent before it is rebuilt on a spare.",
)
@click.option(
    "--repair-share",
    type=int,
    default=30,
    show_default=True,
    help="Percent of device I/Os that resync and rebuild may take.",
)
@click.option(
    "--cleaner",
    type=click.Choice(CLEANERS),
    default=CLEANERS[0],
    show_default=True,
    help="Which segment is cleaned first.",
)
@click.option(
    "--write-back",
    is_flag=True,
    help="Acknowledge before it is durable: a crash keeps a prefix, no shorter than to the last flush.",
)
@click.option("--block-bytes", type=int, default=4096, show_default=True)
@click.option(
    "--segment-blocks", type=int, default=128, show_default=True, help="Blocks of a segment."
)
@click.option(
    "--segments",
    type=int,
    help="Segments of the capacity leg.  [default: twice the disk's blocks, and a reserve]",
)
@click.option(
    "--log-bytes",
    type=int,
    help="Size of the durable log.  [default: by the size of the disk, at most 64 MiB]",
)
@click.option(
    "--pages", type=int, help="Pages for the maps.  [default: by the size of the capacity leg]"
)
@click.option(
    "--fanout",
    type=int,
    default=0,
    help="Entries of a tree node at most; small ones make deep trees.  [default: what a page holds]",
)
@click.option(
    "--layers", type=int, help="Of a redo-log chain: base and deltas at most.  [default: 256]"
)
@click.option(
    "--table-cache",
    type=int,
    help="Of a redo-log chain: sectors of grain tables in memory; -1: all.  [default: the flavour's]",
)
@click.option(
    "--strip-blocks",
    type=int,
    help="Of an in-place array: blocks of a stripe on one device.  [default: 16]",
)
@COMPRESSION
@DEDUPLICATION
@CACHE
@CACHE_BLOCK
@click.pass_context
def create_command(
    ctx: click.Context,
    disk: Path,
    engine: str,
    blocks: int,
    cache_bytes: int,
    cache_block_bytes: int | None,
    **options,
) -> None:
    """Make a new disk in an empty or absent folder."""
    shape = plan(engine, blocks, **given(ctx, options))
    create(disk, shape, cache=CacheSettings.asked(shape, cache_bytes, cache_block_bytes))


@main.command(epilog="Example: refmodel write d 8 --text hello; printf … | refmodel write d 8")
@DISK
@click.argument("lba", type=int)
@click.option(
    "--text", help="Write this text, filled up with zeroes to whole blocks, in place of stdin."
)
@click.option("--fill", type=click.IntRange(0, 255), help="Write COUNT blocks of this byte.")
@click.option(
    "--count", type=click.IntRange(min=1), default=1, show_default=True, help="Blocks, with --fill."
)
@UNSYNCED
@click.pass_obj
def write(
    call: Call, disk: Path, lba: int, text: str | None, fill: int | None, count: int, no_sync: bool
) -> None:
    """Write whole blocks from LBA on: of stdin, filled up with zeroes to whole blocks, unless an option says otherwise."""
    if text is not None and fill is not None:
        raise click.UsageError("--text and --fill exclude each other")
    if text is None and fill is None:
        call.stdin = sys.stdin.buffer.read()
    with disk_at(disk, no_sync) as opened:
        size = opened.geometry.block_bytes
        if fill is not None:
            data = bytes([fill]) * (size * count)
        else:
            data = text.encode() if text is not None else call.stdin
        opened.write(lba, data.ljust(max(1, -(-len(data) // size)) * size, b"\0"))


@main.command()
@DISK
@click.argument("lba", type=int)
@click.argument("count", type=int, default=1)
@click.option("--view", help="A snapshot, in place of the live view.")
def read(disk: Path, lba: int, count: int, view: str | None) -> None:
    """Read COUNT blocks from LBA on to stdout."""
    with disk_at(disk) as opened:
        sys.stdout.buffer.write(opened.read(lba, count, view))


@main.command()
@DISK
@click.argument("lba", type=int)
@click.argument("count", type=int, default=1)
@UNSYNCED
def unmap(disk: Path, lba: int, count: int, no_sync: bool) -> None:
    """Give COUNT blocks from LBA on back: they read as zeroes."""
    with disk_at(disk, no_sync) as opened:
        opened.unmap(lba, count)


@main.command()
@DISK
def flush(disk: Path) -> None:
    """Make durable what was acknowledged; of interest with --write-back."""
    with disk_at(disk) as opened:
        opened.flush()


@main.command()
@DISK
@click.argument("name")
def snapshot(disk: Path, name: str) -> None:
    """Keep what the disk reads as now, under a name."""
    with disk_at(disk) as opened:
        opened.snapshot(name)


@main.command()
@DISK
@click.argument("name")
def delete(disk: Path, name: str) -> None:
    """Delete a snapshot; what only it held is freed in the background."""
    with disk_at(disk) as opened:
        opened.delete(name)


@main.command()
@DISK
@click.argument("name")
def revert(disk: Path, name: str) -> None:
    """Make the live view what a snapshot is; every snapshot stays."""
    with disk_at(disk) as opened:
        opened.revert(name)


@main.command()
@DISK
def ls(disk: Path) -> None:
    """List the snapshots, oldest first, with the number of blocks that each maps."""
    with disk_at(disk) as opened:
        for name in opened.snapshots():
            click.echo(f"{name}\t{len(opened.mapped(0, opened.geometry.blocks, name))} blocks")
