"""The campaign of `--crashes exhaustive`: every workload of conformance.crashes, judged like any trace; it can go on where it was."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from conformance.crashes import LONGEST, Explorer, Workload, workloads
from conformance.judge import judge
from conformance.oracles import INNER, Oracle
from conformance.runner import MOST_FAILURES, Campaign, Failure, outcome_of, shape
from conformance.targets import Factory
from conformance.trace import Trace

MOST = LONGEST + 2  # operations; 9 times as many workloads each
BATCH = 100  # workloads that are judged together, where a judge is slow to start, and then put on file


class BadProgress(Exception):
    """A file that is no record of this campaign. One line."""


class Progress:
    """A file of the workloads that passed: JSON Lines, a header and a line each. Without a path nothing is kept.

    Raises BadProgress if the file is of another campaign, or damaged; OSError."""

    def __init__(self, path: Path | None, header: dict[str, Any]) -> None:
        self._path = path
        self.done: dict[str, int] = {}  # workload -> states
        if path is None:
            return
        header = {"exhaustive": 1, **header}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(header) + "\n", encoding="utf-8")
            return
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        if _parsed(lines[0]) != header:
            raise BadProgress(f"{path}: of another campaign: give another file, or remove it")
        whole = [_parsed(line) for line in lines[1:-1]]
        for number, line in enumerate(whole, 2):
            if not isinstance(line, dict) or not isinstance(line.get("workload"), str) or type(line.get("states")) is not int:
                raise BadProgress(f"{path}:{number}: no workload that passed: remove the line, or the file")
            self.done[line["workload"]] = line["states"]
        if lines[-1]:  # cut off: that workload is done again
            path.write_text("\n".join([*lines[:-1], ""]), encoding="utf-8")

    def add(self, passed: Iterable[tuple[Workload, int]]) -> None:
        """These passed, with so many states each."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps({"workload": w.name, "states": states}) + "\n" for w, states in passed)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def total(factory: Factory, longest: int) -> int:
    """How many workloads there are."""
    return sum(1 for _ in workloads(factory.fixed, longest))


def campaign(factory: Factory, *, longest: int, oracles: Mapping[str, Oracle], most: int | None = None,
             kept: Path | None = None, progress: Callable[[int], None] = lambda done: None,
             most_failures: int = MOST_FAILURES) -> Campaign:
    """Explore all workloads of up to `longest` operations, or the first `most` of them.

    `kept` is the file of those that passed. It ends after `most_failures` failures that differ. Raises BadProgress."""
    result = Campaign(factory.name, 0, most_failures=most_failures, how=f" --crashes exhaustive --ops {longest}",
                      judges=tuple(name for name in oracles if name != INNER))
    started = time.monotonic()
    file = Progress(kept, {"target": factory.name, "operations": longest, "judges": sorted(oracles)})
    explorer = Explorer()
    batch: list[tuple[Workload, int, list[Trace]]] = []
    together = BATCH if oracles.keys() - {"model"} else 1
    try:
        for workload in islice(workloads(factory.fixed, longest), most):
            result.workloads += 1
            if workload.name in file.done:
                result.resumed += 1
                result.states += file.done[workload.name]
            else:
                explored = explorer.explore(workload)
                result.states += explored.states
                batch.append((workload, explored.states, list(explored.traces.values())))
            if len(batch) == together:
                file.add(_judged(batch, oracles, result))
                batch = []
            progress(result.workloads)
            if len(result.failures) >= most_failures:
                break
        file.add(_judged(batch, oracles, result))
    finally:
        explorer.close()
    if INNER in oracles and result.judged:
        result.judges += (INNER,)
    result.seconds = time.monotonic() - started
    return result


def _judged(batch: list[tuple[Workload, int, list[Trace]]], oracles: Mapping[str, Oracle],
            result: Campaign) -> list[tuple[Workload, int]]:
    """Judge a batch, add it to the result, and say which passed."""
    verdicts = iter(judge([trace for _, _, found in batch for trace in found], oracles) if batch else [])
    passed = []
    for workload, states, found in batch:
        judged = list(zip(found, verdicts))
        for trace, verdict in judged:
            result.coverage.update((event["op"], outcome_of(event)) for event in trace.events if event["op"] != "create")
            alike = shape(trace, verdict)
            if verdict.verdict == "fail" and all(shape(f.trace, f.verdict) != alike for f in result.failures):
                result.failures.append(Failure(trace, verdict, len(result.judged), trace.operations))
            result.judged.append((trace, verdict))
        if all(verdict.verdict == "pass" for _, verdict in judged):
            passed.append((workload, states))
    return passed
