"""Driving targets: one program makes one trace, a campaign makes many and has them judged."""

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from conformance import block, faults, generate
from conformance import trace as traces
from conformance.explain import Verdict, alike
from conformance.judge import judge
from conformance.model import answer_of
from conformance.oracles import INNER, Oracle
from conformance.shrink import shrink
from conformance.targets import Factory
from conformance.targets.base import Message, PowerCut, Target, TargetFailure, Unusable
from conformance.trace import Event, Trace

KEPT = ("ok", "error", "message", "tags", "found", "counters")  # of a response, in a trace
MOST_FAILURES = 3  # a campaign ends after as many, unless told otherwise
LONGEST_MESSAGE = 300  # characters
SHRINK_CONTRACT, SHRINK_DIALOGUE = 20.0, 5.0  # seconds at most; after a failed dialogue the target starts anew

# What may happen in a declared operation, as rows of the coverage: those that never happened are shown too.
OUTCOMES = {
    "write": ("ok", "out-of-range", "no-space", "cut"), "read": ("ok", "out-of-range", "no-such-snapshot"),
    "unmap": ("ok", "out-of-range", "no-space", "cut"), "flush": ("ok", "cut"),
    "snapshot": ("ok", "snapshot-exists", "bad-request", "no-space", "cut"),
    "delete": ("ok", "no-such-snapshot", "cut"), "revert": ("ok", "no-such-snapshot", "no-space", "cut"),
    "crash": ("ok", "cut"), "restart": ("ok", "cut"), "clean": ("ok", "cut"), "checkpoint": ("ok", "cut"),
    "fail": ("ok",), "return": ("ok",), "replace": ("ok",), "tick": ("ok",), "settle": ("ok",),
}


@dataclass(frozen=True)
class Failure:
    """A trace that failed, as short as it could be made, and how long it was."""

    trace: Trace
    verdict: Verdict
    number: int  # of the trace in the campaign
    before: int  # operations before shrinking


