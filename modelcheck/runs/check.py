"""Compares runs with the list: the result, the number of states, the depth, the actions taken."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from modelcheck.checkers import process, tlc, tlc_config
from modelcheck.checkers.tlc import Result
from modelcheck.runs import arguments, naming
from modelcheck.runs.models import Run

Item = TypeVar("Item")
Out = TypeVar("Out")

LONGEST = 1200.0  # seconds, for a small run or a mutant on a busy machine
SHORT = 30.0  # seconds: in a run that is listed as longer Java's second compiler pays


def side_by_side(
    work: Callable[[Item], Out], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Item, Out]]:
    """Yield each item with the result of `work`, as it is done.

    `jobs` items are worked on at a time, begun in their order. An error stops the others."""
    with ThreadPoolExecutor(jobs) as pool:
        begun = {pool.submit(work, item): item for item in items}
        try:
            for done in as_completed(begun):
                yield begun[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in begun):  # one may only be about to start
                process.stop()
                time.sleep(0.1)
            raise


@dataclass(frozen=True)
class Checked:
    """A run, what came of it, and in what it differs from the list, one line each."""

    run: Run
    result: Result
    differences: list[str]


def check(run: Run, *, workers: int = 1) -> Checked:
    """Run TLC as listed, and compare. With more than one worker depth and actions are not compared.

    Raises tlc.Unavailable."""
    small, exact = run.group == "small", workers == 1

    def tried(config: Path | str) -> Result:
        return tlc.run(
            run.module_path,
            config,
            workers=workers,
            heap=run.heap,
            coverage=exact,
            short=small and (run.seconds or 0) < SHORT,
            options=[] if run.deadlock else ["-deadlock"],
            timeout=LONGEST if small else None,
        )

    result = tried(run.config_path)
    result.violated = naming.named(result, run.module_path, run.config_path.read_text(), tried)
    if result.violated not in ("", run.expect):
        result = arguments.labelled(result, run.module_path, run.config_path.read_text())
    counts = ("distinct", "depth") if exact else ("distinct",)
    return Checked(run, result, [*_differences(run, result, counts), *_unsound(run, result)])


def _differences(run: Run, result: Result, counts: tuple[str, ...]) -> Iterator[str]:
    came = result.violated if result.status == "violated" else result.status
    if came != run.expect:
        yield f"{run.expect} was expected; it came to {came}" + (
            f": {result.message}" if result.message else ""
        )
        return
    for what in counts:
        listed, counted = getattr(run, what), getattr(result, what)
        if listed != counted:
            yield f"{what}: {counted}; listed is {'nothing' if listed is None else listed}"
    for action in result.unused:
        if action not in run.unused:
            yield f"action {action} was never taken"
    for together in sorted(result.reached - set(run.reaches)):
        yield f"{together}: reached in one state, and not listed"
    for together in sorted(set(run.reaches) - result.reached):
        yield f"{together}: listed, and never reached in one state"
    for action in run.unused:
        if result.taken.get(action):
            yield f"action {action} was taken, though listed as unused"


def _unsound(run: Run, result: Result) -> Iterator[str]:
    """Yield each setting that leaves out states though this run must not leave out any."""
    for name in tlc_config.unjustified(run.config_path, run.module_path):
        yield f"{run.config_path.name} uses {name}, and no comment at its definition says why"
    if result.liveness:
        for name in tlc_config.named(run.config_path.read_text(), tlc_config.REDUCING):
            yield f"{run.config_path.name} checks liveness, where {name} may hide a counterexample"
