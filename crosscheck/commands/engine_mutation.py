"""`crosscheck engine-mutation`: bugs drawn by chance in the engines, and what finds them."""

import sys

import click

from crosscheck.engine_mutation import survey
from modelcheck.commands.output import console, table


@click.command("engine-mutation")
@click.option("--count", default=300, show_default=True, help="How many mutants.")
@click.option("--seed", default=1, show_default=True, help="Which ones.")
@click.option("--seconds", default=90.0, show_default=True, help="Of the processor, per mutant.")
@click.option("--jobs", default=2, show_default=True, help="How many at a time.")
@click.option("--only", default="", help="Of modules whose name contains this.")
@click.option(
    "--unit-tests", is_flag=True, help="Try the engine's unit tests on those that survive."
)
def engine_mutation(
    count: int, seed: int, seconds: float, jobs: int, only: str, unit_tests: bool
) -> None:
    """Change the engines mechanically, one small thing at a time, and see what finds each change.

    Each mutant is driven as `conformance run --target refmodel` does. What was found is kept in
    build/engine-mutation.jsonl: a run that was cut off goes on where it was. A survivor is listed
    in crosscheck/engine_mutation/explained.toml if it is no bug. Fails where less than 80 % of the
    bugs are found.
    """
    tried = []
    for one in survey.survey(count, seed, seconds, jobs, unit_tests, only):
        tried.append(one)
        cost = f"{one.operations:,} ops, {one.seconds:.0f} s"
        said = f"{one.by:10} {one.how:20} {cost:20} {one.module}:{one.line}: {one.change}"
        unreached = "" if one.reached else "   (never ran)"
        note = f"   ({one.note})" if one.note else ""
        console.print(said + unreached + note, highlight=False, markup=False, soft_wrap=True)
    rows = table("by", "mutants", "of them no bugs")
    for by in survey.BY:
        some = [one for one in tried if one.by == by]
        rows.add_row(by, str(len(some)), str(sum(bool(one.note) for one in some)))
    console.print(rows)
    bugs = [one for one in tried if not one.note]
    found = sum(one.by in ("contract", "scrub", "crash") for one in bugs)
    share = found / max(1, len(bugs))
    console.print(
        f"{len(tried)} mutants; the default command found {found} of {len(bugs)} bugs: {share:.0%}"
    )
    sys.exit(0 if share >= 0.8 else 1)