@dataclass
class Campaign:
    """What came of many traces."""

    target: str
    seed: int
    judged: list[tuple[Trace, Verdict]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    coverage: Counter = field(default_factory=Counter)  # (operation, outcome) -> times
    counters: Counter = field(default_factory=Counter)  # the target's own
    skipped: list[str] = field(default_factory=list)  # capabilities not declared
    reason: str = ""  # why the campaign is inconclusive
    output: str = ""  # what an unusable target printed
    seconds: float = 0.0
    most_failures: int = MOST_FAILURES
    judges: tuple[str, ...] = ()  # the oracles that judged every trace
    without: tuple[str, ...] = ()  # capabilities that were left out though the target may have them
    how: str = ""  # what else the command said that ran it
    workloads: int = 0  # of an exhaustive campaign
    faults: tuple[str, ...] = ()  # of the media, by name
    excused: Counter = field(default_factory=Counter)  # class -> failures that an honest engine may show under these faults
    resumed: int = 0  # of those, how many had passed before
    states: int = 0  # crash states that were opened

    @property
    def operations(self) -> int:
        return sum(trace.operations for trace, _ in self.judged)

    @property
    def crashes(self) -> int:
        return sum(event["op"] == "crash" for trace, _ in self.judged for event in trace.events)

    @property
    def verdict(self) -> str:
        """fail if any trace failed, else inconclusive if anything is, else pass."""
        if self.failures:
            return "fail"
        unclear = self.reason or not (self.judged or self.resumed) or any(v.verdict != "pass" for _, v in self.judged)
        return "inconclusive" if unclear else "pass"


def drive(target: Target, program: list[Message], seed: int | None = None,
          options: Mapping[str, Any] | None = None) -> Trace:
    """Send the requests of the program, and a crash after each operation that was cut short; record the trace.

    It ends early where the target fails or creates no disk."""
    hello = {key: value for key, value in target.hello.items() if key != "ok"}
    trace = Trace(hello, [], seed, dict(options or {}))
    for request in _sent(program, trace):
        event = ask(target, request, hello, len(trace.events), seed or 0)
        trace.events.append(event)
        if "failure" in event or event["op"] == "create" and not event["result"]["ok"]:
            break
    return trace


def _sent(program: list[Message], trace: Trace) -> Iterator[Message]:
    """The program, with the crashes that operations cut short call for."""
    for request in program:
        if request["op"] != "crash" and trace.events and trace.events[-1]["result"] is None:
            yield {"op": "crash"}
        yield request
    while trace.events[-1]["result"] is None and "failure" not in trace.events[-1]:
        yield {"op": "crash"}


def ask(target: Target, request: Message, hello: Message, number: int, seed: int) -> Event:
    """Send one request; the event that records it."""
    cuttable = getattr(target, "cuts", False)
    event = {key: value for key, value in request.items() if key not in ("cut", "kept") or cuttable}
    trace_number = seed & 0xFFFF_FFFF_FFFF_FFFF
    message = dict(event)
    in_bytes = hello.get("payload") != "tags"
    if in_bytes and event["op"] == "write":
        tags = message.pop("tags")
        message["data"] = b"".join(block.encode(tag, lba, number, hello["block_size"], trace_number)
                                   for lba, tag in enumerate(tags, event["lba"]))
    event["result"] = None
    try:
        response = _answer(target, message)
        if response.get("events"):
            event["events"] = response["events"]
        if in_bytes and event["op"] == "read" and response.get("ok") is True:
            response = _decoded(response, event, hello["block_size"], trace_number)
        wrong = traces.check_response(response, event["op"])
        if wrong:
            raise TargetFailure("protocol", f"its answer is none: {wrong}")
        if event["op"] == "read" and response["ok"] and len(response["tags"]) != event["count"]:
            raise TargetFailure("protocol", f"it returned {len(response['tags'])} tags for {event['count']} blocks")
        event["result"] = {key: response[key] for key in KEPT if key in response}
        if "message" in response:
            event["result"]["message"] = response["message"][:LONGEST_MESSAGE]
    except PowerCut as cut:
        if cut.events:
            event["events"] = cut.events
    except TargetFailure as failure:
        event["failure"] = {"kind": failure.kind, "message": failure.message, "output": failure.output}
    return event


def _answer(target: Target, message: Message) -> Message:
    """The response, a dict. What else a target in process may raise is its failure."""
    try:
        response = target.request(message)
    except (PowerCut, TargetFailure):
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise TargetFailure("exit", f"it raised {text[:LONGEST_MESSAGE]}", traceback.format_exc()[-4000:]) from None
    if not isinstance(response, dict):
        raise TargetFailure("protocol", f"its answer is no object: {str(response)[:LONGEST_MESSAGE]}")
    return response


def _decoded(response: Message, event: Event, block_size: int, trace_number: int) -> Message:
    """The response to a read, with tags in place of data."""
    data, length = response.get("data"), event["count"] * block_size
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TargetFailure("protocol", "its answer to read has no data")
    if len(data) != length:
        raise TargetFailure("protocol", f"it returned {len(data)} bytes for {event['count']} blocks of {block_size}")
    tags, found = [], []
    for lba in range(event["lba"], event["lba"] + event["count"]):
        at = (lba - event["lba"]) * block_size
        tag = block.decode(bytes(data[at : at + block_size]), lba, trace_number)
        if isinstance(tag, block.Damage):
            found.append({"lba": lba, "kind": tag.kind, "detail": tag.detail})
            tag = -1
        tags.append(tag)
    decoded = {key: value for key, value in response.items() if key != "data"} | {"tags": tags}
    return decoded | {"found": found} if found else decoded


class Bench:
    """The target on the bench: opened when first used, and again with other options or after a failure."""

    def __init__(self, factory: Factory):
        self._factory = factory
        self._target: Target | None = None
        self._options: dict[str, Any] = {}
        self._hellos: dict[str, Message] = {}
        self._counts = True

    def on(self, options: Mapping[str, Any]) -> Target:
        """A target with these options. Raises Unusable."""
        if self._target is None or self._options != options:
            self.clear()
            try:
                self._target = self._factory(dict(options))
            except Unusable:
                raise
            except Exception as error:
                raise Unusable(f"cannot open {self._factory.name}: {type(error).__name__}: {error}",
                               traceback.format_exc()[-4000:]) from None
            self._options = dict(options)
            wrong = traces.check_hello(self._target.hello)
            if wrong:
                raise Unusable(f"its hello is none: {wrong}")
        return self._target

    def hello(self, options: Mapping[str, Any]) -> Message:
        """What a target with these options says. Raises Unusable."""
        key = repr(sorted(options.items()))
        if key not in self._hellos:
            self._hellos[key] = self.on(options).hello
        return self._hellos[key]

    def drive(self, program: list[Message], seed: int | None, options: Mapping[str, Any]) -> Trace:
        """As drive, on the target with these options."""
        trace = drive(self.on(options), program, seed, options)
        if "failure" in trace.events[-1] or trace.events[-1]["result"] is None:
            self.clear()
        return trace

    def counters(self) -> Mapping[str, float]:
        """The target's counters since it created its disk; nothing if it has none."""
        if not self._counts or self._target is None:
            return {}
        try:
            response = self._target.request({"op": "stats"})
            counters = response["counters"] if response.get("ok") else None
        except Exception:
            counters = None
            self.clear()
        if not isinstance(counters, dict):
            self._counts = False
            return {}
        return {key: value for key, value in counters.items() if isinstance(value, (int, float))}

    def clear(self) -> None:
        """Put the target away."""
        target, self._target = self._target, None
        if target is not None:
            try:
                target.close()
            except Exception:
                pass  # it was judged by its answers


def declared(factory: Factory) -> frozenset[str]:
    """The capabilities of the target with the first of its options; none if it is unusable."""
    bench = Bench(factory)
    try:
        return frozenset(bench.hello(next(iter(_each(factory.knobs))))["capabilities"])
    except Unusable:
        return frozenset()
    finally:
        bench.clear()


def campaign(factory: Factory, *, count: int, ops: int, seed: int, oracles: Mapping[str, Oracle],
             crashes: bool = True, faulty: tuple[str, ...] = (),
             progress: Callable[[int], None] = lambda done: None, most_failures: int = MOST_FAILURES) -> Campaign:
    """Generate, drive and judge `count` traces of about `ops` operations each. The same seed makes the same programs.

    `faulty` names faults of the media, which the factory has put there: what they excuse is no failure.
    Ends after `most_failures` failures, or one where the target hangs; each is shrunk."""
    how = f" --faults {','.join(faulty)}" if faulty else ""
    result = Campaign(factory.name, seed, most_failures=most_failures, without=tuple(sorted(factory.without)),
                      faults=faulty, how=how, judges=tuple(name for name in oracles if name != INNER))
    started = time.monotonic()
    bench = Bench(factory)
    at_once = {name: oracle for name, oracle in oracles.items() if name == "model"}
    try:
        _drive_all(bench, factory, result, count, ops, crashes, at_once, progress)
        if result.judged and len(oracles) > len(at_once):
            _judge_all(result, oracles)
    except Unusable as error:
        result.reason, result.output = f"the target is unusable: {error.message}", error.output
    finally:
        bench.clear()
    result.seconds = time.monotonic() - started
    return result


def _drive_all(bench: Bench, factory: Factory, result: Campaign, count: int, ops: int, crashes: bool,
               oracles: Mapping[str, Oracle], progress: Callable[[int], None]) -> None:
    declared: set[str] = set()
    cuts = getattr(bench.on(next(iter(_each(factory.knobs)))), "cuts", False)
    batch = max(2, min(generate.BATCH, 3000 // ops))
    cases = generate.cases(factory.knobs, bench.hello, ops, crashes, cuts)
    for number, (options, program) in enumerate(islice(generate.drawn(cases, result.seed, batch), count)):
        trace = bench.drive(program, trace_seed(result.seed, number), options)
        declared.update(trace.hello["capabilities"])
        verdict = _judged([trace], oracles, result)[0]
        result.excused[verdict.kind] += bool(verdict.excuse)
        result.judged.append((trace, verdict))
        result.coverage.update((event["op"], outcome_of(event)) for event in trace.events if event["op"] != "create")
        result.counters.update(bench.counters())
        if verdict.verdict == "inconclusive" and verdict.at == 0:
            raise Unusable(verdict.reason)
        if verdict.verdict == "fail":
            result.failures.append(_shrunk(bench, result, trace, verdict, number, oracles))
        progress(number + 1)
        if _enough(result):
            break
    for kind, need in generate.NEEDS.items():
        if need is None or need in declared:
            for outcome in OUTCOMES[kind]:
                result.coverage[kind, outcome] += 0
    result.skipped = [name for name in generate.CAPABILITIES if name not in declared]


def _judged(some: list[Trace], oracles: Mapping[str, Oracle], result: Campaign) -> list[Verdict]:
    """As judge, but for what the faults of the media excuse."""
    if not result.faults:
        return judge(some, oracles)
    for trace in some:
        trace.events = faults.without_lost_reads(result.faults, trace)
    return [replace(verdict, verdict="pass", excuse=", ".join(result.faults))
            if faults.excuses(result.faults, trace, verdict) else verdict
            for trace, verdict in zip(some, judge(some, oracles))]


def _each(knobs: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Every way to set the knobs."""
    return (dict(zip(knobs, values)) for values in product(*knobs.values()))


def _enough(result: Campaign) -> bool:
    return len(result.failures) >= result.most_failures or any(f.verdict.kind == "hang" for f in result.failures)


def outcome_of(event: Event) -> str:
    """What came of the operation: the answer, or how the target failed."""
    return event["failure"]["kind"] if "failure" in event else answer_of(event)


def shape(trace: Trace, verdict: Verdict) -> tuple[str, str, tuple[str, ...]]:
    """What is the same if one failure is found again: the class, the clause, and the operations up to it."""
    last = len(trace.events) if verdict.at is None else verdict.at
    return verdict.kind, verdict.clause, tuple(event["op"] for event in trace.events[: last + 1])


def trace_seed(seed: int, number: int) -> int:
    """The seed of trace `number` in a campaign."""
    return (seed << 20 | number) & 0x7FFF_FFFF_FFFF_FFFF


def _shrunk(bench: Bench, result: Campaign, trace: Trace, verdict: Verdict, number: int,
            oracles: Mapping[str, Oracle]) -> Failure:
    """The failure, shrunk; one of a class that was met before most likely is the same again, so it gets less time."""
    before = trace.operations
    met = any(failure.verdict.kind == verdict.kind for failure in result.failures)

    def attempt(program: list[Message]) -> tuple[Trace, Verdict] | None:
        again = bench.drive(program, trace.seed, trace.options)
        found = _judged([again], oracles, result)[0]
        return (again, found) if found.verdict == "fail" and alike(found, verdict) else None

    seconds = SHRINK_DIALOGUE if met or "failure" in trace.events[verdict.at] else SHRINK_CONTRACT
    short, found = shrink(trace, verdict, attempt, most_seconds=seconds)
    return Failure(short, found, number, before)


def _judge_all(result: Campaign, oracles: Mapping[str, Oracle]) -> None:
    """Judge all traces by all oracles together, for those that are slow to start."""
    traces_driven = [trace for trace, _ in result.judged]
    verdicts = _judged(traces_driven, oracles, result)
    if INNER in oracles and any(trace.geometry for trace in traces_driven):
        result.judges += (INNER,)
    failed = {failure.number for failure in result.failures}
    result.judged = list(zip(traces_driven, verdicts))
    result.failures += [Failure(trace, verdict, number, trace.operations)
                        for number, (trace, verdict) in enumerate(result.judged)
                        if verdict.verdict == "fail" and number not in failed]
