"""Hunts for planted bugs by every check: the parts of the self-test."""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from conformance import targets
from conformance.campaign.batches import trace_seed
from conformance.campaign.crashes import exhaustive_campaign
from conformance.campaign.driver import Bench
from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign, Failure
from conformance.contract.trace import Trace
from conformance.judging import oracles
from conformance.judging.judge import judge
from conformance.judging.oracles import INNER, NoSuchOracle
from conformance.programs import generate, swarm
from conformance.selftest import corpus
from conformance.targets import Factory
from refmodel.bugs import BUGS
from refmodel.registry import DEFAULT

HONEST = "(none)"
CHECKS = ("model", "scrub", "crashes", "certified", "tlc", INNER)
USUAL = ("model", "scrub", "certified", "tlc", INNER)  # scrub only of what the model does not find
CRASHED_OPERATIONS = 2  # length of workloads whose crash states are enumerated
SCRUBBED = 400  # traces
SHORTEST = 25  # operations, on average, of traces that are asked for 30
NOT_RUN = "not run"


@dataclass
class Hunt:
    """The result of looking for one planted bug.

    `cells` says of each check what it cost to find it, `no`, or `not run`.
    """

    bug: str
    cells: dict[str, str] = field(default_factory=dict)
    traces: int = 0  # traces that the model judged, the failing one included
    operations: int = 0  # in them
    seconds: float = 0.0  # CPU time to find and to shrink by the model
    failure: Failure | None = None  # the failure that the model found
    expected: frozenset[str] = frozenset()  # classes, of the corpus

    @property
    def found(self) -> list[str]:
        """The checks that found it."""
        return [check for check, cell in self.cells.items() if cell not in ("no", NOT_RUN)]

    @property
    def kind(self) -> str:
        """The class of failure that the model found; else what found it, such as `by scrub alone`,
        or `nothing`.
        """
        if self.failure:
            return self.failure.verdict.kind
        return f"by {' and '.join(self.found)} alone" if self.found else "nothing"

    @property
    def as_it_should_be(self) -> bool:
        """True if a bug was found, a small target as what it is, and nothing in what is honest."""
        if self.expected:
            return self.failure is not None and self.failure.verdict.kind in self.expected
        return bool(self.found) == (self.bug != HONEST)

    @property
    def shrunk(self) -> int | None:
        """Operations of the shortest trace."""
        return self.failure.trace.operations if self.failure else None

    @property
    def needs(self) -> list[str]:
        """What the shortest trace needs; every capability if there is none."""
        needed = swarm.needs(self.failure.trace).values() if self.failure else swarm.CAPABILITIES
        return sorted({*needed})


def as_line(hunted: Hunt) -> dict[str, Any]:
    """Return what a progress file keeps of a hunt; of_line reads it."""
    failure = hunted.failure and {**asdict(hunted.failure), "verdict": None}
    return {**asdict(hunted), "failure": failure, "expected": sorted(hunted.expected)}


def of_line(line: dict[str, Any]) -> Hunt:
    """Return the hunt; its trace is judged again."""
    failure = line["failure"]
    if failure is not None:
        trace = Trace(**failure["trace"])
        failure = Failure(trace, judge([trace], _model())[0], failure["number"], failure["before"])
    return Hunt(**{**line, "failure": failure, "expected": frozenset(line["expected"])})


def hunt(bug: str, checks: Sequence[str], *, traces: int, ops: int, seed: int) -> Hunt:
    """Look for a planted bug, by the checks that need to run it. `bug` may be HONEST: then nothing
    should be found.
    """
    needs = {} if bug == HONEST else BUGS[bug].needs
    options = needs if bug == HONEST else {**needs, "plant": bug}
    factory = targets.resolve(
        "refmodel:" + ",".join(f"{name}={value}" for name, value in options.items())
    )
    hunted = Hunt(bug, dict.fromkeys(CHECKS, NOT_RUN))
    by_model(hunted, factory, traces=traces, ops=ops, seed=seed)
    log_structured = needs.get("engine", DEFAULT) == DEFAULT and "cache_bytes" not in needs
    if log_structured and "scrub" in checks and not (checks == USUAL and hunted.failure):
        hunted.cells["scrub"] = by_scrub(factory, traces=min(traces, SCRUBBED), ops=ops, seed=seed)
    if "crashes" in checks:
        hunted.cells["crashes"] = by_crash_states(factory)
    return hunted


