"""The self-test: bugs planted in the reference engine, each of which the kit has to find. An honest engine has to pass."""

import sys
import time
from dataclasses import dataclass

import click
from rich.console import Console
from rich.table import Table

from conformance import generate, oracles, targets
from conformance.runner import Failure, campaign
from refmodel.bugs import BUGS

HONEST = "(none)"


@dataclass(frozen=True)
class Hunt:
    """What came of looking for one bug."""

    bug: str
    traces: int  # driven, the failing one included
    operations: int  # in them
    seconds: float  # to find, shrinking included
    failure: Failure | None

    @property
    def as_it_should_be(self) -> bool:
        return (self.failure is None) == (self.bug == HONEST)


def hunt(bug: str, *, traces: int, ops: int, seed: int) -> Hunt:
    """Look for a planted bug in at most so many traces. `bug` may be HONEST: then nothing should be found."""
    started = time.monotonic()
    options = {} if bug == HONEST else {**BUGS[bug].needs, "plant": bug}
    factory = targets.resolve("refmodel:" + ",".join(f"{name}={value}" for name, value in options.items()))
    result = campaign(
        factory, count=traces, ops=ops, seed=seed, oracles={"model": oracles.named("model")}, most_failures=1
    )
    failure = result.failures[0] if result.failures else None
    return Hunt(bug, len(result.judged), result.operations, time.monotonic() - started, failure)


@click.command("selftest")
@click.argument("bugs", nargs=-1, type=click.Choice([*BUGS, HONEST]), metavar="[BUG]...")
@click.option("--traces", type=click.IntRange(1), default=1000, show_default=True, help="Traces at most for each bug.")
@click.option("--ops", type=click.IntRange(1, generate.MOST_OPS), default=30, show_default=True, help="About how many operations a trace.")
@click.option("--seed", type=int, default=1, show_default=True)
def command(bugs: tuple[str, ...], traces: int, ops: int, seed: int) -> None:
    """Plant bugs in the reference engine; each must be found, and the engine without one must pass.

    Exit status: 0 if so, 1 if not.
    """
    console = Console()
    table = Table(box=None, pad_edge=False)
    for heading in ("bug", "no.", "found as", "traces", "operations", "shrunk to", "seconds"):
        table.add_column(heading, justify="left" if heading in ("bug", "found as") else "right")
    hunts = []
    for bug in bugs or (HONEST, *BUGS):
        with console.status(f"{bug}: looking"):
            hunts.append(hunt(bug, traces=traces, ops=ops, seed=seed))
        table.add_row(*_row(hunts[-1]))
    console.print(table)
    wrong = [hunted.bug for hunted in hunts if not hunted.as_it_should_be]
    found = sum(hunted.failure is not None for hunted in hunts if hunted.bug != HONEST)
    planted = sum(hunted.bug != HONEST for hunted in hunts)
    console.print(f"{found} of {planted} planted bugs found" + (f"; not as it should be: {', '.join(wrong)}" if wrong else ""))
    sys.exit(1 if wrong else 0)


def _row(hunted: Hunt) -> tuple[str, ...]:
    number = "" if hunted.bug == HONEST else str(BUGS[hunted.bug].number)
    kind = hunted.failure.verdict.kind if hunted.failure else "[dim]nothing[/]" if hunted.as_it_should_be else "[red]not found[/]"
    shrunk = str(hunted.failure.trace.operations) if hunted.failure else ""
    return hunted.bug, number, kind, str(hunted.traces), str(hunted.operations), shrunk, f"{hunted.seconds:.1f}"
