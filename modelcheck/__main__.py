"""Running the checkers of the specs: `python -m modelcheck`."""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console
from rich.table import Table

from modelcheck import apalache as symbolic
from modelcheck import check, explain, models, tlc

if TYPE_CHECKING:
    from modelcheck import reached

console = Console(width=None if sys.stdout.isatty() else 160)
Item = TypeVar("Item")
Out = TypeVar("Out")


class Commands(click.Group):
    """What is missing or misspelt ends in one line and status 3, never in a traceback."""

    def invoke(self, context: click.Context):
        try:
            return super().invoke(context)
        except (tlc.Unavailable, models.BadList, ValueError) as error:
            click.echo(f"modelcheck: {error}", err=True)
            sys.exit(3)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run TLC over the specs, and compare what comes out with specs/models.toml.

    Exit status: 0 all as listed; 1 something differs; 2 wrong usage; 3 it could not run.
    """


jobs_option = click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="How many TLCs run side by side.")


@main.command()
@click.argument("names", nargs=-1)
@click.option("--group", default="small", show_default=True, help="small or nightly; of no matter where NAMES are given.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True,
              help="Of each TLC. With more than one, depths and actions are not compared.")
@jobs_option
def specs(names: tuple[str, ...], group: str, workers: int, jobs: int) -> None:
    """Check the runs of specs/models.toml: all of a group, or those whose name begins with one of NAMES."""
    chosen = [run for run in models.runs(None if names else group) if not names or run.name.startswith(names)]
    if not chosen:
        raise click.UsageError("no run has such a name; specs/models.toml lists them")
    longest_first = sorted(chosen, key=lambda run: -(run.seconds or 0))
    started = time.monotonic()
    checked = _all(lambda run: check.check(run, workers=workers), longest_first, jobs, lambda run: run.name)
    table = _table("run", "module", "result", "states", "depth", "seconds", "collision", "for")
    for run in chosen:
        result, differences = checked[run.name].result, checked[run.name].differences
        mark = "[red]differs[/]" if differences else "[green]as listed[/]"
        table.add_row(run.name, run.module, mark, f"{result.distinct:,}", str(result.depth), f"{result.seconds:.0f}",
                      f"{result.collision:.0e}", run.purpose)
    console.print(table)
    wrong = [one for one in checked.values() if one.differences]
    console.print(f"{len(chosen) - len(wrong)} of {len(chosen)} runs as listed, "
                  f"{sum(one.result.distinct for one in checked.values()):,} distinct states, {time.monotonic() - started:.0f} s")
    for one in wrong:
        if one.result.trace and one.result.violated != one.run.expect:
            console.print(f"\n{one.run.name}", style="bold")
            explain.show(one.result, console)
        for difference in one.differences:
            click.echo(f"{one.run.name}: {difference}", err=True)
    sys.exit(1 if wrong else 0)


@main.command()
@click.argument("names", nargs=-1)
@click.option("--show", is_flag=True, help="Print the counterexamples.")
@jobs_option
def mutants(names: tuple[str, ...], show: bool, jobs: int) -> None:
    """Check every planted bug of specs/mutants, or those whose module begins with one of NAMES: each has to be found."""
    chosen = [mutant for mutant in models.mutants() if not names or mutant.module.startswith(names)]
    if not chosen:
        raise click.UsageError("no mutant has such a name")
    started = time.monotonic()
    hunted = _all(check.hunt, chosen, jobs, lambda mutant: mutant.module)
    table = _table("mutant", "bug", "found by", "depth", "states", "seconds", "what")
    survivors = []
    for mutant in chosen:
        result, found = hunted[mutant.module].result, hunted[mutant.module].found
        if not found:
            survivors.append(f"{mutant.module}: {mutant.property} did not fail; it came to {result.violated or result.status}"
                             + (f": {result.message}" if result.message else ""))
        table.add_row(mutant.module, str(mutant.bug or ""), mutant.property if found else "[red]survived[/]",
                      str(len(result.trace)), f"{result.distinct:,}", f"{result.seconds:.0f}", mutant.what)
    console.print(table)
    console.print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants found, {time.monotonic() - started:.0f} s")
    for mutant in chosen:
        if hunted[mutant.module].result.trace and (show or not hunted[mutant.module].found):
            console.print(f"\n{mutant.module}: {mutant.what}", style="bold")
            explain.show(hunted[mutant.module].result, console, mutant.property)
    for line in survivors:
        click.echo(line, err=True)
    sys.exit(1 if survivors else 0)


HOW = ("--no-deadlock", "--discard-disabled", "--tuning-options")  # how Apalache goes about it, not what it checks


@main.command()
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
    table = _table("run", "check", "result", "seconds", "for")
    wrong: list[str] = []
    for run in chosen:
        for number, step in enumerate(run.steps):
            with console.status(f"{run.name}: {' '.join(step)}"):
                outcome = symbolic.check(run, number)
            good = outcome.status == "ok"
            if not good:
                wrong.append(f"{run.name}: {' '.join(step)}: {outcome.status}: {outcome.message}")
            words = " ".join(word.removeprefix("--") for word in step if not word.startswith(HOW))
            table.add_row(run.name, words, "holds" if good else f"[red]{outcome.status}[/]", f"{outcome.seconds:.0f}",
                          run.purpose if number == 0 else "")  # fmt: skip
    console.print(table)
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


@main.command("explain")
@click.argument("subject", metavar="NAME|FILE")
def explain_(subject: str) -> None:
    """Show a counterexample as a table of what changes: a row a step, a column a variable.

    NAME is a mutant or a run, which is checked now; FILE is what TLC printed, "-" standard input."""
    mutant = next((mutant for mutant in models.mutants() if mutant.module == subject), None)
    run = next((run for run in models.runs() if run.name == subject), None)
    if mutant or run:
        with console.status(subject):
            result = check.hunt(mutant).result if mutant else check.check(run).result
    elif subject == "-" or Path(subject).is_file():
        result = tlc.parse(click.open_file(subject, errors="replace").read())
        if result.status == "error" and not result.trace:
            raise ValueError(f"{subject} holds no counterexample of TLC: {result.message}")
    else:
        raise click.UsageError(f"{subject} is no mutant, no run of specs/models.toml and no file")
    explain.show(result, console, mutant.property if mutant else "")


@main.command()
@click.argument("name", default="Redundancy-distributed")
@click.option("--hosts", default="localhost,localhost", show_default=True, help="Where the workers are; ssh reaches those that are not this one.")
@click.option("--server", default="127.0.0.1", show_default=True, help="The name of this machine for the workers.")
@click.option("--port", default=10997, show_default=True)
@click.option("--jar", default="", help="Where TLC's jar is on the other hosts, if not where it is here.")
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds.")
def distributed(name: str, hosts: str, server: str, port: int, jar: str, timeout: float) -> None:
    """Check the invariants of a run of specs/models.toml on several machines, by TLC's own distributed mode.

    A config with a PROPERTY or with CHECK_DEADLOCK FALSE is refused: that mode ignores both, and says nothing."""
    from modelcheck import distributed as mode

    run = next((run for run in models.runs() if run.name == name), None)
    if run is None:
        raise click.UsageError("no run has such a name; specs/models.toml lists them")
    workers = [host.strip() for host in hosts.split(",") if host.strip()]
    with console.status(f"{name}, {len(workers)} workers"):
        result = mode.check(run, workers, server=server, port=port, jar=jar, timeout=timeout)
    came = result.violated or result.status
    console.print(f"{name}: {came}, {result.distinct:,} distinct states, {len(workers)} workers, {result.seconds:.0f} s", highlight=False)
    if result.trace:
        explain.show(result, console)
    if came != run.expect or result.distinct != run.distinct and came == "ok":
        click.echo(f"{name}: {run.expect} with {run.distinct} distinct states is listed" + (f"; {result.message}" if result.message else ""), err=True)
        sys.exit(1)


@main.command()
@click.argument("specs", nargs=-1)
@click.option("--count", default=35, show_default=True, help="How many mutants of each spec.")
@click.option("--seed", default=1, show_default=True)
@jobs_option
def mutation(specs: tuple[str, ...], count: int, seed: int, jobs: int) -> None:
    """Change the specs mechanically, one small thing at a time, and see which changes the properties notice.

    SPECS are those of specs/mutation.toml, or some of them. What was found is kept in build/mutation.jsonl: a run that was cut
    off goes on where it was. Fails where less than 90 % of the mutants that are no equivalents are killed."""
    from modelcheck import survey

    started = time.monotonic()
    tried = []
    with console.status("") as status:
        for one in survey.survey(count, seed, jobs, specs):
            tried.append(one)
            status.update(f"{len(tried)} done")
    table = _table("spec", "mutants", *survey.HOW, "killed")
    for spec in [*dict.fromkeys(one.spec for one in tried), ""]:
        hows = [one.how for one in tried if spec in ("", one.spec)]
        killed = len(hows) - hows.count("equivalent") - hows.count("survived")
        table.add_row(spec or "all", str(len(hows)), *(str(hows.count(how)) for how in survey.HOW),
                      f"{killed / max(1, len(hows) - hows.count('equivalent')):.0%}")
    for how in ("counts", "equivalent", "survived"):
        for one in sorted((one for one in tried if one.how == how), key=lambda one: (one.spec, one.line)):
            console.print(f"{how}: {one.spec}.tla:{one.line}: {one.edit}" + (f"   ({one.by})" if one.by else ""), highlight=False, markup=False)
    console.print(table)
    hows = [one.how for one in tried]
    share = 1 - hows.count("survived") / max(1, len(hows) - hows.count("equivalent"))
    console.print(f"{len(tried)} mutants, {share:.1%} of those that are no equivalents killed, {time.monotonic() - started:.0f} s")
    sys.exit(0 if tried and share >= 0.9 else 1)


@main.command("model-tests")
@click.option("--target", default="refmodel", show_default=True, help="Which engine: one in process, see `conformance targets`.")
@jobs_option
def model_tests(target: str, jobs: int) -> None:
    """Make tests of the contract's behaviours on a disk of 2 blocks, 2 values and 1 name: every path of requests, to a depth.

    Each answer of the engine has to be one that TLC printed for that state. What the traces reach of the module that
    judges traces is shown too; what they do not needs a reason in specs/unreached.toml."""
    from modelcheck import innertests, modeltests

    started = time.monotonic()
    table = _table("profile", "paths of", "cut short at", "tests", "operations", "failures")
    outcomes: dict[tuple[str, str], int] = {}
    sample, failures, tests = [], [], 0
    with console.status("the contract's steps"):
        for series, steps, replayed in modeltests.run(jobs, target):
            cuts = f"writes {', '.join(map(str, series.cuts))}" if series.cuts else "-"
            table.add_row(series.profile, f"{series.depth} requests", cuts, f"{replayed.tests:,}", f"{replayed.operations:,}",
                          str(len(replayed.failures)))
            for outcome in steps.outcomes() | set(replayed.outcomes):
                outcomes[outcome] = outcomes.get(outcome, 0) + replayed.outcomes[outcome]
            sample += replayed.sample
            failures += replayed.failures
            tests += replayed.tests
    console.print(table)
    _outcomes(outcomes)
    wrong = failures[:10]
    if not failures:
        with console.status("what the traces reach"):
            for coverage in (modeltests.statements(sample), *innertests.statements()):
                wrong += _reached(coverage)
    console.print(f"{tests:,} tests, {len(failures):,} failures, {time.monotonic() - started:.0f} s")
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


def _outcomes(outcomes: dict[tuple[str, str], int]) -> None:
    """The coverage of the contract's actions and answers, a line an action."""
    for action in dict.fromkeys(action for action, _ in sorted(outcomes)):
        counts = {answer: count for (name, answer), count in sorted(outcomes.items()) if name == action}
        console.print(f"{action:9} " + ", ".join(f"{answer} {f'{count:,}' if count else 'never'}" for answer, count in counts.items()),
                      highlight=False)


