"""Running the checkers of the specs: `python -m modelcheck`."""

import sys
from importlib import import_module
from typing import Any

import click

from modelcheck.checkers import tlc
from modelcheck.runs import models

COMMANDS = (
    "specs",
    "mutants",
    "apalache",
    "explain",
    "distributed",
    "mutation",
)  # modules of modelcheck.commands


class Commands(click.Group):
    """The commands. A missing tool or a mistake in a list ends in one line and status 3.

    A command is imported only when it is called."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (tlc.Unavailable, models.BadList, ValueError) as error:
            click.echo(f"modelcheck: {error}", err=True)
            sys.exit(3)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        command: click.Command = getattr(import_module(f"modelcheck.commands.{module}"), module)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run TLC over the specs, and compare what comes out with specs/models.toml.

    Exit status: 0 all as listed; 1 something differs; 2 wrong usage; 3 it could not run.
    """


if __name__ == "__main__":
    main(prog_name="python -m modelcheck")
