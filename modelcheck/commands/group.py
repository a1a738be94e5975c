"""A group of commands, each in a module of its own that is imported when the command is called."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from commandline.interrupts import interrupts_repeated, terminated_as_interrupted
from commandline.standard_output import give_up_if_unwritable, open_closed_streams
from commandline.usage import told_in_one_line
from modelcheck.checkers import tlc
from modelcheck.runs import models

COULD_NOT_RUN, INTERRUPTED = 3, 130  # exit statuses, the second after Ctrl-C and SIGTERM
EXIT_STATUS = (
    "Exit status: 0 all as listed; 1 something differs; 2 wrong usage; 3 it could not run, or its "
    "output could not be written; 130 interrupted by Ctrl-C or SIGTERM."
)


class Commands(click.Group):
    """The commands `names` of a program, from modules of its package `commands`.

    An interrupt, an output that cannot be written, and the `failures` end in one line on stderr.
    A reader that is gone, as behind `head`, is not reported."""

    failures: tuple[type[Exception], ...] = (tlc.Unavailable, models.BadList, ValueError)

    def __init__(self, program: str, names: Sequence[str], **settings: Any) -> None:
        super().__init__(**settings, context_settings={"help_option_names": ["-h", "--help"]})
        self._program, self._names = program, names
        self._show_version(self)

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line of this process."""
        open_closed_streams()
        with terminated_as_interrupted(), interrupts_repeated():
            return super().main(*arguments, **options)

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Read the command line; `--help` and `--version` print."""
        with self._ended_in_a_line():
            return super().parse_args(context, arguments)

    def invoke(self, context: click.Context) -> Any:
        """Run a command."""
        with self._ended_in_a_line():
            return super().invoke(context)

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(self._names)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        if name not in self._names:
            return None
        module = name.replace("-", "_")
        command: click.Command = getattr(
            import_module(f"{self._program}.commands.{module}"), module
        )
        if not any(parameter.name == "version" for parameter in command.params):
            self._show_version(command)
        return command

    def _show_version(self, command: click.Command) -> None:
        """Give a command the option `--version`."""
        click.version_option(
            package_name="logdisk", prog_name=self._program, message="%(prog)s %(version)s"
        )(command)

    @contextmanager
    def _ended_in_a_line(self) -> Iterator[None]:
        try:
            with told_in_one_line():
                yield
        except KeyboardInterrupt:
            self._end("interrupted", INTERRUPTED)
        except BrokenPipeError:
            self._end("", COULD_NOT_RUN)
        except self.failures as error:
            self._end(str(error), COULD_NOT_RUN)
        except OSError as error:
            message = f"{error.filename or 'output'}: {error.strerror or error}"
            self._end(message, COULD_NOT_RUN)

    def _end(self, message: str, status: int) -> NoReturn:
        """End the command with a line on stderr, none for "", and an exit status."""
        give_up_if_unwritable()
        if message:
            with suppress(OSError):  # stderr may be full, too
                click.echo(f"{self._program}: {message}", err=True)
        sys.exit(status)