def by_model(hunted: Hunt, factory: Factory, *, traces: int, ops: int, seed: int) -> None:
    """Run random traces, judged by the contract in Python."""
    started = time.process_time()
    result = _whole(
        campaign(factory, count=traces, ops=ops, seed=seed, oracles=_model(), most_failures=1)
    )
    hunted.seconds = time.process_time() - started
    hunted.traces, hunted.operations = len(result.judged), result.operations
    hunted.failure = result.failures[0] if result.failures else None
    hunted.cells["model"] = f"{result.operations:,} ops" if hunted.failure else "no"


def by_scrub(factory: Factory, *, traces: int, ops: int, seed: int) -> str:
    """Run random traces with a scrub after each. Return the operations until it fails, or `no`."""
    bench, operations = Bench(factory), 0
    try:
        cases = generate.cases(factory.draw, bench.hello, ops, seed, cuts=True)
        for number, (options, program) in enumerate(islice(cases, traces)):
            trace = bench.drive(program, trace_seed(seed, number), options)
            operations += trace.operations
            target = bench.on(options)
            scrub = getattr(target, "scrub", None)
            if scrub and "failure" not in trace.events[-1] and not _faulty(trace) and scrub():
                return f"{operations:,} ops"
    finally:
        bench.clear()
    return "no"


def _faulty(trace: Trace) -> bool:
    """Return whether a device may have a fault at the end: then scrub may say what it has wrong."""
    faulty = False
    for event in trace.events:
        settled = event["op"] == "settle" and (event["result"] or {}).get("ok")
        faulty = "fault" in event or faulty and not settled
    return faulty


def by_crash_states(factory: Factory) -> str:
    """Open crash states of short workloads. Return how many until one fails, or `no`."""
    result = _whole(
        exhaustive_campaign.campaign(
            factory, longest=CRASHED_OPERATIONS, oracles=_model(), most_failures=1
        )
    )
    return f"{result.states:,} states" if result.failures else "no"


def judge_shortest(hunts: Iterable[Hunt], checks: Sequence[str]) -> None:
    """Have the judges that are slow to start judge the shortest traces of all hunts at once."""
    found = [(hunted, hunted.failure.trace) for hunted in hunts if hunted.failure]
    judges = oracles.together(["tlc"]) if {"tlc", INNER} & set(checks) else {}
    if "certified" in checks and "certified" not in judges:
        with contextlib.suppress(NoSuchOracle):
            judges["certified"] = oracles.named("certified")
    for name, oracle in judges.items():
        some = [(hunted, trace) for hunted, trace in found if name != INNER or trace.geometry]
        opinions = oracle([trace for _, trace in some]) if name in checks and some else []
        for (hunted, _), opinion in zip(some, opinions, strict=False):
            hunted.cells[name] = (
                NOT_RUN if opinion.unsure else "no" if opinion.at is None else f"at {opinion.at}"
            )


def faulty(fault: str, *, traces: int, ops: int, seed: int) -> Hunt:
    """Run a target of the corpus."""
    expected = corpus.DISKS[fault][0] if fault in corpus.DISKS else {corpus.DIALOGUES[fault][0]}
    hunted = Hunt(fault, expected=frozenset(expected))
    by_model(hunted, corpus.target(fault), traces=traces, ops=ops, seed=seed)
    return hunted


def honest(operations: int, seed: int) -> dict[str, Campaign]:
    """Run honest targets of all three crash profiles through many operations: none may fail."""
    names = {
        "ack": targets.resolve("refmodel:write_back=false"),
        "prefix": targets.resolve("refmodel:write_back=true"),
        "block": corpus.target("honest-block"),
    }
    count = operations // SHORTEST + 1
    return {
        profile: _whole(campaign(factory, count=count, ops=30, seed=seed, oracles=_model()))
        for profile, factory in names.items()
    }


def _whole(result: Campaign) -> Campaign:
    """Return the result of a campaign. Raises KeyboardInterrupt if Ctrl-C ended it: what it did not
    find says nothing then.
    """
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _model() -> Mapping[str, oracles.Oracle]:
    return {"model": oracles.named("model")}
