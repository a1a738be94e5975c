"""`modelcheck explain`: a counterexample as a table of what changes."""

from pathlib import Path

import click

from modelcheck.checkers import tlc
from modelcheck.commands.output import console
from modelcheck.mutation import planted
from modelcheck.runs import check, models
from modelcheck.runs import explain as counterexample


@click.command()
@click.argument("subject", metavar="NAME|FILE")
def explain(subject: str) -> None:
    """Show a counterexample as a table of changes.

    It has a row per step and a column per variable.

    NAME is a mutant or a run, which is checked now. FILE holds the output of TLC; "-" is standard
    input."""
    mutant = next((mutant for mutant in models.mutants() if mutant.name == subject), None)
    run = next((run for run in models.runs() if run.name == subject), None)
    if mutant is not None:
        with console.status(subject):
            result = planted.hunt(mutant, explained=True).result
    elif run is not None:
        with console.status(subject):
            result = check.check(run).result
    elif subject == "-" or Path(subject).is_file():
        result = tlc.parse(click.open_file(subject, errors="replace").read())
        if result.status == "error" and not result.trace:
            raise ValueError(f"{subject} holds no counterexample of TLC: {result.message}")
    elif Path(subject).is_dir():
        raise click.UsageError(f"{subject} is a folder")
    else:
        raise click.UsageError(f"{subject} is no mutant, no run of specs/models.toml and no file")
    counterexample.show(result, console)
