"""A campaign in parts. Each can be driven and judged in any process, on any machine, with the
same result.

A part is a number of consecutive traces. Its programs depend on the seed, its number, and the
earlier answers of the target in the same part.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

from conformance.campaign import interrupts
from conformance.campaign.driver import Bench
from conformance.contract.coverage import Coverage
from conformance.contract.trace import Passed, Trace
from conformance.judging import fault_excuses as faults
from conformance.judging import oracles
from conformance.judging.explain import PASS, Verdict
from conformance.judging.judge import judge
from conformance.judging.oracles import Opinion, Oracle, model
from conformance.judging.orders import search
from conformance.programs import generate, overlap, swarm, woven
from conformance.programs.explored import Explored
from conformance.programs.requests import LARGEST
from conformance.targets import Factory, resolve, signs_of_life
from conformance.targets.base import Message, Unusable

IN_FLIGHT = 8  # requests at most, unless told otherwise
MOST_TRACES = 100  # traces of a part, at most
SAMPLE = 20  # traces of a campaign that are kept though they passed
SLOW, SLOW_PARTS = (
    "tlc",
    2,
)  # an oracle that is slow to start, and how many times as many traces a part has for it
IMPOSSIBLE_ONE_IN = 24  # traces of a target that says which options are
# Programs, of a target that takes `cut`: several changes are cut short together, several times.
IN_A_ROW_ONE_IN = 3
# Steps of the search for an order of requests in flight together, in a campaign, and so many more
# for each block of the disk: up to ten CPU seconds, which few of 100 traces need.
HURRIED_STEPS, STEPS_OF_A_BLOCK = 30_000, 300
FEWER = (1, 0)  # other requests in flight, where the judge gave up on more
RACES = (2, 4, 8)  # times as many operations as were asked for, where requests race
SOON = 10  # traces of a part after its first failure, which is told, and shrunk, soon
FAST = frozenset(["model"])  # oracles that judge a trace as soon as it is driven


@dataclass(frozen=True)
class Plan:
    """The parameters of a campaign, as values that any process or machine can use."""

    target: str
    without: frozenset[str]
    seed: int
    ops: int
    crashes: bool
    oracles: tuple[str, ...]
    most_failures: int
    faults: tuple[str, ...] = ()  # faults of the media, by name
    in_flight: int = IN_FLIGHT  # requests at most, in every second trace, if it takes several

    @property
    def length(self) -> int:
        """Traces in a part."""
        return max(2, min(MOST_TRACES, 6000 // self.ops)) * (
            SLOW_PARTS if SLOW in self.oracles else 1
        )


@dataclass
class Part:
    """The result of one part: its traces and what they showed. Of most traces that passed, only the
    length is kept.
    """

    judged: list[tuple[Trace | Passed, Verdict]] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    coverage: Coverage = field(default_factory=Coverage)
    declared: frozenset[str] = frozenset()  # what can be asked for: capabilities, IN_FLIGHT
    unasked: frozenset[str] = frozenset()  # the others that the target declares
    inside: bool = False  # the engine said what happened inside
    reason: str = ""  # why it ended early, and what an unusable target printed
    output: str = ""
    interrupted: bool = False  # before it was whole
    whole: bool = False  # it has all traces that it was to have


def in_worker(plan: Plan, number: int, most: int, until: float | None) -> Part:
    """Do what `drive` does, in a process that has only the plan."""
    factory = resolve(plan.target)
    judges = {
        name: oracle
        for name, oracle in oracles.together(set(plan.oracles) - {oracles.INNER}).items()
        if name in plan.oracles
    }
    factory = replace(factory, without=plan.without)
    factory = faults.on_media(factory, plan.faults) if plan.faults else factory
    return drive(factory, judges, plan, number, most, until)


def drive(
    factory: Factory,
    judges: Mapping[str, Oracle],
    plan: Plan,
    number: int,
    most: int,
    until: float | None = None,
    clock: Callable[[], float] = time.time,
) -> Part:
    """Drive and judge the first `most` traces of part `number`, but only SOON of them after the
    first that fails. The part is not whole where `most_failures` fail, the target hangs, `clock`
    says that it is `until`, or it is interrupted.
    """
    part, bench = Part(), Bench(factory)
    judges = {
        name: _once(_hurried(judge)) if name in FAST else judge for name, judge in judges.items()
    }
    traces: list[Trace] = []
    try:
        try:
            in_time = None if until is None else lambda: clock() < until
            _drive(bench, factory, judges, plan, number, most, part, in_time)
        except Unusable as error:
            part.reason, part.output = f"the target is unusable: {error.message}", error.output
        finally:
            bench.clear()
            traces = [trace for trace, _ in part.judged if isinstance(trace, Trace)]  # all, so far
        if judges.keys() - FAST and traces:
            part.judged = list(zip(traces, judged(traces, judges, plan.faults), strict=True))
    except KeyboardInterrupt:  # what the slow judges would have said is not known then
        part.interrupted = True
    part.inside = any(trace.geometry for trace in traces)
    first = number * plan.length
    part.judged = [
        (Passed(trace.operations, trace.crashes), verdict)
        if verdict == PASS and first + index >= SAMPLE
        else (trace, verdict)
        for index, (trace, verdict) in enumerate(part.judged)
    ]
    return part


def _drive(
    bench: Bench,
    factory: Factory,
    judges: Mapping[str, Oracle],
    plan: Plan,
    number: int,
    most: int,
    part: Part,
    in_time: Callable[[], bool] | None,
) -> None:
    cuts, slow = bench.cuts(factory.first), SLOW in plan.oracles
    at_once = {name: oracle for name, oracle in judges.items() if name in FAST}
    failures, first = 0, plan.length  # `first` is the index of the first one
    explored = Explored()
    cases = generate.cases(
        factory.draw,
        bench.hello,
        plan.ops,
        f"{plan.seed} {number}",
        crashes=plan.crashes,
        cuts=cuts,
        long=True,
        explored=explored,
        lives=not slow,  # TLC would take minutes to follow one
    )
    for index, (options, program) in enumerate(islice(cases, min(plan.length, most))):
        interrupts.look()
        trace_number = number * plan.length + index
        signs_of_life.at_trace(trace_number)
        seed = trace_seed(plan.seed, trace_number)
        hello = bench.hello(options)
        together = min(plan.in_flight, hello.get("in_flight", 1))
        turn = index % 2  # so every second of the wide ones overlaps, too
        refusable = None if plan.faults else impossible(factory, plan.seed, trace_number)
        if refusable is not None:
            options, program = refusable
        elif together > 1 and not faults.beyond(plan.faults, hello.get("tolerates", 0)):
            if turn:
                program = _overlapping(bench, plan, program, options, seed, together)
            elif not cuts:
                program = _woven(bench, program, options, seed, together, in_turn=True)
            if generate.judged_by_block(hello):
                program = generate.followed(program)
        trace = bench.drive(program, seed, options)
        verdict = judged([trace], at_once, plan.faults)[0]
        for others in FEWER if trace.overlapping else ():
            if verdict.verdict != "inconclusive" or verdict.at is not None:
                break
            trace = bench.drive(_fewer_in_flight(program, others), seed, options)
            verdict = judged([trace], at_once, plan.faults)[0]
        part.judged.append((trace, verdict))
        if refusable is None:  # otherwise there was no disk to learn from
            part.unasked |= swarm.unasked(trace.hello).keys()
            part.declared |= set(trace.hello["capabilities"]) - part.unasked
            part.declared |= {swarm.IN_FLIGHT} if trace.hello.get("in_flight", 1) > 1 else set()
            part.coverage.add(trace)
            if verdict.verdict == "pass":  # a program that continues a failure fails again
                explored.learn(trace)
            part.counters.update(bench.counters())
        if verdict.verdict == "inconclusive" and verdict.at == 0:
            raise Unusable(verdict.reason)
        if verdict.verdict == "fail":
            failures, first = failures + 1, min(index, first)
        if failures >= plan.most_failures or verdict.kind == "hang":
            return
        if index == first + SOON:
            break
        if in_time is not None and not in_time():
            return
    part.whole = most >= plan.length


def impossible(
    factory: Factory, seed: int, number: int
) -> tuple[dict[str, Any], list[Message]] | None:
    """Return impossible options, which have to be refused, and a program; for few traces only.

    Each is tried once before any is tried again.
    """
    if not factory.impossible or number % IMPOSSIBLE_ONE_IN != IMPOSSIBLE_ONE_IN // 2:
        return None
    order = random.Random(f"{seed} impossible").sample(factory.impossible, len(factory.impossible))
    options = dict(order[number // IMPOSSIBLE_ONE_IN % len(order)])
    return options, [{"op": "create", "blocks": options.pop("blocks", 16)}]


def _fewer_in_flight(program: list[Message], others: int) -> list[Message]:
    """Return the program in which each request overlaps at most so many others before it."""
    return [
        {**request, "overlaps": min(others, request["overlaps"])}
        if "overlaps" in request
        else request
        for request in program
    ]


def _overlapping(
    bench: Bench,
    plan: Plan,
    program: list[Message],
    options: dict[str, Any],
    seed: int,
    most: int,
) -> list[Message]:
    """Return the program with up to `most` requests in flight.

    Or, as often, races on a few blocks.
    """
    choose = random.Random(f"{seed} overlap")
    if choose.randrange(2):
        return _woven(bench, program, options, seed, most)
    return overlap.written(
        choose,
        bench.hello(options),
        choose.choice(RACES) * plan.ops,
        most,
        plan.crashes,
        cuts=bench.cuts(options),
        schedules=bench.schedules(options),
        shares=bool(options.get("deduplication")),
    )


def _woven(
    bench: Bench,
    program: list[Message],
    options: dict[str, Any],
    seed: int,
    most: int,
    in_turn: bool = False,
) -> list[Message]:
    """Return the program with up to `most` requests in flight.

    With `in_turn`, only power cuts come while others are in flight. That is so on large disks of
    which each block is judged apart, too: a judge would need minutes.
    """
    choose = random.Random(f"{seed} woven")
    hello = bench.hello(options)
    in_turn |= program[0]["blocks"] > LARGEST and generate.judged_by_block(hello)
    in_a_row = not bench.cuts(options) or choose.randrange(IN_A_ROW_ONE_IN) == 0
    return woven.woven(
        choose,
        program,
        most,
        schedules=bench.schedules(options),
        tolerates=hello.get("tolerates", 0),
        in_turn=in_turn,
        in_a_row=in_a_row,
    )


def _hurried(judge: Oracle) -> Oracle:
    """Return the oracle; but the model gives up early on requests in flight together. So few traces
    do not take all the time. Such a trace is sent again, at last with one request in flight.
    """
    if judge is not model.judge:
        return judge
    return lambda traces: [
        model.judge_one(trace, _steps(trace)) if _crowded(trace) else model.judge_one(trace)
        for trace in traces
    ]


def _steps(trace: Trace) -> int:
    """Return how many steps the search for an order of this trace may take in a campaign."""
    blocks: int = trace.events[0].get("blocks", 0)
    return min(HURRIED_STEPS + STEPS_OF_A_BLOCK * blocks, search.MOST_STEPS)


def _crowded(trace: Trace) -> bool:
    """Return whether requests were in flight together, apart from power cuts."""
    return trace.overlapping and any(
        later["op"] != "crash" and (one["answered"] is None or one["answered"] > later["called"])
        for one, later in pairwise(trace.events)
    )


def _once(judge: Oracle) -> Oracle:
    """Return the oracle with a memory: it is not asked again about a trace that it has judged.

    It keeps the traces. Else a later one might be taken for one that is gone.
    """
    known: dict[int, tuple[Trace, Opinion]] = {}

    def remembering(traces: Sequence[Trace]) -> list[Opinion]:
        new = [trace for trace in traces if id(trace) not in known]
        for trace, opinion in zip(new, judge(new), strict=True):
            known[id(trace)] = trace, opinion
        return [known[id(trace)][1] for trace in traces]

    return remembering


def judged(
    some: list[Trace], judges: Mapping[str, Oracle], names: tuple[str, ...]
) -> list[Verdict]:
    """Judge traces, except for failures that these faults of the media excuse."""
    if not names:
        return judge(some, judges)
    for trace in some:
        trace.events = faults.without_lost_reads(names, trace)
    return [
        replace(verdict, verdict="pass", kind=verdict.kind or "undecided", excuse=", ".join(names))
        if faults.excuses(names, trace, verdict)
        else verdict
        for trace, verdict in zip(some, judge(some, judges), strict=False)
    ]


def trace_seed(seed: int, number: int) -> int:
    """Return the seed of trace `number` in a campaign."""
    return (seed << 20 | number) & 0x7FFF_FFFF_FFFF_FFFF
