"""`modelcheck specs`: the runs of specs/models.toml, compared with their expected results."""

import sys
import time

import click

from modelcheck.commands.names import group_option, named
from modelcheck.commands.output import console, done, jobs_option, table
from modelcheck.runs import check, explain, models


@click.command()
@click.argument("names", nargs=-1)
@group_option
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Worker threads of each TLC. With more than one, depths and actions are not compared.",
)
@jobs_option
def specs(names: tuple[str, ...], group: str, workers: int, jobs: int) -> None:
    """Check the runs of specs/models.toml.

    NAMES are prefixes of names of runs. Without them all runs of a group are checked."""
    runs = models.runs(None if names else group)
    chosen = named(runs, names, "run", "specs/models.toml")
    longest_first = sorted(chosen, key=lambda run: -(run.seconds or 0))
    started = time.monotonic()
    checked = done(
        lambda run: check.check(run, workers=workers), longest_first, jobs, lambda run: run.name
    )
    rows = table("run", "module", "result", "states", "depth", "seconds", "collision", "for")
    for run in chosen:
        result, differences = checked[run.name].result, checked[run.name].differences
        mark = "[red]differs[/]" if differences else "[green]as listed[/]"
        rows.add_row(
            run.name,
            run.module,
            mark,
            f"{result.distinct:,}",
            str(result.depth),
            f"{result.seconds:.0f}",
            f"{result.collision:.0e}",
            run.purpose,
        )
    console.print(rows)
    wrong = [one for one in checked.values() if one.differences]
    console.print(
        f"{len(chosen) - len(wrong)} of {len(chosen)} runs as listed, "
        f"{sum(one.result.distinct for one in checked.values()):,} distinct states,"
        f" {time.monotonic() - started:.0f} s"
    )
    for one in wrong:
        if one.result.trace and one.result.violated != one.run.expect:
            console.print(f"\n{one.run.name}", style="bold")
            explain.show(one.result, console)
        for difference in one.differences:
            click.echo(f"{one.run.name}: {difference}", err=True)
    sys.exit(1 if wrong else 0)
