"""Wrong usage ends in one line on stderr and status 2; click alone takes four lines."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

WRONG_USAGE = 2  # exit status
# How click's own messages begin; they end with a full stop.
OF_CLICK = ("Invalid value", "Missing ", "No such ", "Got unexpected ", "Option ", "Argument ")
# Not a mistake: a program without arguments shows its help. Before click 8.2 it does not exist.
NO_ARGUMENTS: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class WrongUsage(click.ClickException):
    """A mistake in a command line. The message is the whole line."""

    exit_code = WRONG_USAGE

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(self.message, file=file, err=True)


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """In this `with` block, what click finds wrong with a command line is told in one line."""
    try:
        yield
    except click.UsageError as error:
        if isinstance(error, NO_ARGUMENTS):
            raise
        raise WrongUsage(line(error)) from None


def line(error: click.UsageError) -> str:
    """Return the line: the command, what is wrong, and where to read more.

    A message that ends with a hint of its own, "(see ...)", keeps it.
    """
    message = " ".join(error.format_message().split())
    if message.startswith(OF_CLICK):
        message = message[0].lower() + message[1:].removesuffix(".")
    hinted = message.endswith(")") and "(see " in message
    command = error.ctx.command_path.removeprefix("python -m ") + ": " if error.ctx else ""
    return command + message + ("" if hinted else " (see --help)")