def _reached(coverage: "reached.Coverage") -> list[str]:
    """Print what traces reach, module by module; the lines that say what is wrong with it."""
    for module in dict.fromkeys(statement.module for statement in coverage.statements):
        of = [statement for statement in coverage.statements if statement.module == module]
        missed = [statement for statement in of if statement in coverage.unreached]
        console.print(f"{module}: traces reach {len(of) - len(missed)} of {len(of)} statements, {coverage.share(module):.1%}",
                      highlight=False)
        for statement in missed:
            why = coverage.unreached[statement] or "no reason is given"
            console.print(f"  line {statement.line}: {statement.text}   ({why})", highlight=False, markup=False)
    wrong = [f"no trace reaches `{statement.text}` of {statement.module}, and specs/unreached.toml does not say why"
             for statement, why in coverage.unreached.items() if not why]
    return wrong + [f"specs/unreached.toml: `{text}` is reached, or is not there any more" for text in coverage.stale]


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


def _all(work: Callable[[Item], Out], items: Sequence[Item], jobs: int, name: Callable[[Item], str]) -> dict[str, Out]:
    """What `work` makes of each, by name; progress is shown meanwhile."""
    done: dict[str, Out] = {}
    with console.status("") as status:
        status.update(f"0 of {len(items)} done")
        for item, made in check.side_by_side(work, items, jobs):
            done[name(item)] = made
            status.update(f"{len(done)} of {len(items)} done, {name(item)} the last")
    return done


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        left = heading in ("run", "spec", "check", "module", "result", "for", "mutant", "found by", "what")
        table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=heading in ("run", "module", "mutant"))
    return table


if __name__ == "__main__":
    main(prog_name="python -m modelcheck")
