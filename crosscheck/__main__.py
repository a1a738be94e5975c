"""Checks of the specs against recorded traces: `python -m crosscheck`."""

import sys
from typing import Any

import click

from conformance.targets.base import Unusable
from modelcheck.commands.group import Commands

NAMES = (
    "engine-mutation",
    "judge-speed",
    "kit-speed",
    "model-tests",
    "overlap-speed",
    "trace-speed",
)


class _Comparisons(Commands):
    """The commands of crosscheck. An unusable target ends in one line and status 3, too."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except Unusable as error:
            click.echo(f"crosscheck: {error}", err=True)
            sys.exit(3)


main = _Comparisons(
    "crosscheck.commands",
    NAMES,
    help="""Compare the specs with the conformance kit and the engines.

    Exit status: 0 all as listed; 1 something differs; 2 wrong usage; 3 it could not run.
    """,
)

if __name__ == "__main__":
    main(prog_name="python -m crosscheck")
