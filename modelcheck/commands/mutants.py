"""`modelcheck mutants`: each planted bug of specs/mutants has to be found."""

import shlex
import sys
import time
from pathlib import Path

import click

from commandline.output_file import Output
from modelcheck.checkers import tlc
from modelcheck.commands.names import group_option, named
from modelcheck.commands.output import console, done, jobs_option, table
from modelcheck.mutation import planted
from modelcheck.runs import explain, models
from modelcheck.runs.models import Mutant


@click.command()
@click.argument("names", nargs=-1)
@group_option
@click.option("--show", is_flag=True, help="Print the counterexamples.")
@click.option(
    "--write",
    type=Output(folder=True),
    help="Write each mutant into its own folder below this one, and check none.",
)
@jobs_option
def mutants(names: tuple[str, ...], group: str, show: bool, write: Path | None, jobs: int) -> None:
    """Check the planted bugs: a property has to find each.

    NAMES are prefixes of names of mutants. Without them all mutants of a group are checked. For
    each mutant --write prints the command that checks it with TLC alone."""
    listed = [mutant for mutant in models.mutants() if names or mutant.group == group]
    chosen = named(listed, names, "mutant", "specs/mutants")
    if write is not None:
        _write(chosen, write)
        return
    started = time.monotonic()
    hunted = done(
        lambda mutant: planted.hunt(mutant, show), chosen, jobs, lambda mutant: mutant.name
    )
    rows = table("mutant", "bug", "found by", "depth", "states", "seconds", "what")
    survivors = []
    for mutant in chosen:
        result, found = hunted[mutant.name].result, hunted[mutant.name].found
        if not found:
            survivors.append(
                f"{mutant.name}: {mutant.property} did not fail; it came to "
                + (result.violated or result.status)
                + (f": {result.message}" if result.message else "")
            )
        rows.add_row(
            mutant.name,
            str(mutant.bug or ""),
            mutant.property if found else "[red]survived[/]",
            str(len(result.trace)),
            f"{result.distinct:,}",
            f"{result.seconds:.0f}",
            mutant.what,
        )
    console.print(rows)
    count, seconds = len(chosen), time.monotonic() - started
    console.print(f"{count - len(survivors)} of {count} mutants found, {seconds:.0f} s")
    for mutant in chosen:
        one = hunted[mutant.name]
        if one.result.trace and (show or not one.found):
            console.print(f"\n{mutant.name}: {mutant.what}", style="bold")
            explain.show(one.result, console)
    for line in survivors:
        click.echo(line, err=True)
    sys.exit(1 if survivors else 0)


def _write(chosen: list[Mutant], folder: Path) -> None:
    """Write each mutant into a folder of its own, and say how to check it."""
    jar = shlex.quote(str(tlc.jar().resolve()))
    for mutant in chosen:
        place = folder / mutant.name
        place.mkdir(parents=True, exist_ok=True)
        model = planted.plant(mutant, place)
        there = shlex.quote(str(place))
        click.echo(
            f"cd {there} && java -cp {jar} tlc2.TLC {model.stem}   # {mutant.property} fails"
        )
