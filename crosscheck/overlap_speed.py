"""Traces per second of CPU time, by the number of requests in flight."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from conformance import targets
from conformance.campaign.batches import trace_seed
from conformance.campaign.driver import Bench
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.programs import overlap


@dataclass(frozen=True)
class OverlapSpeed:
    """The cost of traces with up to `in_flight` requests at once.

    Times are CPU seconds of this process; those of another process are not in
    them."""

    in_flight: int
    traces: int
    operations: int
    driving: float  # writing the program, too
    judging: float  # seconds that the model took
    undecided: int
    failed: int

    @property
    def rate(self) -> float:
        """Traces per second, driven and judged."""
        return self.traces / (self.driving + self.judging)


def measure(
    target: str, in_flight: list[int], *, traces: int, ops: int, seed: int
) -> Iterator[OverlapSpeed]:
    """Drive and judge `traces` traces with each number of requests in flight.

    Raises Unusable if the target cannot be opened."""
    factory, oracle = targets.resolve(target), {"model": named("model")}
    for most in in_flight:
        bench = Bench(factory)
        operations, driving, judging = 0, 0.0, 0.0
        verdicts = {"pass": 0, "inconclusive": 0, "fail": 0}
        for number in range(traces):
            choose = random.Random(f"{seed} {number}")
            options = factory.draw(choose)
            hello = bench.hello(options)
            started = time.process_time()
            program = overlap.written(
                choose,
                hello,
                ops,
                min(most, hello.get("in_flight", 1)),
                cuts=bench.cuts(options),
                schedules=bench.schedules(options),
            )
            trace = bench.drive(program, trace_seed(seed, number), options)
            driven = time.process_time()
            verdicts[judge([trace], oracle)[0].verdict] += 1
            judging += time.process_time() - driven
            driving += driven - started
            operations += trace.operations
        bench.clear()
        yield OverlapSpeed(
            most,
            traces,
            operations,
            driving,
            judging,
            verdicts["inconclusive"],
            verdicts["fail"],
        )
