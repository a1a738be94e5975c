"""The common parts of all commands: their group, options, the disk to open, and errors."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from commandline import standard_output
from commandline.interrupts import interrupts_repeated, terminated_as_interrupted
from commandline.usage import told_in_one_line
from refmodel import __version__
from refmodel.cache.disk import behind_cache
from refmodel.cache.settings import SMALLEST
from refmodel.cli.captured import captured
from refmodel.cli.repaired import say_what_was_repaired
from refmodel.core.errors import BadRequest, DiskBusy, DiskError, NotADisk, Unsupported
from refmodel.core.finite_range import CountRange
from refmodel.engine.array_disk import ArrayDisk
from refmodel.engine.disk import closed_at_end
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.page_store import MEMORY as PAGES_MEMORY
from refmodel.registry import DEFAULT, ENGINES, Disk, open_disk
from refmodel.serving import command_socket
from refmodel.serving.command_socket import Answer
from refmodel.serving.exit_status import INTERRUPTED, explained

EPILOG = """Exit status: 0 done; 1 refused, nothing changed; 2 wrong usage; 4 another process has
the disk open; 5 data is lost or damaged; 6 a change may have happened or not; 130 interrupted by
Ctrl-C or SIGTERM, a change may have happened.

Shell completion: eval "$(_REFMODEL_COMPLETE=bash_source refmodel)" (or zsh_source; for fish see
docs/engines.md)."""


# Arguments and options that several commands have.


class NonEmptyPath(click.Path):
    """A path that is not empty: an empty one would mean the current folder."""

    def __init__(self, refusal: str) -> None:
        super().__init__(path_type=Path)
        self._refusal = refusal

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail(self._refusal, param, ctx)
        return super().convert(value, param, ctx)


FOLDER = NonEmptyPath("the path of a folder is not empty; the current folder is '.'")
DISK = click.argument("disk", metavar="DIR", type=FOLDER)
ENGINE = click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    default=DEFAULT,
    show_default=True,
    help="Engine of the new disk. docs/engines.md describes them.",
)
CACHE = click.option(
    "--cache-bytes",
    type=CountRange(0),
    default=0,
    show_default=True,
    help="Size of a read cache in front of the disk, in bytes; 0: no cache.",
)
CACHE_BLOCK = click.option(
    "--cache-block-bytes",
    type=CountRange(1),
    help=f"Size of a cache block: 4096 to 1048576 bytes.  [default: {SMALLEST}]",
)
COMPRESSION = click.option(
    "--compression",
    is_flag=True,
    help="Compress each block to an eighth, a quarter or half of its size (512, 1024 or 2048 bytes "
    "of 4 KiB). A block that does not shrink to half is stored as it is.",
)
DEDUPLICATION = click.option(
    "--deduplication", is_flag=True, help="Store blocks that have the same data only once."
)
MEMORY = click.option(
    "--memory",
    type=CountRange(0),
    metavar="BYTES",
    help="Bytes of memory for tree nodes of the log-structured engine; others are read when they "
    f"are needed.  [default: {PAGES_MEMORY} (64 MiB)]",
)
UNSYNCED = click.option(
    "--no-sync",
    is_flag=True,
    help="Do not wait at a flush until the medium has the data. For tests and benchmarks only.",
)
VERSION = click.version_option(__version__, prog_name="refmodel", message="%(prog)s %(version)s")


@dataclass
class Call:
    """The command line of this process, and its input."""

    arguments: list[str]
    stdin: bytes = b""  # the bytes that the command has read from it


# The disk that this process has open for others: commands that run here use it.
_served: ContextVar[Disk | None] = ContextVar("served", default=None)


class Command(click.Command):
    """A command with the option `--version`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        VERSION(self)


