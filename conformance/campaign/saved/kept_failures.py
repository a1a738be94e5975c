"""Failures that are kept between runs: run first the next time, and forgotten when they pass.

`.conformance/failures` has a folder for each target, and in it a trace for each bug.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from conformance.campaign.batches import judged
from conformance.campaign.driver import Bench
from conformance.campaign.grouping import grouped
from conformance.campaign.results import Campaign, Failure
from conformance.contract import trace as traces
from conformance.contract.trace import IMPOSSIBLE, BadTrace, Trace, Unreadable
from conformance.judging.explain import Verdict
from conformance.judging.oracles import Oracle
from conformance.targets import Factory
from conformance.targets.base import Unusable

FOLDER = Path(".conformance")
REPEATS = 10  # times that a kept trace is sent before it counts as passed


class Again(NamedTuple):
    """The result of running kept failures again: those that still fail, and how many passed."""

    failures: list[Failure]
    forgotten: int


class KeptFailures:
    """The kept failures of one target."""

    def __init__(self, folder: Path, target: str) -> None:
        self._root = folder
        slug = re.sub(r"[^A-Za-z0-9]+", "-", target)[:40].strip("-")
        self._folder = folder / "failures" / f"{slug}-{_digest(target)}"

    def run_again(
        self, factory: Factory, oracles: Mapping[str, Oracle], faults: tuple[str, ...]
    ) -> Again:
        """Send every kept trace again, and forget those that pass. Raises OSError.

        A target that cannot be tested forgets nothing."""
        failures: list[Failure] = []
        forgotten = 0
        bench = Bench(factory)
        try:
            for path, trace in self._traces():
                failure = _sent_again(bench, trace, oracles, faults)
                if failure is None:
                    forgotten += _forget(path)
                else:
                    failure.trace.origin = str(path)
                    failures.append(failure)
        except Unusable:
            pass  # the campaign that follows says so
        finally:
            bench.clear()
        return Again(failures, forgotten)

    def keep(self, campaign: Campaign) -> None:
        """Keep the shortest trace of each bug; its `origin` is the file then. Raises OSError."""
        for group in grouped(campaign.failures):
            shown = group[0]
            if shown.number is None:
                continue  # it is there already
            if not self._folder.exists():
                self._folder.mkdir(parents=True)
                (self._root / ".gitignore").write_text("*\n", encoding="utf-8")
            same = str(shown.trace.program) + shown.trace.options.get(IMPOSSIBLE, "")
            name = f"{shown.verdict.kind}-{_digest(same)}.jsonl"
            traces.write(shown.trace, self._folder / name)
            shown.trace.origin = str(self._folder / name)

    def _traces(self) -> Iterator[tuple[Path, Trace]]:
        for path in sorted(self._folder.glob("*.jsonl")):
            try:
                yield path, traces.read(path)
            except Unreadable as error:
                click.echo(f"a kept failure is not run: {error}", err=True)
            except BadTrace:
                _forget(path)  # damaged, or written by another version


def _forget(path: Path) -> bool:
    """Remove a trace. Returns whether the host allowed it."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _sent_again(
    bench: Bench, trace: Trace, oracles: Mapping[str, Oracle], faults: tuple[str, ...]
) -> Failure | None:
    """Return the failure if the trace fails once in REPEATS times, else None. Raises Unusable."""
    for _ in range(REPEATS):
        again = bench.drive(trace.program, trace.seed, trace.options)
        verdict: Verdict = judged([again], oracles, faults)[0]
        if verdict.verdict == "inconclusive" and verdict.at == 0:
            raise Unusable(verdict.reason)
        if verdict.verdict == "fail":
            return Failure(again, verdict, None, again.operations)
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
