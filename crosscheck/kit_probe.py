"""Measure the cost of one revision of the kit: run as a script, with the revision first on
PYTHONPATH.

It uses only what every revision has, so that two revisions can be compared: `campaign`, and the
functions of `conformance.programs.generate` that a campaign takes its programs from. Prints one
object of JSON. See crosscheck.kit_speed.
"""

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from conformance import targets
from conformance.campaign.random_campaign import campaign
from conformance.judging import oracles
from conformance.programs import generate

Case = tuple[dict[str, Any], list[dict[str, Any]]]  # options of the target, and a program

clock = time.process_time


class Clocks:
    """Seconds of CPU time in the target, and in the generator without the target."""

    target = 0.0
    generator = 0.0


class Timed:
    """A target whose time is counted."""

    def __init__(self, build: Callable[[dict[str, Any]], Any], options: dict[str, Any]) -> None:
        started = clock()
        self._target = build(options)
        self.hello = self._target.hello
        Clocks.target += clock() - started

    def request(self, message: dict[str, Any]) -> Any:
        """Return the target's answer."""
        started = clock()
        try:
            return self._target.request(message)
        finally:
            Clocks.target += clock() - started

    def close(self) -> None:
        """Put the target away."""
        started = clock()
        self._target.close()
        Clocks.target += clock() - started

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def generated(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a form of `make` whose time is counted as the generator's, except the target's part of
    it.
    """

    def timed(*args: Any, **how: Any) -> Any:
        started, target = clock(), Clocks.target
        made = make(*args, **how)
        Clocks.generator += clock() - started - (Clocks.target - target)
        return made

    return timed


def each(make: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Return a form of `make` that measures each item as `generated` does."""

    def timed(*args: Any, **how: Any) -> Iterator[Any]:
        following = generated(make(*args, **how).__next__)
        while True:
            yield following()

    return timed


def own(cases: list[Case]) -> dict[str, Any]:
    """Return the revision's own generator; what it generates is added to `cases`."""
    known = vars(generate)
    if "written" in known:  # the generator draws seeds from Hypothesis, then writes
        write = generated(known["written"])

        def written(*args: Any) -> Case:
            cases.append(write(*args))
            return cases[-1]

        return {"drawn": each(known["drawn"]), "written": written}

    def recorded(*args: Any, **how: Any) -> Iterator[Case]:
        for case in make(*args, **how):
            cases.append(case)
            yield case

    make = each(known["cases"])
    return {"cases": recorded}


def given(cases: list[Case]) -> dict[str, Any]:
    """Return a generator of these programs, which costs nothing."""
    following = iter(cases)
    return {
        "drawn": lambda *args: following,
        "written": lambda case, *args: case,
        "cases": lambda *args, **how: following,
    }


def cost(target: str, generator: dict[str, Any], traces: int, ops: int) -> dict[str, float]:
    """Run a campaign; return its operations and its CPU seconds by part."""
    vars(generate).update(generator)
    factory = targets.resolve(target)
    build = factory.build
    factory = dataclasses.replace(factory, build=lambda options: Timed(build, options))
    run = (
        partial(campaign, in_flight=1)
        if "in_flight" in signature(campaign).parameters
        else campaign
    )
    Clocks.target = Clocks.generator = 0.0
    started = clock()
    result = run(
        factory,
        count=traces,
        ops=ops,
        seed=1,
        oracles={"model": oracles.named("model")},
    )
    seconds = clock() - started
    if result.verdict != "pass":
        raise SystemExit(f"the campaign did not pass: {result.verdict} {result.reason}")
    return {
        "operations": result.operations,
        "crashes": result.crashes,
        "generator": Clocks.generator,
        "target": Clocks.target,
        "kit": seconds - Clocks.generator - Clocks.target,
    }


def main(target: str, traces: int, ops: int, file: Path) -> None:
    """Measure the revision on its own programs, and on those in the file.

    If there is no file yet, the programs of this revision are written to it."""
    cases: list[Case] = []
    mine = cost(target, own(cases), traces, ops)
    if not file.exists():
        file.write_text(json.dumps(cases), encoding="utf-8")
    same = cost(target, given(json.loads(file.read_text(encoding="utf-8"))), traces, ops)
    json.dump({"where": targets.__file__, "own": mine, "same": same}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
