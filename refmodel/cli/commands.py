"""What all commands share: the group that they are in, options, the disk that one is for, exit statuses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from click.core import ParameterSource

from refmodel import __version__
from refmodel.cache.settings import SMALLEST
from refmodel.core.errors import DataLost, DiskBusy, DiskError, NotADisk
from refmodel.registry import DEFAULT, ENGINES, Disk, open_disk
from refmodel.serving import command_socket

REFUSED, BUSY, DAMAGED = 1, 4, 5

EPILOG = "Exit status: 0 done; 1 refused, nothing changed; 2 wrong usage; 4 another process has the disk open; 5 data is lost or damaged."
DISK = click.argument("disk", metavar="DIR", type=click.Path(path_type=Path))
ENGINE = click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    default=DEFAULT,
    show_default=True,
    help="Which engine's disk: docs/engines.md.",
)
CACHE = click.option(
    "--cache-bytes",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Size of a read cache in front of the disk; 0: none.",
)
CACHE_BLOCK = click.option(
    "--cache-block-bytes",
    type=click.IntRange(min=1),
    help=f"Of a cache block: 4 KiB to 1 MiB.  [default: {SMALLEST}]",
)
COMPRESSION = click.option(
    "--compression",
    is_flag=True,
    help="Compress blocks to whole eighths of one: 512 bytes of 4 KiB.",
)
DEDUPLICATION = click.option(
    "--deduplication", is_flag=True, help="Store blocks with the same data once."
)
UNSYNCED = click.option(
    "--no-sync",
    is_flag=True,
    help="Do not wait for the medium at a flush. For tests and benchmarks only.",
)


@dataclass
class Call:
    """What this process was called with."""

    arguments: list[str]
    stdin: bytes = b""  # as far as the command wants it


class Commands(click.Group):
    """Refusals and damage end in one line and a status, never in a traceback. Where another process serves the disk, the command runs there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.obj = Call(list(args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context):
        try:
            return super().invoke(ctx)
        except DiskBusy as busy:
            served = command_socket.held.get() is not None  # this is the other process
            answer = (
                None
                if served
                else command_socket.forward(busy.path, ctx.obj.arguments, ctx.obj.stdin)
            )
            if answer is None:
                failed(*explained(busy))
            stdout, stderr, status = answer
            sys.stdout.buffer.write(stdout)
            sys.stderr.buffer.write(stderr)
            sys.exit(status)
        except (DiskError, NotADisk, OSError) as error:
            failed(*explained(error))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="refmodel")
def main() -> None:
    """A log-structured virtual disk with snapshots, on real files: one operation a call, on a disk that lasts."""


def given(ctx: click.Context, options: dict) -> dict:
    """The options that were asked for: what was not is for the engine to choose."""
    return {
        name: value
        for name, value in options.items()
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


@contextmanager
def disk_at(path: Path, no_sync: bool = False) -> Iterator[Disk]:
    """The disk in a folder: the one that this process serves, or opened for this command."""
    if (served := command_socket.held.get()) is not None:
        yield served
        return
    disk = open_disk(path, sync=not no_sync)
    try:
        yield disk
    except BaseException:
        disk.abandon()
        raise
    disk.close()


def explained(error: Exception) -> tuple[str, int]:
    """The line and the exit status that an error gets."""
    if isinstance(error, DiskError):
        return f"{error.code}: {error}", DAMAGED if isinstance(error, DataLost) else REFUSED
    return str(error), BUSY if isinstance(error, DiskBusy) else REFUSED


def failed(message: str, status: int) -> None:
    click.echo(f"refmodel: {message}", err=True)
    sys.exit(status)
