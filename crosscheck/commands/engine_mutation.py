"""`crosscheck engine-mutation`: plant random bugs in the engines, and say what finds them."""

import json
import sys
from pathlib import Path

import click

from commandline.output_file import Output
from crosscheck.commands.parameters import target_option
from crosscheck.engine_mutation import severity, survey
from crosscheck.engine_mutation.severity import Sorted
from modelcheck.commands.output import console, table
from refmodel.core.finite_range import FiniteRange
from refmodel.core.output_file import write_output


@click.command("engine-mutation")
@click.option(
    "--count", type=click.IntRange(1), default=300, show_default=True, help="Number of mutants."
)
@click.option("--seed", default=1, show_default=True, help="Seed of the mutants and the programs.")
@target_option("refmodel", "The target, as in `conformance run`.")
@click.option(
    "--seconds",
    type=FiniteRange(0, min_open=True),
    default=90.0,
    show_default=True,
    help="CPU seconds per mutant.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=2, show_default=True, help="Number of processes."
)
@click.option("--only", default="", help="Only modules whose name contains this.")
@click.option(
    "--survivors",
    "kinds",
    multiple=True,
    type=click.Choice(list(severity.WORDS)),
    help="Do not draw mutants: take the explained survivors of this class.",
)
@click.option(
    "--unit-tests", is_flag=True, help="Try the engine's unit tests on those that survive."
)
@click.option(
    "--json",
    "file",
    type=Output(),
    help="Write the result as JSON.",
)
def engine_mutation(
    count: int,
    seed: int,
    target: str,
    seconds: float,
    jobs: int,
    only: str,
    kinds: tuple[str, ...],
    unit_tests: bool,
    file: Path | None,
) -> None:
    """Make small changes to the engines, and count those found.

    Each mutant is driven as `conformance run --target TARGET` does. The result is kept in
    build/engine-mutation.jsonl: an interrupted run continues, and a run with more seconds tries
    only the survivors again. crosscheck/engine_mutation/explained.toml says of each survivor how
    bad it is, and why. One that is not explained counts as one that loses data.

    Exit status: 0 if the kit finds all mutants that can lose or change data, and 90 % of those that
    break the contract otherwise; else 1.
    """
    tried = []
    mutants = severity.survivors(kinds) if kinds else survey.drawn(count, seed, only)
    if not mutants:
        raise click.UsageError(
            f"no survivor in explained.toml is of the class {' or '.join(kinds)}"
            if kinds
            else f"there is nothing to change in a module whose name contains '{only}'"
        )
    for one in survey.survey(mutants, target, seed, seconds, jobs, unit_tests):
        tried.append(one)
        cost = f"{one.operations:,} ops, {one.seconds:.0f} s"
        _print(f"{one.by:10} {one.how:20} {cost:20} {_where(one)}")
    judged = severity.sort(tried)
    _print_survivors(judged)
    rows = severity.table(judged)
    shown = table("class", *survey.BY, "found by the kit")
    for kind, row in rows.items():
        words = f"{severity.share(row):.0%}" if kind in severity.SHARE_WANTED else ""
        shown.add_row(severity.WORDS[kind], *(str(row[by]) for by in survey.BY), words)
    console.print(shown)
    if file is not None:
        write_output(file, json.dumps(_as_json(seed, seconds, judged), indent=1) + "\n")
    sys.exit(0 if severity.enough(rows) else 1)


def _print_survivors(mutants: list[Sorted]) -> None:
    survivors = [one for one in mutants if one.tried.by in survey.UNFOUND]
    for kind, words in severity.WORDS.items():
        some = [one for one in survivors if one.kind == kind]
        if some:
            _print(f"\nsurvivors: {words}")
        for one in some:
            unreached = "" if one.tried.reached else "   (never ran)"
            _print(f"  {_where(one.tried)}{unreached}")
            _print(f"      {one.why or 'not explained'}")
    _print("")


def _where(one: survey.Tried) -> str:
    return f"{one.module}:{one.line}: {one.change}"


def _print(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _as_json(seed: int, seconds: float, mutants: list[Sorted]) -> dict[str, object]:
    rows = severity.table(mutants)
    return {
        "seed": seed,
        "seconds": seconds,
        "classes": {kind: dict(row) for kind, row in rows.items()},
        "found": {kind: severity.share(rows[kind]) for kind in severity.SHARE_WANTED},
        "mutants": [{**vars(one.tried), "class": one.kind, "why": one.why} for one in mutants],
    }
