"""`modelcheck mutants`: each planted bug of specs/mutants has to be found."""

import sys
import time

import click

from modelcheck.commands.output import console, done, jobs_option, table
from modelcheck.runs import check, explain, models


@click.command()
@click.argument("names", nargs=-1)
@click.option("--show", is_flag=True, help="Print the counterexamples.")
@jobs_option
def mutants(names: tuple[str, ...], show: bool, jobs: int) -> None:
    """Check every planted bug of specs/mutants, or those whose module begins with one of NAMES: each has to be found."""
    chosen = [mutant for mutant in models.mutants() if not names or mutant.module.startswith(names)]
    if not chosen:
        raise click.UsageError("no mutant has such a name")
    started = time.monotonic()
    hunted = done(check.hunt, chosen, jobs, lambda mutant: mutant.module)
    rows = table("mutant", "bug", "found by", "depth", "states", "seconds", "what")
    survivors = []
    for mutant in chosen:
        result, found = hunted[mutant.module].result, hunted[mutant.module].found
        if not found:
            survivors.append(
                f"{mutant.module}: {mutant.property} did not fail; it came to {result.violated or result.status}"
                + (f": {result.message}" if result.message else "")
            )
        rows.add_row(
            mutant.module,
            str(mutant.bug or ""),
            mutant.property if found else "[red]survived[/]",
            str(len(result.trace)),
            f"{result.distinct:,}",
            f"{result.seconds:.0f}",
            mutant.what,
        )
    console.print(rows)
    console.print(
        f"{len(chosen) - len(survivors)} of {len(chosen)} mutants found, {time.monotonic() - started:.0f} s"
    )
    for mutant in chosen:
        if hunted[mutant.module].result.trace and (show or not hunted[mutant.module].found):
            console.print(f"\n{mutant.module}: {mutant.what}", style="bold")
            explain.show(hunted[mutant.module].result, console, mutant.property)
    for line in survivors:
        click.echo(line, err=True)
    sys.exit(1 if survivors else 0)
