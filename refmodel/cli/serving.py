"""Serving a disk: over NBD, or to the conformance kit."""

import sys
from pathlib import Path

import click

from refmodel.adapter.dialogue import serve as speak
from refmodel.adapter.engine_target import Adapter
from refmodel.array.layout import LAYOUTS
from refmodel.bugs import BUGS
from refmodel.cli.commands import (
    CACHE,
    CACHE_BLOCK,
    COMPRESSION,
    DEDUPLICATION,
    DISK,
    ENGINE,
    UNSYNCED,
    given,
    main,
)
from refmodel.serving.nbdkit_launch import serve as become_nbdkit


@main.command(
    epilog="Any other command on the disk works meanwhile. Try: nbdinfo --list 'nbd+unix:///?socket=PATH'"
)
@DISK
@click.option(
    "--socket",
    "socket_path",
    type=click.Path(path_type=Path),
    required=True,
    metavar="PATH",
    help="The Unix socket to listen on.",
)
@UNSYNCED
def serve(disk: Path, socket_path: Path, no_sync: bool) -> None:
    """Serve the disk over NBD until SIGTERM or SIGINT: live as the default export, each snapshot as a read-only export of its name."""
    become_nbdkit(disk, socket_path, sync=not no_sync)


@main.command()
@ENGINE
@click.option("--layout", type=click.Choice(list(LAYOUTS)), default="mirror", show_default=True)
@click.option("--spares", type=int, default=0, show_default=True)
@click.option("--write-back", is_flag=True, help="Promise `prefix` in place of `ack`.")
@click.option("--block-bytes", type=int, default=4096, show_default=True)
@click.option("--segment-blocks", type=int, default=128, show_default=True)
@click.option("--fanout", type=int, default=0)
@click.option("--capacity-percent", type=int, help="Capacity leg in percent of the disk's blocks.")
@COMPRESSION
@DEDUPLICATION
@CACHE
@CACHE_BLOCK
@click.option(
    "--plant", type=click.Choice(list(BUGS)), default=None, help="Have this bug.", metavar="BUG"
)
@click.pass_context
def adapter(ctx: click.Context, engine: str, plant: str | None, **options) -> None:
    """Speak the dialogue of the conformance kit on stdin and stdout."""
    adapted = Adapter(engine=engine, plant=plant or "", **given(ctx, options))
    try:
        speak(adapted, sys.stdin.buffer, sys.stdout.buffer)
    finally:
        adapted.close()
