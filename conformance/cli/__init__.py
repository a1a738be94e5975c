"""The command `conformance`."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from commandline.standard_output import give_up_if_unwritable
from commandline.usage import told_in_one_line
from refmodel import __version__

COMMANDS = {
    "run": "run",
    "check": "recorded",
    "replay": "recorded",
    "shrink": "shrink",
    "doctor": "doctor",
    "overlap": "overlap",
    "targets": "targets",
    "selftest": "selftest",
}  # the module of each
INCONCLUSIVE, INTERRUPTED = 3, 130  # exit statuses, the second after Ctrl-C
REFUSALS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),  # a path of the user's
)


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"conformance {__version__}")
        context.exit()


version_option = click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)


class Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        if name not in COMMANDS:
            return None
        module = import_module(f"conformance.cli.{COMMANDS[name]}")
        command: click.Command = getattr(module, name)
        if not any(parameter.name == "version" for parameter in command.params):
            version_option(command)
        return command

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line of this process. A closed standard stream counts as empty, or as
        one that nobody reads: the exit status says the verdict, too."""
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
        return super().main(*arguments, **options)

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Read the command line; `--help` and `--version` print."""
        with _ended_in_a_line(context), told_in_one_line():
            return super().parse_args(context, arguments)

    def invoke(self, context: click.Context) -> None:
        """Run the command."""
        from conformance.campaign.interrupts import heeded  # it loads what no help needs

        with _ended_in_a_line(context), told_in_one_line(), heeded():
            super().invoke(context)


@contextmanager
def _ended_in_a_line(context: click.Context) -> Iterator[None]:
    """End the process with one line and status 130 at Ctrl-C and SIGTERM.

    If the host refuses the kit a file or memory, end with one line and status 3: nothing is known
    then. If nothing more can be printed, as behind `head`, end with status 3 in silence.
    """
    try:
        yield
    except KeyboardInterrupt:
        click.echo("inconclusive: interrupted", err=True)
        context.exit(INTERRUPTED)
    except BrokenPipeError:
        give_up_if_unwritable()
        context.exit(INCONCLUSIVE)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        give_up_if_unwritable()
        what = error.filename or "the output or a file"
        click.echo(f"inconclusive: the host refuses {what}: {error.strerror}", err=True)
        context.exit(INCONCLUSIVE)
    except MemoryError:
        click.echo("inconclusive: the host refuses memory", err=True)
        context.exit(INCONCLUSIVE)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@version_option
def main() -> None:
    """Test a virtual disk with snapshots against the contract, specs/VirtualDisk.tla.

    \b
    Exit status: 0 pass, 1 fail, 2 wrong usage,
    3 inconclusive (also where the host refuses the kit a file or memory),
    130 interrupted by Ctrl-C or SIGTERM (inconclusive)."""
