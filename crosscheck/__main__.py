"""Checks of the specs against recorded traces: `python -m crosscheck`."""

import sys
from importlib import import_module
from typing import Any

import click

from modelcheck.checkers import tlc
from modelcheck.runs import models

COMMANDS = ("engine-mutation", "model-tests", "trace-speed")  # modules of crosscheck.commands


class Commands(click.Group):
    """What is missing or misspelt ends in one line and status 3, never in a traceback. A command is
    imported when it is asked for.
    """

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (tlc.Unavailable, models.BadList, ValueError) as error:
            click.echo(f"crosscheck: {error}", err=True)
            sys.exit(3)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        command: click.Command = getattr(import_module(f"crosscheck.commands.{module}"), module)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Hold the specs and the conformance kit against each other.

    Exit status: 0 all as listed; 1 something differs; 2 wrong usage; 3 it could not run.
    """


if __name__ == "__main__":
    main(prog_name="python -m crosscheck")
