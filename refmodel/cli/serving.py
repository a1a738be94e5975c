"""Commands that serve a disk: over NBD, or to the conformance kit."""

import sys
from pathlib import Path
from typing import Any

import click

from refmodel.adapter.dialogue import serve as serve_requests
from refmodel.adapter.overlapping import OverlappingAdapter
from refmodel.array.layout import LAYOUTS
from refmodel.bugs import BUGS
from refmodel.cli.commands import (
    CACHE,
    CACHE_BLOCK,
    COMPRESSION,
    DEDUPLICATION,
    DISK,
    ENGINE,
    MEMORY,
    UNSYNCED,
    NonEmptyPath,
    given,
    main,
    options_planned,
    run_on,
)
from refmodel.serving.server import serve as serve_over_nbd
from refmodel.serving.sockets import LOOPBACK


@main.command(
    epilog="Other commands on the disk work meanwhile. "
    "Example of a client: nbdinfo --list 'nbd+unix:///?socket=PATH'"
)
@DISK
@click.option(
    "--socket",
    "socket_path",
    type=NonEmptyPath("the path of a socket is not empty"),
    metavar="PATH",
    help="Unix socket to listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"TCP port of {LOOPBACK} to listen on; 0: any free one.",
)
@MEMORY
@UNSYNCED
def serve(
    disk: Path, socket_path: Path | None, port: int | None, memory: int | None, no_sync: bool
) -> None:
    """Serve the disk over NBD until SIGTERM or SIGINT.

    The live view is the default export. Each snapshot is a read-only export of its name.
    """
    if socket_path is None and port is None:
        raise click.UsageError("say where to listen: --socket, --port, or both")
    serve_over_nbd(
        disk, run_on, socket_path=socket_path, port=port, sync=not no_sync, memory=memory
    )


@main.command(epilog="docs/traces.md describes the dialogue.")
@ENGINE
@click.option(
    "--layout",
    type=click.Choice(list(LAYOUTS)),
    default="mirror",
    show_default=True,
    help="Layout of the capacity leg.",
)
@click.option("--spares", type=int, default=0, show_default=True, help="Number of spare devices.")
@click.option(
    "--write-back", is_flag=True, help="Declare the crash profile prefix in place of ack."
)
@click.option(
    "--block-bytes", type=int, default=4096, show_default=True, help="Size of a block in bytes."
)
@click.option(
    "--segment-blocks", type=int, default=128, show_default=True, help="Blocks per segment."
)
@click.option(
    "--fanout",
    type=int,
    default=0,
    help="Entries per tree node at most: 3 to 128.  [default: 0, as many as a page has room for]",
)
@click.option(
    "--capacity-percent",
    type=int,
    help="Size of the capacity leg, in percent of the disk's blocks.",
)
@COMPRESSION
@DEDUPLICATION
@CACHE
@CACHE_BLOCK
@MEMORY
@click.option(
    "--plant",
    type=click.Choice(list(BUGS)),
    default=None,
    metavar="BUG",
    help="Plant a bug in the engine. `conformance selftest` prints their names.",
)
@click.pass_context
def adapter(ctx: click.Context, /, engine: str, plant: str | None, **options: Any) -> None:
    """Answer requests of the conformance kit.

    A request is one JSON object per line on stdin, an answer one on stdout. The disk is in a
    temporary folder, which is removed at the end.
    """
    with options_planned():
        adapted = OverlappingAdapter(engine=engine, plant=plant or "", **given(ctx, options))
    try:
        serve_requests(adapted, sys.stdin.buffer, sys.stdout.buffer)
    finally:
        adapted.close()
