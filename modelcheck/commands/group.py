"""A group of commands, each in a module of its own that is imported when the command is called."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from modelcheck.checkers import tlc
from modelcheck.runs import models


class Commands(click.Group):
    """The commands `names`, from modules of `package` that have their names.

    A missing tool or a mistake in a list ends in one line and status 3."""

    def __init__(self, package: str, names: Sequence[str], **settings: Any) -> None:
        super().__init__(**settings, context_settings={"help_option_names": ["-h", "--help"]})
        self._package, self._names = package, names

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (tlc.Unavailable, models.BadList, ValueError) as error:
            click.echo(f"{self._package.partition('.')[0]}: {error}", err=True)
            sys.exit(3)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self._names)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self._names:
            return None
        module = name.replace("-", "_")
        command: click.Command = getattr(import_module(f"{self._package}.{module}"), module)
        return command
