"""The campaign of `--crashes exhaustive`: every workload of `crash_states`, judged like any trace.
It can continue where it stopped."""

import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from conformance.campaign.crashes import crash_states, kernel_crash_states
from conformance.campaign.crashes.crash_states import LONGEST, Workload
from conformance.campaign.grouping import outline
from conformance.campaign.results import MOST_FAILURES, Campaign, Failure
from conformance.campaign.saved.resume_log import Progress
from conformance.contract.coverage import outcome_of
from conformance.contract.trace import Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import INNER, Oracle
from conformance.targets import Factory

MOST = LONGEST + 2  # operations; 9 times as many workloads each
BATCH = (
    100  # workloads that are judged together, where a judge is slow to start, and then put on file
)


def _passed(line: Any) -> tuple[str, int]:
    """Return a workload that passed and its number of states, from a line of a file."""
    name, states = line["workload"], line["states"]
    if not isinstance(name, str) or type(states) is not int:
        raise TypeError
    return name, states


def _of_kernel(factory: Factory) -> bool:
    return factory.name.partition(":")[0] == "kernel"


def _module_of(factory: Factory) -> ModuleType:
    """Return the module that has the workloads of such a target."""
    return kernel_crash_states if _of_kernel(factory) else crash_states


def total(factory: Factory, longest: int) -> int:
    """Return the number of workloads."""
    return sum(1 for _ in _module_of(factory).workloads(factory.fixed, longest))


def campaign(
    factory: Factory,
    *,
    longest: int,
    oracles: Mapping[str, Oracle],
    most: int | None = None,
    kept: Path | None = None,
    progress: Callable[[int], None] = lambda done: None,
    most_failures: int = MOST_FAILURES,
) -> Campaign:
    """Explore all workloads of up to `longest` operations, or the first `most` of them.

    `kept` is the file of those that passed. It ends after `most_failures` failures that differ.
    Raises BadProgress.
    """
    result = Campaign(
        factory.name,
        0,
        most_failures=most_failures,
        how=f" --crashes exhaustive --ops {longest}",
        judges=tuple(name for name in oracles if name != INNER),
    )
    started = time.monotonic()
    file = Progress(
        kept,
        {"exhaustive": 1, "target": factory.name, "operations": longest, "judges": sorted(oracles)},
        _passed,
    )
    done = dict(file.done)
    explorer = (
        kernel_crash_states.Explorer(factory) if _of_kernel(factory) else crash_states.Explorer()
    )
    batch: list[tuple[Workload, int, list[Trace]]] = []
    together = BATCH if oracles.keys() - {"model"} else 1
    try:
        for workload in islice(_module_of(factory).workloads(factory.fixed, longest), most):
            result.workloads += 1
            if workload.name in done:
                result.resumed += 1
                result.states += done[workload.name]
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
    except KeyboardInterrupt:
        result.interrupted = True
    finally:
        explorer.close()
    if INNER in oracles and result.judged:
        result.judges += (INNER,)
    result.seconds = time.monotonic() - started
    return result


def _judged(
    batch: list[tuple[Workload, int, list[Trace]]], oracles: Mapping[str, Oracle], result: Campaign
) -> list[dict[str, Any]]:
    """Judge a batch, add it to the result; a line for each that passed."""
    verdicts = iter(
        judge([trace for _, _, found in batch for trace in found], oracles) if batch else []
    )
    passed = []
    for workload, states, found in batch:
        judged = list(zip(found, verdicts, strict=False))
        for trace, verdict in judged:
            result.coverage.update(
                (event["op"], outcome_of(event))
                for event in trace.events
                if event["op"] != "create"
            )
            alike = outline(trace, verdict)
            if verdict.verdict == "fail" and all(
                outline(f.trace, f.verdict) != alike for f in result.failures
            ):
                result.failures.append(
                    Failure(trace, verdict, len(result.judged), trace.operations)
                )
            result.judged[len(result.judged)] = trace, verdict
        if all(verdict.verdict == "pass" for _, verdict in judged):
            passed.append({"workload": workload.name, "states": states})
    return passed
