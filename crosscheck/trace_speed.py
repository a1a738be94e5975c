"""The speed at which TLC judges traces, and that of the Python model in the same run."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from conformance import targets
from conformance.campaign.batches import trace_seed
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging import oracles
from conformance.programs import generate


@dataclass(frozen=True)
class Speed:
    """The time that TLC and the model took to judge some traces, in seconds of wall-clock time."""

    traces: int
    events: int
    tlc_seconds: float  # start-up included
    start_up: float  # seconds that TLC takes for one event, in the same run
    model_seconds: float

    @property
    def tlc_rate(self) -> float:
        """Events per second, start-up included."""
        return self.events / self.tlc_seconds

    @property
    def running_rate(self) -> float:
        """Events per second once TLC has started."""
        return self.events / (self.tlc_seconds - self.start_up)

    @property
    def model_rate(self) -> float:
        """Events per second of the model in Python."""
        return self.events / self.model_seconds


def measure(
    sizes: list[int], *, target: str = "model:ack", ops: int = 40, seed: int = 1
) -> Iterator[Speed]:
    """Have about this many events judged by TLC and by the model; both have to accept.

    Raises RuntimeError if they do not.
    """
    factory = targets.resolve(target)
    started = time.monotonic()
    bench = Bench(factory)
    oracles.named("tlc")([bench.drive([{"op": "create", "blocks": 1}], seed, {})])
    bench.clear()
    start_up = time.monotonic() - started
    for size in sizes:
        bench = Bench(factory)
        traces: list[Trace] = []
        drawn = generate.cases(factory.draw, bench.hello, ops, seed, cuts=True)
        while sum(len(trace.events) for trace in traces) < size:
            options, program = next(drawn)
            traces.append(bench.drive(program, trace_seed(seed, len(traces)), options))
        bench.clear()
        seconds = {}
        for name in ("tlc", "model"):
            judge = oracles.named(name)
            started = time.monotonic()
            opinions = judge(traces)
            seconds[name] = time.monotonic() - started
            if any(opinion.at is not None or opinion.unsure for opinion in opinions):
                raise RuntimeError(
                    f"{name} does not accept every trace: "
                    f"{next(o for o in opinions if o.at is not None or o.unsure)}"
                )
        yield Speed(
            len(traces),
            sum(len(trace.events) for trace in traces),
            seconds["tlc"],
            start_up,
            seconds["model"],
        )
