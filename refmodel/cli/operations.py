"""Commands for operations of the contract, and for making a disk."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from refmodel.array.label import first_in
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
    options_planned,
)
from refmodel.core.finite_range import CountRange
from refmodel.core.validation import require_range
from refmodel.log_structured.geometry import CLEANERS
from refmodel.observe.describe import counted
from refmodel.registry import create, plan

LBA = click.argument("lba", type=int)
COUNT = click.argument("count", type=int, default=1)


@main.command("create")
@DISK
@ENGINE
@click.option(
    "--blocks",
    type=CountRange(1),
    required=True,
    help="Size of the virtual disk in blocks.",
)
@click.option(
    "--layout",
    type=click.Choice(list(LAYOUTS)),
    default="mirror",
    show_default=True,
    help="Layout of the capacity leg.",
)
@click.option("--spares", type=int, default=0, show_default=True, help="Number of spare devices.")
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
    help="Percent of the device I/Os that resync and rebuild may take.",
)
@click.option(
    "--cleaner",
    type=click.Choice(CLEANERS),
    default=CLEANERS[0],
    show_default=True,
    help="Victim policy: which segment the cleaner takes first.",
)
@click.option(
    "--write-back",
    is_flag=True,
    help="Acknowledge operations before they are durable. A crash keeps a prefix of them, "
    "which reaches at least to the last flush.",
)
@click.option(
    "--block-bytes", type=int, default=4096, show_default=True, help="Size of a block in bytes."
)
@click.option(
    "--segment-blocks", type=int, default=128, show_default=True, help="Blocks per segment."
)
@click.option(
    "--segments",
    type=int,
    help="Number of segments.  [default: room for twice the disk's blocks, and a reserve]",
)
@click.option(
    "--log-bytes",
    type=int,
    help="Size of the durable log in bytes.  [default: by the size of the disk, at most 64 MiB]",
)
@click.option(
    "--pages",
    type=int,
    help="Number of pages for tree nodes.  [default: by the size of the capacity leg]",
)
@click.option(
    "--fanout",
    type=int,
    default=0,
    help="Entries per tree node at most: 3 to 128. A small number makes deep trees.  "
    "[default: 0, as many as a page has room for]",
)
@click.option(
    "--layers",
    type=int,
    help="Redo-log chains: number of layers (base and deltas) at most.  [default: 256]",
)
@click.option(
    "--table-cache",
    type=int,
    help="Redo-log chains: sectors of grain tables in memory; -1: all.  [default: by engine]",
)
@click.option(
    "--strip-blocks",
    type=int,
    help="In-place arrays: blocks of a stripe on one device.  [default: 16]",
)
@COMPRESSION
@DEDUPLICATION
@CACHE
@CACHE_BLOCK
@click.option(
    "--allocate",
    is_flag=True,
    help="Have the file system keep room for the whole disk now. Otherwise files grow as they are "
    "written, and a write is refused with no-space if the file system is full.",
)
@click.pass_context
def create_command(
    ctx: click.Context,
    /,
    disk: Path,
    engine: str,
    blocks: int,
    cache_bytes: int,
    cache_block_bytes: int | None,
    allocate: bool,
    **options: Any,
) -> None:
    """Make a new disk in the folder DIR.

    The folder must be empty, or not exist.
    """
    with options_planned():
        shape = plan(engine, blocks, **given(ctx, options))
        cache = CacheSettings.asked(shape, cache_bytes, cache_block_bytes)
    create(disk, shape, cache=cache, allocate=allocate)


@main.command(epilog="Examples: refmodel write d 8 --text hello; printf hello | refmodel write d 8")
@DISK
@LBA
@click.option("--text", help="Write this text in place of stdin.")
@click.option("--fill", type=click.IntRange(0, 255), help="Write COUNT blocks of this byte.")
@click.option(
    "--count",
    type=CountRange(1),
    default=1,
    show_default=True,
    help="With --fill: number of blocks.",
)
@UNSYNCED
@click.pass_context
def write(
    ctx: click.Context,
    /,
    disk: Path,
    lba: int,
    text: str | None,
    fill: int | None,
    count: int,
    no_sync: bool,
) -> None:
    """Write what stdin has to the live view.

    The first block is LBA (logical block address). Whole blocks are written: zeroes fill the last
    one.
    """
    if text is not None and fill is not None:
        raise click.UsageError("--text and --fill exclude each other")
    if fill is None and given(ctx, {"count": count}):
        raise click.UsageError("--count goes with --fill only")
    call: Call = ctx.obj
    if text is None and fill is None:
        call.stdin = sys.stdin.buffer.read(_too_much(disk))
    with disk_at(disk, no_sync) as opened:
        size = opened.geometry.block_bytes
        if fill is not None:
            require_range(opened.geometry, lba, count)  # before there is memory for so much
            data = bytes([fill]) * (size * count)
        else:
            data = os.fsencode(text) if text is not None else call.stdin
        opened.write(lba, data.ljust(-(-len(data) // size) * size, b"\0"))


def _too_much(disk: Path) -> int:
    """Return a number of bytes that no write to the disk may have; -1 if its size is not known."""
    label = first_in(disk)
    return -1 if label is None else label.geometry["blocks"] * label.geometry["block_bytes"] + 1


@main.command()
@DISK
@LBA
@COUNT
@click.option("--view", help="Read this snapshot in place of the live view.")
def read(disk: Path, lba: int, count: int, view: str | None) -> None:
    """Read COUNT blocks to stdout.

    The first block is LBA (logical block address). COUNT is 1 if it is absent.
    """
    with disk_at(disk) as opened:
        click.echo(opened.read(lba, count, view), nl=False)


@main.command()
@DISK
@LBA
@COUNT
@UNSYNCED
def unmap(disk: Path, lba: int, count: int, no_sync: bool) -> None:
    """Unmap COUNT blocks: they read as zeroes.

    The first block is LBA (logical block address). COUNT is 1 if it is absent.
    """
    with disk_at(disk, no_sync) as opened:
        opened.unmap(lba, count)


@main.command()
@DISK
def flush(disk: Path) -> None:
    """Make every acknowledged operation durable. Without --write-back they already are."""
    with disk_at(disk) as opened:
        opened.flush()


@main.command()
@DISK
@click.argument("name")
def snapshot(disk: Path, name: str) -> None:
    """Take a snapshot of the live view, with this NAME."""
    with disk_at(disk) as opened:
        opened.snapshot(name)


@main.command()
@DISK
@click.argument("name")
def delete(disk: Path, name: str) -> None:
    """Delete the snapshot NAME. The background frees what only it held."""
    with disk_at(disk) as opened:
        opened.delete(name)


@main.command()
@DISK
@click.argument("name")
def revert(disk: Path, name: str) -> None:
    """Make the live view equal to the snapshot NAME. All snapshots stay."""
    with disk_at(disk) as opened:
        opened.revert(name)


@main.command()
@DISK
def ls(disk: Path) -> None:
    """List the snapshots, oldest first.

    Each line has the name, and the number of blocks that the snapshot maps.
    """
    with disk_at(disk) as opened:
        for name in opened.snapshots():
            mapped = len(opened.mapped(0, opened.geometry.blocks, name))
            click.echo(f"{name}\t{counted(mapped, 'block')}")
