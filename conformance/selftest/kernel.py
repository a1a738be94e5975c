"""Kernel drivers under power cuts: honest runs, and injected faults, each of which must be found.

    python -m conformance.selftest.kernel [DRIVER...] [--minutes M] [--fault NAME...] [--seed N]

prints a table. Exit status: 0 if all honest runs pass, but for known findings, and all faults
are found; 1 if not; 3 if nothing could be run. What is found with a fault in a driver that has a
known finding may be that finding."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import click

from conformance.campaign import batches, random_campaign
from conformance.judging import oracles
from conformance.judging.oracles import Oracle
from conformance.targets import resolve
from conformance.targets.base import Unusable
from conformance.targets.engines.kernel import DRIVERS, guest
from conformance.targets.engines.kernel.faults import FAULTS

OPERATIONS = 30  # of a trace
MOST_PARTS = 2  # of a hunt, of 50 traces each
INJECTED = tuple(fault for fault in FAULTS if fault != "none")
NOT_FOUND = "NOT FOUND"


@dataclass(frozen=True)
class Row:
    """What came of one run, honest or with a fault. `seconds` are of processor time, guests'
    included."""

    target: str
    traces: int
    operations: int
    crashes: int
    seconds: float
    came: str
    good: bool

    def __str__(self) -> str:
        rate = self.crashes / self.seconds if self.seconds else 0.0
        return (
            f"{self.target:64} {self.traces:6} {self.operations:8} {self.crashes:7} "
            f"{self.seconds:8.1f} {rate:6.1f}  {self.came}"
        )


COLUMNS = "traces", "requests", "crashes", "CPU s", "/CPU s"
HEAD = "{:64} {:>6} {:>8} {:>7} {:>8} {:>6}  verdict".format("target", *COLUMNS)


def honest(driver: str, minutes: float, seed: int, traces: int | None = None) -> Row:
    """A campaign against the driver as it is. Raises Unusable if there is no guest."""
    name = f"kernel:{driver}"
    guest.version()
    before = guest.processor_seconds()
    result = random_campaign.campaign(
        resolve(name),
        count=traces,
        ops=OPERATIONS,
        seed=seed,
        oracles=_judges(),
        minutes=minutes,
    )
    if not result.judged:
        raise Unusable(result.reason, result.output)
    classes = {failure.verdict.kind for failure in result.failures}
    pages = DRIVERS[driver].findings
    known = bool(classes) and classes <= pages.keys()
    found = [pages[one] for one in sorted(classes & pages.keys())]
    said = [result.verdict, ", ".join(sorted(classes)), result.reason, *found]
    return Row(
        name,
        len(result.judged),
        result.operations,
        result.crashes,
        guest.processor_seconds() - before,
        " ".join(filter(None, said)),
        result.verdict == "pass" or known,
    )


def hunt(driver: str, fault: str, seed: int) -> Row:
    """Traces until one fails. Raises Unusable if there is no guest."""
    name = f"kernel:{driver}:{DRIVERS[driver].shown_by.get(fault, '')}fault={fault}"
    guest.version()
    before = guest.processor_seconds()
    plan = batches.Plan(name, frozenset(), seed, OPERATIONS, True, tuple(_judges()), 1)
    traces = operations = crashes = 0
    came = NOT_FOUND
    for number in range(MOST_PARTS):
        part = batches.drive(resolve(name), _judges(), plan, number, plan.length)
        if part.reason:
            raise Unusable(part.reason, part.output)
        traces += len(part.judged)
        operations += sum(trace.operations for trace, _ in part.judged)
        crashes += sum(trace.crashes for trace, _ in part.judged)
        found = [verdict.kind for _, verdict in part.judged if verdict.verdict == "fail"]
        if found:
            came = f"found: {found[0]}"
            break
    seconds = guest.processor_seconds() - before
    return Row(name, traces, operations, crashes, seconds, came, came != NOT_FOUND)


def _judges() -> Mapping[str, Oracle]:
    return {"model": oracles.named("model")}


def rows(
    drivers: tuple[str, ...], minutes: float, faults: Iterable[str], seed: int, traces: int | None
) -> Iterator[Row]:
    """The rows of the table as they come. `minutes` are for each honest run; 0 leaves it out."""
    for driver in drivers:
        if minutes:
            yield honest(driver, minutes, seed, traces)
        for fault in faults:
            if fault not in DRIVERS[driver].blind_to:
                yield hunt(driver, fault, seed)


@click.command()
@click.argument("drivers", nargs=-1, type=click.Choice(list(DRIVERS)))
@click.option("--minutes", default=1.0, show_default=True, help="For each driver's honest run.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice(["none", *INJECTED]),
    help="Hunt this injected fault; can be repeated; none: no fault.  [default: all]",
)
@click.option("--traces", type=int, help="At most so many in each honest run.  [default: no limit]")
@click.option("--seed", default=1, show_default=True)
def main(
    drivers: tuple[str, ...], minutes: float, faults: tuple[str, ...], traces: int | None, seed: int
) -> None:
    """Test snapshots of kernel drivers under power cuts, and that injected faults are found."""
    good = True
    started = time.monotonic()
    try:
        click.echo(f"user-mode Linux {guest.version()}\n{HEAD}")
        hunted = [fault for fault in faults or INJECTED if fault != "none"]
        for row in rows(drivers or tuple(DRIVERS), minutes, hunted, seed, traces):
            good = good and row.good
            click.echo(row)
    except Unusable as error:
        click.echo(f"NOT RUN: {error.message}\n{error.output}".rstrip())
        sys.exit(3)
    click.echo(f"{time.monotonic() - started:.0f} s")
    sys.exit(not good)


if __name__ == "__main__":
    main()
