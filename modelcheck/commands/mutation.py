"""`modelcheck mutation`: mechanical mutants of the specs."""

import sys
import time
from pathlib import Path

import click

from commandline.output_file import Output
from modelcheck.commands.output import console, jobs_option, table
from modelcheck.mutation import survey
from modelcheck.runs import models

LEAST = 0.85  # share of the counted mutants that has to break a property


@click.command()
@click.argument("specs", nargs=-1)
@click.option(
    "--count",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Number of mutants per spec.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the mutants.")
@click.option(
    "--kept",
    type=Output(),
    help="Results so far; an interrupted run continues.  [default: build/mutation.jsonl]",
)
@jobs_option
def mutation(specs: tuple[str, ...], count: int, seed: int, kept: Path | None, jobs: int) -> None:
    """Make small changes to the specs, and count those found.

    SPECS are some of those in specs/mutation.toml; the default is all. Survivors are tried again
    when a module that their runs read has changed.

    Exit status: 1 if fewer than 85 % of the mutants break a property. Mutants that TLC cannot
    evaluate, and equivalent ones, are not counted."""
    known = {subject.spec for subject in models.subjects()}
    if unknown := ", ".join(spec for spec in specs if spec not in known):
        raise click.UsageError(f"specs/mutation.toml does not list {unknown}")
    started = time.monotonic()
    tried = []
    with console.status("") as status:
        for one in survey.survey(count, seed, jobs, specs, kept or survey.KEPT):
            tried.append(one)
            status.update(f"{len(tried)} done")
    for how in ("equivalent", "survived"):
        chosen = [one for one in tried if one.how == how]
        for one in sorted(chosen, key=lambda one: (one.spec, one.line)):
            reason = f"   ({one.by})" if one.by else ""
            line = f"{how}: {one.spec}.tla:{one.line}: {one.edit}{reason}"
            console.print(line, highlight=False, markup=False)
    rows = table("spec", "mutants", *survey.HOW, "break a property")
    for spec in [*dict.fromkeys(one.spec for one in tried), ""]:
        these = [one for one in tried if spec in ("", one.spec)]
        hows = [one.how for one in these]
        counts = [str(hows.count(how)) for how in survey.HOW]
        rows.add_row(spec or "all", str(len(hows)), *counts, f"{survey.share(these):.0%}")
    console.print(rows)
    seconds = time.monotonic() - started
    part = survey.share(tried)
    console.print(
        f"{len(tried)} mutant{'s' * (len(tried) != 1)}, "
        f"{part:.1%} of those that count break a property, {seconds:.0f} s"
    )
    sys.exit(0 if tried and part >= LEAST else 1)
