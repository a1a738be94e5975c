"""Running the model checker over specs/: `python -m modelcheck`."""

import sys

import click
from rich.console import Console
from rich.table import Table

from modelcheck import check, models, tlc

console = Console()


class Commands(click.Group):
    """What is missing or misspelt ends in one line and status 3, never in a traceback."""

    def invoke(self, context: click.Context):
        try:
            return super().invoke(context)
        except (tlc.Unavailable, models.BadList) as error:
            click.echo(f"modelcheck: {error}", err=True)
            sys.exit(3)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run TLC over the specs, and compare what comes out with specs/models.toml.

    Exit status: 0 all as listed; 1 something differs; 2 wrong usage; 3 it could not run.
    """


@main.command()
@click.argument("names", nargs=-1)
@click.option("--group", default="small", show_default=True, help="small or nightly; of no matter where NAMES are given.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Of TLC. With more than one, depths and actions are not compared.")
def specs(names: tuple[str, ...], group: str, workers: int) -> None:
    """Check the runs of specs/models.toml: all of a group, or those whose name begins with one of NAMES."""
    chosen = [run for run in models.runs(None if names else group) if not names or run.name.startswith(names)]
    if not chosen:
        raise click.UsageError("no run has such a name; specs/models.toml lists them")
    table = _table("run", "result", "states", "depth", "collision", "seconds", "for")
    wrong: list[str] = []
    for run in chosen:
        with console.status(f"{run.name}: {run.size}"):
            checked = check.check(run, workers=workers)
        result = checked.result
        wrong += [f"{run.name}: {difference}" for difference in checked.differences]
        mark = "[red]differs[/]" if checked.differences else "[green]as listed[/]"
        table.add_row(
            run.name, mark, f"{result.distinct:,}", str(result.depth), f"{result.collision:.0e}", f"{result.seconds:.0f}", run.purpose
        )
    console.print(table)
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


@main.command()
@click.argument("names", nargs=-1)
def mutants(names: tuple[str, ...]) -> None:
    """Check every planted bug of specs/mutants, or those whose module begins with one of NAMES: each has to be found."""
    chosen = [mutant for mutant in models.mutants() if not names or mutant.module.startswith(names)]
    if not chosen:
        raise click.UsageError("no mutant has such a name")
    table = _table("mutant", "bug", "found by", "depth", "states", "seconds", "what")
    survivors = []
    for mutant in chosen:
        with console.status(f"{mutant.module}: {mutant.what}"):
            hunted = check.hunt(mutant)
        if not hunted.found:
            survivors.append(f"{mutant.module}: {mutant.property} did not fail; it came to {hunted.result.violated or hunted.result.status}"
                             + (f": {hunted.result.message}" if hunted.result.message else ""))
        result = hunted.result
        table.add_row(
            mutant.module, str(mutant.bug or ""), mutant.property if hunted.found else "[red]survived[/]",
            str(len(result.trace)), f"{result.distinct:,}", f"{result.seconds:.0f}", mutant.what,
        )  # fmt: skip
    console.print(table)
    console.print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants found")
    for line in survivors:
        click.echo(line, err=True)
    sys.exit(1 if survivors else 0)


@main.command("trace-speed")
@click.option("--events", "sizes", type=click.IntRange(min=1), multiple=True, help="May be repeated.  [default: 1000, 10000, 100000]")
@click.option("--target", default="model:ack", show_default=True, help="Whose traces.")
def trace_speed(sizes: tuple[int, ...], target: str) -> None:
    """How many events of traces TLC judges a second, refinement on and its start-up included, and the Python model beside it."""
    from modelcheck.speed import measure

    table = _table("traces", "events", "TLC s", "of it start-up", "events/s", "after start-up", "model events/s", "TLC : model")
    for speed in measure(list(sizes) or [1000, 10_000, 100_000], target=target):
        table.add_row(
            f"{speed.traces:,}", f"{speed.events:,}", f"{speed.tlc_seconds:.1f}", f"{speed.start_up:.1f}", f"{speed.tlc_rate:,.0f}",
            f"{speed.running_rate:,.0f}", f"{speed.model_rate:,.0f}", f"{speed.tlc_rate / speed.model_rate:.2f}",
        )  # fmt: skip
    console.print(table)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        left = heading in ("run", "result", "for", "mutant", "found by", "what")
        table.add_column(heading, justify="left" if left else "right", overflow="fold")
    return table


if __name__ == "__main__":
    main(prog_name="python -m modelcheck")
