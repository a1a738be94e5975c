"""Failures that are kept between runs: run first the next time, and forgotten when they pass.

`.conformance/failures` has a folder for each target, and in it a trace for each bug.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from conformance.campaign import interrupts
from conformance.campaign.batches import judged
from conformance.campaign.driver import Bench
from conformance.campaign.grouping import grouped
from conformance.campaign.results import Campaign, Failure
from conformance.contract import trace as traces
from conformance.contract.printable import printable
from conformance.contract.trace import IMPOSSIBLE, BadTrace, Trace
from conformance.judging.explain import Verdict
from conformance.judging.oracles import Oracle
from conformance.programs import swarm
from conformance.targets import Factory
from conformance.targets.base import Unusable

FOLDER = Path(".conformance")
REPEATS = 10  # times that a kept trace is sent before it counts as passed


class Again(NamedTuple):
    """The result of running kept failures again: those that still fail, and how many passed.

    `unsent` says for each trace that was not sent which operations the target is not asked for."""

    failures: list[Failure]
    forgotten: int
    unsent: list[str]

    @property
    def words(self) -> str:
        """The result as a line; empty if no failure was kept."""
        if not any(self):
            return ""
        text = (
            f"kept failures: {len(self.failures)} fail again, {self.forgotten} passed and are "
            "forgotten"
        )
        if not self.unsent:
            return text
        ops = ", ".join(sorted({op for lacking in self.unsent for op in lacking.split(", ")}))
        return f"{text}, {len(self.unsent)} not sent: the target is not asked for {ops}"


class KeptFailures:
    """The kept failures of one target."""

    def __init__(self, folder: Path, target: str) -> None:
        self._root = folder
        slug = re.sub(r"[^A-Za-z0-9]+", "-", target)[:40].strip("-")
        self._folder = folder / "failures" / f"{slug}-{_digest(target)}"
        self._written: set[Path] = set()  # by the last `keep`

    def run_again(
        self, factory: Factory, oracles: Mapping[str, Oracle], faults: tuple[str, ...]
    ) -> Again:
        """Send every kept trace again, and forget those that pass. Raises OSError.

        A target that cannot be tested forgets nothing. An interrupt ends it early; the campaign
        that follows looks for it."""
        failures: list[Failure] = []
        forgotten = 0
        unsent: list[str] = []
        bench = Bench(factory)
        try:
            for path, trace in self._traces():
                interrupts.look()
                if lacking := swarm.lacking(trace, bench.hello(trace.options)):
                    unsent.append(lacking)
                    continue
                failure = _sent_again(bench, trace, oracles, faults)
                if failure is None:
                    forgotten += _forget(path)
                else:
                    failure.trace.origin = str(path)
                    failures.append(failure)
        except (Unusable, KeyboardInterrupt):
            pass  # the campaign that follows says so
        finally:
            bench.clear()
        return Again(failures, forgotten, unsent)

    def keep(self, campaign: Campaign) -> None:
        """Keep the shortest trace of each bug; its `origin` is the file then. Raises OSError.

        A trace that an earlier call kept is removed if there is a shorter one of its bug by now."""
        before, self._written = self._written, set()
        earlier = {Path(one.trace.origin) for one in campaign.failures if one.number is None}
        for group in grouped(campaign.failures):
            shown = group[0]
            if shown.number is None:
                continue  # it is there already
            if not self._folder.exists():
                self._folder.mkdir(parents=True)
                (self._root / ".gitignore").write_text("*\n", encoding="utf-8")
            same = str(shown.trace.program) + shown.trace.options.get(IMPOSSIBLE, "")
            name = f"{shown.verdict.kind}-{_digest(same)}.jsonl"
            traces.write(shown.on_file, self._folder / name)
            shown.trace.origin = str(self._folder / name)
            self._written.add(self._folder / name)
        for path in before - self._written - earlier:
            _forget(path)

    def _traces(self) -> Iterator[tuple[Path, Trace]]:
        for path in sorted(self._folder.glob("*.jsonl")):
            try:
                yield path, traces.read(path)
            except BadTrace as error:  # it is evidence, even if it is damaged: the user decides
                click.echo(printable(f"a kept failure is not run: {error}"), err=True)


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
            unfinished = trace.unfinished or trace.before is None  # it may never have been shrunk
            before = trace.before or again.operations
            return Failure(again, verdict, None, before, unfinished=unfinished)
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
