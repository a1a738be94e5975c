"""`modelcheck model-tests`: tests of an engine from the contract's own steps, and what traces
reach.
"""

import sys
import time

import click

from crosscheck import contract_tests, inner_traces
from crosscheck.commands.parameters import target_option
from modelcheck.commands.output import console, jobs_option, table
from modelcheck.runs import reached


@click.command("model-tests")
@target_option("refmodel", "The engine to test, in process; `conformance targets` lists the kinds.")
@jobs_option
def model_tests(target: str, jobs: int) -> None:
    """Derive tests of the engine from the contract.

    The tests are all paths of requests, up to a depth, on a disk of 2 blocks, 2 values and 1 name.

    Each answer of the engine has to be one that TLC printed for that state. It also
    shows what the traces reach of the module that judges traces. What they do not reach needs a
    reason in specs/unreached.toml.
    """
    started = time.monotonic()
    rows = table("profile", "paths of", "cut short at", "tests", "operations", "failures")
    outcomes: dict[tuple[str, str], int] = {}
    sample, failures, tests = [], [], 0
    with console.status("the contract's steps"):
        for series, steps, replayed in contract_tests.run(jobs, target):
            cuts = f"writes {', '.join(map(str, series.cuts))}" if series.cuts else "-"
            rows.add_row(
                series.profile,
                f"{series.depth} requests",
                cuts,
                f"{replayed.tests:,}",
                f"{replayed.operations:,}",
                str(len(replayed.failures)),
            )
            for outcome in steps.outcomes() | set(replayed.outcomes):
                outcomes[outcome] = outcomes.get(outcome, 0) + replayed.outcomes[outcome]
            sample += replayed.sample
            failures += replayed.failures
            tests += replayed.tests
    console.print(rows)
    _outcomes(outcomes)
    wrong = failures[:10]
    if not failures:
        with console.status("what the traces reach"):
            for coverage in (contract_tests.statements(sample), *inner_traces.statements()):
                wrong += _reached(coverage)
    console.print(
        f"{tests:,} tests, {len(failures):,} failures, {time.monotonic() - started:.0f} s"
    )
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


def _outcomes(outcomes: dict[tuple[str, str], int]) -> None:
    """Print the coverage of the contract's actions and answers, a line per action."""
    for action in dict.fromkeys(action for action, _ in sorted(outcomes)):
        counts = {
            answer: count for (name, answer), count in sorted(outcomes.items()) if name == action
        }
        console.print(
            f"{action:9} "
            + ", ".join(
                f"{answer} {f'{count:,}' if count else 'never'}" for answer, count in counts.items()
            ),
            highlight=False,
        )


def _reached(coverage: reached.Coverage) -> list[str]:
    """Print what traces reach, module by module; the lines that say what is wrong with it."""
    for module in dict.fromkeys(statement.module for statement in coverage.statements):
        of = [statement for statement in coverage.statements if statement.module == module]
        missed = [statement for statement in of if statement in coverage.unreached]
        console.print(
            f"{module}: traces reach {len(of) - len(missed)} of {len(of)} statements, "
            f"{coverage.share(module):.1%}",
            highlight=False,
        )
        for statement in missed:
            why = coverage.unreached[statement] or "no reason is given"
            console.print(
                f"  line {statement.line}: {statement.text}   ({why})",
                highlight=False,
                markup=False,
            )
    wrong = [
        f"no trace reaches `{statement.text}` of {statement.module}, "
        "and specs/unreached.toml does not say why"
        for statement, why in coverage.unreached.items()
        if not why
    ]
    return wrong + [
        f"specs/unreached.toml: `{text}` is reached, or is not there any more"
        for text in coverage.stale
    ]