class Commands(click.Group):
    """The group of all commands.

    A refusal or damage ends in one line on stderr and an exit status, never in a traceback. If
    another process serves the disk, the command runs there.
    """

    command_class = Command

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line of this process, or one that another process sent."""
        standard_output.open_closed_streams()
        with terminated_as_interrupted(), interrupts_repeated():
            return super().main(*arguments, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember the command line, in case another process has to run it."""
        ctx.obj = Call(list(args))
        try:
            with told_in_one_line():
                return super().parse_args(ctx, args)
        except OSError as error:  # `--help` cannot be written
            fail(*explained(error))
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, here or in the process that has the disk open."""
        try:
            try:
                with told_in_one_line():
                    return super().invoke(ctx)
            except DiskBusy as busy:
                answer = _forwarded(busy, ctx.obj)
            sys.stdout.buffer.write(answer.stdout)
            sys.stdout.flush()
            sys.stderr.buffer.write(answer.stderr)
            sys.exit(answer.status)
        except (DiskError, NotADisk, OSError, MemoryError) as error:
            fail(*explained(error))
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which `--help` shows them."""
        return list(self.commands)


def _forwarded(busy: DiskBusy, call: Call) -> Answer:
    """Return the answer of the process that has the disk open.

    Raises `busy` if that does not listen.
    """
    served_here = _served.get() is not None
    answer = None if served_here else command_socket.forward(busy.path, call.arguments, call.stdin)
    if answer is None:
        raise busy
    return answer


@click.group(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@VERSION
def main() -> None:
    """A log-structured virtual disk with snapshots, in a folder of files.

    Each command does one operation on the disk in the folder DIR. While a server or a bench has
    the disk open, the command runs in that process.
    """


def run_on(disk: Disk, arguments: list[str], stdin: bytes) -> Answer:
    """Run a command line on a disk that this process has open. Returns what it printed."""
    token = _served.set(disk)
    try:
        answer = captured(main, arguments, stdin)
    finally:
        _served.reset(token)
    if answer.status == INTERRUPTED:
        raise KeyboardInterrupt  # it is this process that the user wants to end
    return answer


def require_outside(disk: Path | None, output: Path | None) -> None:
    """Raises UsageError if an output is in the folder of the disk: it could replace a device."""
    if disk is None or output is None:
        return
    if output.resolve().is_relative_to(disk.resolve()):
        raise click.UsageError(f"{output} is in the folder of the disk, which only has its devices")


@contextmanager
def options_planned() -> Iterator[None]:
    """Plan a new disk in this `with` block: an option that it cannot have is wrong usage."""
    try:
        yield
    except BadRequest as error:
        raise click.UsageError(str(error)) from None


def given(ctx: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that stand on the command line. The engine chooses the others itself."""
    return {
        name: value
        for name, value in options.items()
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


@contextmanager
def disk_at(path: Path, no_sync: bool = False) -> Iterator[Disk]:
    """Yield the disk in a folder: the one that this process serves, or one opened for this command.

    What the opening has repaired is said on stderr. Raises NotADisk, DiskBusy or DataLost if it
    cannot be opened.
    """
    if (served := _served.get()) is not None:
        yield served
        return
    with closed_at_end(open_disk(path, sync=not no_sync)) as disk:
        say_what_was_repaired(disk)
        yield disk


def log_structured(disk: Disk, command: str) -> LogStructuredDisk:
    """Return the disk behind its cache, for a command that only the log-structured engine has.

    Raises Unsupported if the disk is of another engine.
    """
    engine = behind_cache(disk)
    if not isinstance(engine, LogStructuredDisk):
        raise Unsupported(
            f"only the engine {DEFAULT} has the command {command}; "
            f"this disk is of the engine {disk.geometry.engine}"
        )
    return engine


def array_disk(disk: Disk) -> ArrayDisk[Any]:
    """Return the disk behind its cache, for a command on devices.

    Raises Unsupported if none may fail.
    """
    engine = behind_cache(disk)
    if not isinstance(engine, ArrayDisk):
        raise Unsupported(f"the engine {disk.geometry.engine} has no devices that may fail")
    return engine


def fail(message: str, status: int) -> NoReturn:
    """Print one line on stderr, none for "", and end the command with an exit status."""
    standard_output.give_up_if_unwritable()
    if message:
        click.echo(f"refmodel: {message}", err=True)
    sys.exit(status)
