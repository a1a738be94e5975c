"""Traces of a target whose requests overlap, and what they show."""

import random
from dataclasses import dataclass, field
from typing import Any

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.judging.verdict import Verdict
from conformance.programs import overlap


@dataclass
class Seen:
    """What the traces of a target showed."""

    failures: list[tuple[Trace, Verdict]] = field(default_factory=list)
    undecided: int = 0
    overlapping: int = 0  # traces in which requests did overlap
    cut: int = 0  # requests in flight when the power failed

    @property
    def words(self) -> list[list[str]]:
        """Return the failures in words."""
        return [verdict.words(trace) for trace, verdict in self.failures]


def several(name: str, count: int, ops: int = 50, most_failures: int = 1, **fixed: Any) -> Seen:
    """Drive and judge traces of the target in which up to eight requests are in flight."""
    factory, seen = targets.resolve(name), Seen()
    bench = Bench(factory)
    try:
        for seed in range(count):
            choose = random.Random(seed)
            options = factory.draw(choose) | fixed
            hello, cuts = bench.hello(options), bench.cuts(options)
            program = overlap.written(
                choose,
                hello,
                ops,
                hello["in_flight"],
                cuts=cuts,
                schedules=bench.schedules(options),
            )
            trace = bench.drive(program, seed, options)
            verdict = judge([trace], {"model": named("model")})[0]
            seen.overlapping += not trace.in_turn
            seen.cut += sum(event.get("answered", 0) is None for event in trace.events)
            seen.undecided += verdict.verdict == "inconclusive"
            if verdict.verdict == "fail":
                seen.failures.append((trace, verdict))
            if len(seen.failures) >= most_failures:
                break
    finally:
        bench.clear()
    return seen
