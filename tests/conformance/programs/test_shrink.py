"""The shrinker: short results, few tries, flaky failures, time limits, and Ctrl-C."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.campaign.driver import drive
from conformance.contract.trace import Trace
from conformance.judging.explain import Verdict
from conformance.programs import shrink as shrinking
from conformance.programs.patience import Attempt
from conformance.programs.shrink import Shrunk, shrink
from conformance.programs.simpler import Request, sent_beyond_tolerance, simpler
from conformance.targets.model import ModelTarget

FAIL = Verdict("fail", kind="stale")


def traced(program: list[Request]) -> Trace:
    return drive(ModelTarget({}), program)


def long_program(length: int, needed: dict[int, Request]) -> list[Request]:
    """A program of `length` requests; those at the given places are needed for it to fail."""
    choose = random.Random(1)
    noise: list[Request] = [
        choose.choice(
            [
                {"op": "write", "lba": choose.randrange(64), "tags": [at + 1]},
                {"op": "flush"},
                {"op": "read", "lba": choose.randrange(64), "count": 1},
                {"op": "unmap", "lba": choose.randrange(64), "count": 1},
            ]
        )
        for at in range(length)
    ]
    return [
        {"op": "create", "blocks": 64},
        *(needed.get(at, request) for at, request in enumerate(noise)),
    ]


def in_order(program: list[Request], wanted: list[Callable[[Request], bool]]) -> bool:
    requests = iter(program)
    return all(any(fits(request) for request in requests) for fits in wanted)


NEEDED: dict[int, Request] = {
    20: {"op": "snapshot", "name": "a"},
    90: {"op": "write", "lba": 7, "tags": [900, 901]},
    150: {"op": "delete", "name": "a"},
    298: {"op": "crash"},
    299: {"op": "read", "lba": 7, "count": 1},
}
WANTED: list[Callable[[Request], bool]] = [
    lambda request: request["op"] == "snapshot",
    lambda request: request["op"] == "write" and len(request["tags"]) > 1,
    lambda request: request["op"] == "delete",
    lambda request: request["op"] == "crash",
    lambda request: request["op"] == "read",
]


class Attempts:
    """Runs programs on a perfect disk; a program fails if it has the wanted requests in order."""

    def __init__(self, wanted: list[Callable[[Request], bool]], rate: float = 1.0) -> None:
        self.tried: list[str] = []
        self._wanted, self._rate, self._luck = wanted, rate, random.Random(5)

    def __call__(self, program: list[Request]) -> tuple[Trace, Verdict] | None:
        self.tried.append(str(program))
        if not in_order(program, self._wanted) or self._luck.random() >= self._rate:
            return None
        trace = traced(program)
        return trace, Verdict("fail", len(trace.events) - 1, "stale")


def shrunk(attempt: Attempt, seconds: float = 60.0) -> Shrunk:
    trace = traced(long_program(300, NEEDED))
    return shrink(trace, Verdict("fail", len(trace.events) - 1, "stale"), attempt, seconds)


def test_three_hundred_operations_become_those_that_are_needed() -> None:
    attempts = Attempts(WANTED)
    found = shrunk(attempts)
    assert [event["op"] for event in found.trace.events[1:]] == [
        "snapshot",
        "write",
        "delete",
        "crash",
        "read",
    ]
    assert not found.unfinished and (found.failed, found.repeats) == (10, 10)
    assert found.trace.events[0]["blocks"] == 1 and len(attempts.tried) < 150


def test_nothing_is_tried_twice() -> None:
    attempts = Attempts(WANTED)
    shrunk(attempts)
    search = attempts.tried[shrinking.FIRST_REPEATS : -shrinking.REPEATS]
    assert len(search) == len(set(search)) > 20


def test_requests_that_only_go_together_go_together() -> None:
    """A failure that needs as many deletions as snapshots: one alone can never be removed."""

    def attempt(program: list[Request]) -> tuple[Trace, Verdict] | None:
        ops = [request["op"] for request in program]
        if ops.count("snapshot") != ops.count("delete") or ops[-1] != "crash":
            return None
        trace = traced(program)
        return trace, Verdict("fail", len(trace.events) - 1, "stale")

    program: list[Request] = [{"op": "create", "blocks": 1}]
    for name in "abc":
        program += [{"op": "snapshot", "name": name}, {"op": "flush"}]
        program += [{"op": "delete", "name": name}]
    trace = traced([*program, {"op": "crash"}])
    found = shrink(trace, Verdict("fail", len(trace.events) - 1, "stale"), attempt)
    assert [event["op"] for event in found.trace.events] == ["create", "crash"]


@pytest.mark.parametrize("field", ["cut", "fua"])  # the target of this test takes both
def test_how_requests_are_sent_is_made_plain_for_all_of_them_at_once(field: str) -> None:
    """One at a time may change where a power cut falls, and hide the failure."""
    value = {"after": 9, "seed": 1} if field == "cut" else 1

    def attempt(program: list[Request]) -> tuple[Trace, Verdict] | None:
        left = sum(field in request for request in program)
        if 0 < left < 40 or all(request["op"] != "delete" for request in program):
            return None
        trace = traced(program)
        return trace, Verdict("fail", len(trace.events) - 1, "stale")

    program: list[Request] = [{"op": "create", "blocks": 1}]
    program += [{"op": op, field: value} for op in ("flush", "restart") * 20]
    trace = traced([*program, {"op": "delete", "name": "a"}])
    found = shrink(trace, Verdict("fail", len(trace.events) - 1, "stale"), attempt)
    assert [event["op"] for event in found.trace.events] == ["create", "delete"]


@pytest.mark.parametrize("matters", [False, True])
def test_long_names_become_short_unless_they_matter(matters: bool) -> None:
    """A reader takes a name of 64 characters for the cause. One that is not allowed may be it."""
    long, bad = "A" * 64, "no/name"

    def attempt(program: list[Request]) -> tuple[Trace, Verdict] | None:
        names = [request.get("name", request.get("view")) for request in program[1:]]
        kept = len(names) == 4 and names[0] == names[3] != names[1] and names[2] == bad
        if not kept or matters and long not in names:
            return None
        trace = traced(program)
        return trace, Verdict("fail", len(trace.events) - 1, "stale")

    program: list[Request] = [{"op": "create", "blocks": 1}]
    program += [{"op": "snapshot", "name": name} for name in ("some-name", long, bad)]
    program.append({"op": "delete", "name": "some-name"})
    trace = traced(program)
    found = shrink(trace, Verdict("fail", len(trace.events) - 1, "stale"), attempt)
    names = [event["name"] for event in found.trace.events[1:]]
    assert names == ["a", long if matters else "b", bad, "a"]


@pytest.mark.parametrize("wanted", ["checkpoint", "write"])
def test_one_request_stands_in_for_many(wanted: str) -> None:
    """A failure that many requests bring about together, or one of another kind alone."""
    unmapped: list[Request] = [{"op": "unmap", "lba": at % 8, "count": 1} for at in range(20)]
    single: list[Request] = [{"op": "write", "lba": at % 8, "tags": [at + 1]} for at in range(20)]
    program: list[Request] = [{"op": "create", "blocks": 8}]
    program += single if wanted == "write" else unmapped
    trace = traced([*program, {"op": "crash"}])
    trace.hello["capabilities"].append("clean")

    def attempt(program: list[Request]) -> tuple[Trace, Verdict] | None:
        written = sum(len(request.get("tags", ())) for request in program)
        steps = len(program) + 20 * sum(request["op"] == "checkpoint" for request in program)
        if (written < 8 if wanted == "write" else steps < 14) or program[-1]["op"] != "crash":
            return None
        return traced(program), Verdict("fail", len(program) - 1, "stale")

    found = shrink(trace, Verdict("fail", len(trace.events) - 1, "stale"), attempt)
    assert [event["op"] for event in found.trace.events[1:]] == [wanted, "crash"]


def test_another_power_cut_may_show_it_in_a_shorter_program() -> None:
    """What a cut leaves depends on all that was written before: here on the count of requests."""

    def attempt(program: list[Request]) -> tuple[Trace, Verdict] | None:
        cut = next((request["cut"] for request in program if "cut" in request), None)
        if cut is None or (cut["seed"] + len(program)) % 8 or program[-1]["op"] != "crash":
            return None
        return traced(program), Verdict("fail", len(program) - 1, "stale")

    writes: list[Request] = [{"op": "write", "lba": at % 8, "tags": [at + 1]} for at in range(29)]
    program: list[Request] = [{"op": "create", "blocks": 8}, *writes]
    program += [{"op": "flush", "cut": {"after": 1, "seed": 0}}, {"op": "crash"}]
    found = shrink(traced(program), Verdict("fail", len(program) - 1, "stale"), attempt)
    assert [event["op"] for event in found.trace.events] == ["create", "flush", "crash"]


def test_a_busy_machine_takes_no_time_from_a_target_in_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(100_000))
    monkeypatch.setattr("time.monotonic", lambda: next(clock) / 60)  # 60 looks a second
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    trace = traced(long_program(300, NEEDED))
    verdict = Verdict("fail", len(trace.events) - 1, "stale")
    found = [shrink(trace, verdict, Attempts(WANTED), 1.0, busy) for busy in (False, True)]
    assert [one.timed_out for one in found] == [True, False]


def test_a_program_that_takes_much_longer_is_no_better() -> None:
    attempts = Attempts(WANTED)

    def attempt(program: list[Request]) -> tuple[Trace, Verdict] | None:
        while not any(request["op"] == "unmap" for request in program):  # for ever
            pass
        return attempts(program)

    trace = traced(long_program(300, NEEDED))
    verdict = Verdict("fail", len(trace.events) - 1, "stale")
    found = shrink(trace, verdict, attempt, in_process=True)
    assert found.trace.operations <= 6 and not found.timed_out
    assert any(event["op"] == "unmap" for event in found.trace.events)


def test_a_flaky_failure_is_repeated_and_counted() -> None:
    found = shrunk(Attempts(WANTED, rate=0.4))
    assert found.trace.operations <= 10
    assert 0 < found.failed < found.repeats == 10


def test_a_failure_that_never_comes_back_stays_as_it_is() -> None:
    trace = traced([{"op": "create", "blocks": 4}, {"op": "flush"}, {"op": "flush"}])
    found = shrink(trace, Verdict("fail", 1, "stale"), lambda program: None)
    assert (found.failed, found.repeats) == (0, 10) and found.unfinished
    assert found.trace.events == trace.events[:2] and found.verdict.at == 1


def test_a_request_waits_for_no_more_than_come_later() -> None:
    read = {"op": "read", "lba": 0, "count": 1}
    program = [{"op": "create", "blocks": 1}, {**read, "wait": 28}, read, {**read, "wait": 1}]
    waits = {tuple(one.get("wait", 0) for one in shorter) for shorter in simpler(program)}
    assert (0, 2, 0, 1) in waits


HANGS = Verdict("fail", 1, "hang")


@pytest.mark.parametrize("slow", [False, True])
def test_what_is_slow_in_a_hurry_is_no_hang(slow: bool) -> None:
    """A hang is shrunk with little time for an answer. What it comes to is sent once more."""
    tried: list[bool] = []

    def attempt(program: list[Request], hurried: bool = False) -> tuple[Trace, Verdict] | None:
        tried.append(hurried)
        if not any(request["op"] == "unmap" for request in program) and not (slow and hurried):
            return None
        trace = traced(program)
        return trace, replace(HANGS, at=len(trace.events) - 1)

    trace = traced(long_program(100, {99: {"op": "unmap", "lba": 0, "count": 1}}))
    found = shrink(
        trace,
        replace(HANGS, at=len(trace.events) - 1),
        attempt,
        hurried=lambda program: attempt(program, True),
    )
    assert tried.count(True) > 2 and not tried[0] and not tried[-1]
    if slow:
        assert found.trace.events == trace.events and found.unfinished and found.failed == 3
    else:
        assert found.trace.operations <= 2 and not found.unfinished


def test_it_says_when_its_time_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100_000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    found = shrunk(Attempts(WANTED), seconds=20.0)
    assert found.timed_out and 5 < found.trace.operations < 300


def test_ctrl_c_keeps_what_was_found() -> None:
    attempts = Attempts(WANTED)

    def attempt(program: list[Request]) -> tuple[Trace, Verdict] | None:
        if len(attempts.tried) > 30:
            raise KeyboardInterrupt
        return attempts(program)

    found = shrunk(attempt)
    assert found.interrupted and found.trace.operations < 300


def test_no_restart_is_left_while_more_devices_have_failed_than_are_tolerated() -> None:
    """A target cannot write down what its memory holds then."""
    program: list[Request] = [
        {"op": "create", "blocks": 1},
        {"op": "write", "lba": 0, "tags": [1]},
        {"op": "fail", "device": 0, "mode": "absent"},
        {"op": "return", "device": 0},
        {"op": "settle"},
        {"op": "fail", "device": 1, "mode": "absent"},
        {"op": "restart"},
        {"op": "read", "lba": 0, "count": 1},
    ]
    hello = {"capabilities": [], "tolerates": 1}
    trace = Trace(hello, [{**one, "result": None} for one in program])

    def attempt(candidate: list[Request]) -> tuple[Trace, Verdict] | None:
        ops = [request["op"] for request in candidate]
        fails = ops.count("fail") == 2 and ops[-2:] == ["restart", "read"]
        events = [{**one, "result": None} for one in candidate]
        return (replace(trace, events=events), FAIL) if fails else None

    found = shrink(trace, FAIL, attempt).trace.program
    assert len(found) == 7 and sent_beyond_tolerance(found, 1) == 0
    assert sent_beyond_tolerance([one for one in found if one["op"] != "settle"], 1) == 1
    assert sent_beyond_tolerance([one for one in found if one["op"] != "settle"], 2) == 0
    lost = {"op": "fail", "device": 0, "mode": "degraded"}
    rebuilt = [found[0], lost, {"op": "settle"}, found[-3], found[-2]]
    assert [sent_beyond_tolerance(rebuilt, 1, spares) for spares in (0, 1)] == [1, 0]


def test_a_device_is_not_taken_to_be_back_where_the_power_may_fail() -> None:
    """A target that had not settled before the power cut may rightly have lost its data."""
    away: list[Request] = [
        {"op": "create", "blocks": 1},
        {"op": "fail", "device": 1, "mode": "absent"},
    ]
    back: list[Request] = [{"op": "return", "device": 1}, {"op": "settle"}]
    rest: list[Request] = [{"op": "fail", "device": 0, "mode": "absent"}, {"op": "flush"}]
    for cut in (None, 0, 1):
        tried = [
            {**request, "cut": {"after": 2, "seed": 0}} if at == cut else request
            for at, request in enumerate(back)
        ]
        assert sent_beyond_tolerance([*away, *tried, *rest], 1) == (cut is not None)
