"""Tests of an engine made from the contract's behaviours: every path of requests on a small disk,
up to a depth."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.judging.oracles.spec_lines import sequential
from conformance.programs import generate
from crosscheck import contract_behaviours
from crosscheck.contract_behaviours import Contract, Request
from modelcheck.checkers.tlc import SPECS
from modelcheck.runs import reached, traces

BLOCKS = 2
NAME = "s"
NO_CUT = ("read",)
BY_MODEL = 300  # traces of the model for each profile, for the coverage of statements
PARTS = 16  # parts of a series, shared among the processes


@dataclass(frozen=True)
class Series:
    """All paths of `depth` requests, each path followed by a read of every view."""

    profile: str
    depth: int
    cuts: tuple[int, ...]  # a request is also cut short at these of its device writes
    reads: bool  # reads are among the requests too
    options: dict[str, Any]  # options of the engine


SMALL = {"block_bytes": 512, "segment_blocks": 1, "fanout": 3}
SERIES = (
    Series("ack", 3, (), False, SMALL | {"capacity_percent": 100, "write_back": False}),
    Series("ack", 2, (1, 2), True, SMALL | {"capacity_percent": 400, "write_back": False}),
    Series("prefix", 2, (1, 2), True, SMALL | {"capacity_percent": 200, "write_back": True}),
)


@dataclass
class Replayed:
    """The result of some tests."""

    tests: int = 0
    operations: int = 0
    outcomes: Counter[Any] = field(default_factory=Counter)  # (operation, answer) -> times
    failures: list[str] = field(default_factory=list)  # one line each, the shortest first
    sample: list[Trace] = field(default_factory=list)  # every 50th trace

    def add(self, other: "Replayed") -> None:
        """Add the results of other tests."""
        self.tests += other.tests
        self.operations += other.operations
        self.outcomes.update(other.outcomes)
        self.failures += other.failures
        self.sample += other.sample


def programs(requests: list[Request], series: Series) -> Iterator[list[Request]]:
    """Yield the requests of each test, in a fixed order."""
    alphabet = [request for request in requests if series.reads or request["op"] != "read"]
    alphabet += [request | {"cut": {"after": after, "seed": after}} for after in series.cuts
                 for request in requests if request["op"] not in NO_CUT]  # fmt: skip
    look = [
        {"op": "read", "lba": 0, "count": BLOCKS},
        {"op": "read", "lba": 0, "count": BLOCKS, "view": NAME},
    ]
    for path in product(alphabet, repeat=series.depth):
        yield [{"op": "create", "blocks": BLOCKS}, *path, *look]


def replay(
    series: Series, steps: Contract, target: str = "refmodel", part: int = 0, parts: int = 1
) -> Replayed:
    """Drive the engine through every `parts`-th test, from number `part`; judge each by the
    contract's steps and by the model.
    """
    done, bench, oracle = Replayed(), Bench(targets.resolve(target)), {"model": named("model")}
    try:
        for number, program in enumerate(programs(steps.requests(), series)):
            if number % parts != part:
                continue
            trace = bench.drive(program, number, series.options)
            done.tests += 1
            done.operations += trace.operations
            done.outcomes.update(
                (event["op"], contract_behaviours.answered(event["result"]).split()[0])
                for event in trace.events[1:]
            )
            done.failures += _wrong(steps, trace, judge([trace], oracle)[0])
            if number // parts % 50 == 0:
                done.sample.append(trace)
    finally:
        bench.clear()
    return done


def _wrong(steps: Contract, trace: Trace, verdict: Any) -> Iterator[str]:
    events = trace.events[1:]
    said = "; ".join(
        f"{_request(event)} -> {contract_behaviours.answered(event['result'])}" for event in events
    )
    if "failure" in trace.events[-1]:
        yield f"{said}: {trace.events[-1]['failure']['message']}"
        return
    refused = steps.follow(events)
    if refused:
        yield f"{said}: request {refused[0] + 1} may only be answered {' or '.join(refused[1])}"
    if (verdict.verdict == "pass") != (refused is None):
        yield (
            f"{said}: the model in Python says {verdict.verdict}, the steps that TLC printed do not"
        )


def _request(event: dict[str, Any]) -> str:
    words = [
        f"{name} {value}"
        for name, value in event.items()
        if name not in ("op", "result", "events", "cut")
    ]
    return " ".join([event["op"], *words, *(["cut short"] if "cut" in event else [])])


def run(jobs: int, target: str = "refmodel") -> Iterator[tuple[Series, Contract, Replayed]]:
    """Yield each series, the steps that judged it, and its result; `jobs` processes share it."""
    loaded = {
        profile: contract_behaviours.load(profile)
        for profile in sorted({series.profile for series in SERIES})
    }
    plain = {profile: _plain(steps) for profile, steps in loaded.items()}
    with ProcessPoolExecutor(jobs) as pool:
        for series in SERIES:
            total = Replayed()
            parts = [
                pool.submit(replay, series, plain[series.profile], target, part, PARTS)
                for part in range(PARTS)
            ]
            for part in parts:
                total.add(part.result())
            total.failures.sort(key=len)
            yield series, loaded[series.profile], total


def _plain(steps: Contract) -> Contract:
    """Return the same in dicts that can be sent to another process."""
    return Contract(
        steps.profile, steps.states, {key: dict(answers) for key, answers in steps.steps.items()}
    )


def statements(sample: list[Trace]) -> reached.Coverage:
    """Return what traces reach of the module that judges them.

    The traces are a sample of the tests, traces of the model under each profile, and some by hand.
    Raises as reached.coverage does.
    """

    def batch(profile: str) -> list[traces.Lines]:
        tests = [sequential(trace) for trace in sample if trace.hello["crash_profile"] == profile]
        by_model = [sequential(trace) for trace in _by_model(profile, BY_MODEL)]
        return tests + by_hand(profile) + by_model

    batches = [
        (f"TraceVirtualDisk-{profile}", batch(profile)) for profile in ("ack", "prefix", "block")
    ]
    return reached.coverage(batches, "TraceVirtualDisk", "VirtualDisk")


def _by_model(profile: str, count: int) -> Iterator[Trace]:
    factory = targets.resolve(f"model:{profile}")
    bench = Bench(factory)
    cases = generate.cases(factory.draw, bench.hello, 20, 1, cuts=True)
    for number in range(count):
        options, program = next(cases)
        yield bench.drive(program, number, options)
    bench.clear()


def by_hand(profile: str) -> list[traces.Lines]:
    """Return the traces of specs/traces/by_hand.jsonl.

    They have what no target in process does: devices that fail, answers that say nothing.
    """
    found: list[list[dict[str, Any]]] = []
    for text in (SPECS / "traces" / "by_hand.jsonl").read_text().splitlines():
        line = {name: value for name, value in json.loads(text).items() if value is not None}
        if "trace" in line:
            found.append([])
        found[-1].append(line)
    return [
        trace for trace in found if (trace[0]["hello"].get("crash_profile") or "ack") == profile
    ]
