"""Kernel drivers under power cuts: honest runs, and injected faults, each of which must be found.

    python -m conformance.selftest.kernel [DRIVER...] [--minutes M] [--fault NAME...] [--seed N]

prints a table. An honest run goes on behind a failure, and counts the failures by their class; the
traces are kept in a folder, unshortened. Exit status: 0 if all honest runs pass, but for known
findings, and all faults are found; 1 if not; 3 if nothing could be run. What is found with a fault
in a driver that has a known finding may be that finding."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

import click

from conformance.campaign import batches
from conformance.contract import trace as traces_of
from conformance.contract.trace import Trace
from conformance.judging import oracles
from conformance.judging.oracles import Oracle
from conformance.targets import resolve
from conformance.targets.base import Unusable
from conformance.targets.engines.kernel import DRIVERS
from conformance.targets.engines.kernel.faults import FAULTS
from conformance.targets.engines.kernel.machine import guest

OPERATIONS = 30  # operations per trace
MOST_PARTS, HUNTED = 2, 100  # parts of a hunt, and traces in each
SOME = 25  # traces in each part of an honest run, which is not ended before they are judged
IN_FLIGHT = 8  # requests, in honest runs
KEPT = Path("runs/kernel")
AROUND = {"nilfs2": "cache=through"}  # driver -> options with which its findings do not show
INJECTED = tuple(fault for fault in FAULTS if fault != "none")
NOT_FOUND = "NOT FOUND"


@dataclass(frozen=True)
class Row:
    """The result of one run, honest or with a fault. `seconds` are of CPU time, guests'
    included."""

    target: str
    traces: int
    operations: int
    crashes: int
    seconds: float
    came: str
    good: bool

    def more(self, part: batches.Part) -> "Row":
        """Return this row with the result of one more part added."""
        return replace(
            self,
            traces=self.traces + len(part.judged),
            operations=self.operations + sum(trace.operations for trace, _ in part.judged),
            crashes=self.crashes + sum(trace.crashes for trace, _ in part.judged),
        )

    def __str__(self) -> str:
        rate = self.crashes / self.seconds if self.seconds else 0.0
        return (
            f"{self.target:64} {self.traces:6} {self.operations:8} {self.crashes:7} "
            f"{self.seconds:8.1f} {rate:6.1f}  {self.came}"
        )


COLUMNS = "traces", "requests", "crashes", "CPU s", "/CPU s"
HEAD = "{:64} {:>6} {:>8} {:>7} {:>8} {:>6}  verdict".format("target", *COLUMNS)


def honest(
    driver: str,
    minutes: float,
    seed: int,
    most: int | None = None,
    kept: Path = KEPT,
    in_flight: int = IN_FLIGHT,
) -> Row:
    """Run traces of the driver as it is, until the minutes are over or `most` were judged.

    Options may stand behind its name and a colon; then no finding is known.

    Those that fail are written to the folder `kept`. Raises Unusable if there is no guest."""
    name, (kind, _, options) = f"kernel:{driver}", driver.partition(":")
    before, started = _begun(), time.monotonic()
    undecided = 0
    row = Row(name, 0, 0, 0, 0.0, "", True)
    failures: Counter[tuple[str, str | None]] = Counter()  # (class, page of the finding) -> number
    for number in count():
        left = SOME if most is None else min(SOME, most - row.traces)
        if left <= 0 or time.monotonic() - started >= 60 * minutes:
            break
        part = _part(name, seed, number, left, left, in_flight)
        row = row.more(part)
        for place, (trace, verdict) in enumerate(part.judged):
            undecided += verdict.verdict == "inconclusive"
            if verdict.verdict == "fail":
                assert isinstance(trace, Trace), "a trace that failed is whole"
                page = DRIVERS[kind].finding(trace, verdict.kind) if not options else None
                failures[verdict.kind, page] += 1
                _keep(trace, kept / f"{driver}-{seed}-{number}-{place}.jsonl")
    said = [f"{n} {found} {page or 'UNKNOWN'}" for (found, page), n in failures.items()]
    came = f"fail: {', '.join(said)}" if said else "pass"
    return replace(
        row,
        seconds=guest.processor_seconds() - before,
        came=f"{came}; {undecided} not decided" if undecided else came,
        good=all(page for _, page in failures),
    )


def hunt(driver: str, fault: str, seed: int) -> Row:
    """Run traces until one fails. Raises Unusable if there is no guest."""
    name = f"kernel:{driver}:{DRIVERS[driver].shown_by.get(fault, '')}fault={fault}"
    before = _begun()
    row = Row(name, 0, 0, 0, 0.0, NOT_FOUND, False)
    for number in range(MOST_PARTS):
        part = _part(name, seed, number, HUNTED, 1, 1)  # an order is searched for long
        row = row.more(part)
        found = [verdict.kind for _, verdict in part.judged if verdict.verdict == "fail"]
        if found:
            row = replace(row, came=f"found: {found[0]}", good=True)
            break
    return replace(row, seconds=guest.processor_seconds() - before)


def _begun() -> float:
    """Return the CPU time until now. Raises Unusable if there is no guest."""
    guest.version()
    return guest.processor_seconds()


def _part(
    name: str, seed: int, number: int, most: int, failures: int, in_flight: int
) -> batches.Part:
    """Run the traces of one part of a campaign, until the given number have failed.

    Raises Unusable.
    """
    plan = batches.Plan(
        name, frozenset(), seed, OPERATIONS, True, tuple(_judges()), failures, in_flight=in_flight
    )
    part = batches.drive(resolve(name), _judges(), plan, number, most)
    if part.reason:
        raise Unusable(part.reason, part.output)
    return part


def _keep(trace: Trace, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    traces_of.write(trace, path)


def _judges() -> Mapping[str, Oracle]:
    return {"model": oracles.named("model")}


def rows(
    drivers: tuple[str, ...],
    minutes: float,
    faults: Iterable[str],
    seed: int,
    traces: int | None,
    kept: Path,
    in_flight: int,
) -> Iterator[Row]:
    """Yield the rows of the table as they come.

    `minutes` are for each honest run; 0 leaves it out.
    """
    for driver in drivers:
        if minutes:
            yield honest(driver, minutes, seed, traces, kept, in_flight)
        if driver not in DRIVERS:
            continue
        if minutes and driver in AROUND:
            around = f"{driver}:{AROUND[driver]}"
            yield honest(around, minutes, seed, traces, kept, in_flight)
        for fault in faults:
            if fault not in DRIVERS[driver].blind_to:
                yield hunt(driver, fault, seed)


def _drivers(_: click.Context, __: click.Parameter, named: tuple[str, ...]) -> tuple[str, ...]:
    for one in named:
        if one.partition(":")[0] not in DRIVERS:
            raise click.BadParameter(f"{one}: a driver is one of {', '.join(DRIVERS)}")
    return named


@click.command()
@click.argument("drivers", nargs=-1, metavar="[DRIVER[:OPTIONS]]...", callback=_drivers)
@click.option("--minutes", default=1.0, show_default=True, help="For each driver's honest run.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice(["none", *INJECTED]),
    help="Hunt this injected fault; can be repeated; none: no fault.  [default: all]",
)
@click.option("--traces", type=int, help="At most so many in each honest run.  [default: no limit]")
@click.option(
    "--in-flight",
    default=IN_FLIGHT,
    show_default=True,
    type=click.IntRange(1, IN_FLIGHT),
    help="Requests at most in half of the traces of honest runs; the others have one.",
)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--keep",
    default=KEPT,
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the traces of honest runs that fail.",
)
@click.option(
    "--json",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add the rows to this file too, one object per line.",
)
def main(
    drivers: tuple[str, ...],
    minutes: float,
    faults: tuple[str, ...],
    traces: int | None,
    in_flight: int,
    seed: int,
    keep: Path,
    file: Path | None,
) -> None:
    """Test snapshots of kernel drivers under power cuts, and that injected faults are found."""
    good = True
    started = time.monotonic()
    try:
        click.echo(f"user-mode Linux {guest.version()}\n{HEAD}")
        hunted = [fault for fault in faults or INJECTED if fault != "none"]
        named = drivers or tuple(DRIVERS)
        for row in rows(named, minutes, hunted, seed, traces, keep, in_flight):
            good = good and row.good
            click.echo(row)
            if file is not None:
                with file.open("a") as lines:
                    lines.write(json.dumps({**asdict(row), "seed": seed}) + "\n")
    except Unusable as error:
        click.echo(f"NOT RUN: {error.message}\n{error.output}".rstrip())
        sys.exit(3)
    click.echo(f"{time.monotonic() - started:.0f} s")
    sys.exit(not good)


if __name__ == "__main__":
    main()
