"""`modelcheck mutation`: mechanical mutants of the specs."""

import sys
import time

import click

from modelcheck.commands.output import console, jobs_option, table
from modelcheck.mutation import survey


@click.command()
@click.argument("specs", nargs=-1)
@click.option("--count", default=35, show_default=True, help="How many mutants of each spec.")
@click.option("--seed", default=1, show_default=True)
@jobs_option
def mutation(specs: tuple[str, ...], count: int, seed: int, jobs: int) -> None:
    """Change the specs mechanically, one small thing at a time, and see which changes the properties notice.

    SPECS are those of specs/mutation.toml, or some of them. What was found is kept in build/mutation.jsonl: a run that was cut
    off goes on where it was. Fails where less than 90 % of the mutants that are no equivalents are killed."""
    started = time.monotonic()
    tried = []
    with console.status("") as status:
        for one in survey.survey(count, seed, jobs, specs):
            tried.append(one)
            status.update(f"{len(tried)} done")
    rows = table("spec", "mutants", *survey.HOW, "killed")
    for spec in [*dict.fromkeys(one.spec for one in tried), ""]:
        hows = [one.how for one in tried if spec in ("", one.spec)]
        killed = len(hows) - hows.count("equivalent") - hows.count("survived")
        rows.add_row(
            spec or "all",
            str(len(hows)),
            *(str(hows.count(how)) for how in survey.HOW),
            f"{killed / max(1, len(hows) - hows.count('equivalent')):.0%}",
        )
    for how in ("counts", "equivalent", "survived"):
        for one in sorted(
            (one for one in tried if one.how == how), key=lambda one: (one.spec, one.line)
        ):
            console.print(
                f"{how}: {one.spec}.tla:{one.line}: {one.edit}"
                + (f"   ({one.by})" if one.by else ""),
                highlight=False,
                markup=False,
            )
    console.print(rows)
    hows = [one.how for one in tried]
    share = 1 - hows.count("survived") / max(1, len(hows) - hows.count("equivalent"))
    console.print(
        f"{len(tried)} mutants, {share:.1%} of those that are no equivalents killed, {time.monotonic() - started:.0f} s"
    )
    sys.exit(0 if tried and share >= 0.9 else 1)
