"""`modelcheck apalache`: types, and inductive invariants."""

import sys

import click

from modelcheck import apalache as symbolic
from modelcheck import models, tlc
from modelcheck.commands.output import console, table

HOW = ("--no-deadlock", "--discard-disabled", "--tuning-options", "--smt-encoding")  # how Apalache goes about it, not what it checks


@click.command()
@click.argument("names", nargs=-1)
def apalache(names: tuple[str, ...]) -> None:
    """Check the runs of specs/models.toml that Apalache does: all, or those whose name begins with one of NAMES.

    Apalache is APALACHE_MC, or apalache-mc on the PATH. What could not run is named, and is no success: status 3."""
    chosen = [run for run in models.runs(tool="apalache") if not names or run.name.startswith(names)]
    if not chosen:
        raise click.UsageError("no run has such a name; specs/models.toml lists them")
    try:
        symbolic.command()
    except tlc.Unavailable:
        for run in chosen:
            click.echo(f"NOT RUN  {run.name}: {run.purpose}", err=True)
        raise
    rows = table("run", "check", "result", "seconds", "for")
    wrong: list[str] = []
    for run in chosen:
        for number, step in enumerate(run.steps):
            with console.status(f"{run.name}: {' '.join(step)}"):
                outcome = symbolic.check(run, number)
            good = outcome.status == "ok"
            if not good:
                wrong.append(f"{run.name}: {' '.join(step)}: {outcome.status}: {outcome.message}")
            words = " ".join(word.removeprefix("--") for word in step if not word.startswith(HOW))
            rows.add_row(run.name, words, "holds" if good else f"[red]{outcome.status}[/]", f"{outcome.seconds:.0f}",
                          run.purpose if number == 0 else "")  # fmt: skip
    console.print(rows)
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(1 if wrong else 0)
