"""The reference engine takes several requests at a time, and every answer has an order."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.contract.trace import OVERLAPPING, Trace
from conformance.judging.orders.search import judge
from conformance.programs import generate, overlap, woven
from refmodel.bugs import BUGS

TARGET = "refmodel:log-structured"
MOST_RACES = 400  # programs, in which each of these bugs shows at least once
# Planted bugs of requests in flight. The others of the kind take more races: the self-test has all.
FOUND_BY_RACES = (
    "flush-joins-earlier",
    "group-acknowledged-early",
    "name-checked-early",
    "read-block-by-block",
    "room-promised-twice",
    "unmap-happens-late",
    "write-happens-in-halves",
)


def driven(seed: int, bench: Bench, target: str = TARGET, **fixed: object) -> Trace:
    choose = random.Random(seed)
    options = targets.resolve(target).draw(choose) | fixed
    hello = bench.hello(options)
    program = overlap.written(choose, hello, 50, hello["in_flight"], cuts=True, schedules=True)
    return bench.drive(program, seed, options)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(targets.resolve(TARGET))
    yield bench
    bench.clear()


def most_in_flight(trace: Trace) -> int:
    """Return the largest number of requests that were in flight at a call."""
    most: int = max(
        sum(
            other["called"] <= event["called"]
            and (other["answered"] is None or other["answered"] > event["called"])
            for other in trace.events[max(0, index - 8) : index + 1]
            if other["op"] in OVERLAPPING
        )
        for index, event in enumerate(trace.events)
    )
    return most


def test_answers_have_an_order_through_power_cuts(bench: Bench) -> None:
    reached = cut = exchanged = 0
    for seed in range(60):
        trace = driven(seed, bench)
        found = judge(trace)
        assert found.at is None and not found.unsure, (seed, found)
        assert not any("failure" in event for event in trace.events), seed
        reached = max(reached, most_in_flight(trace))
        answers = [event["answered"] for event in trace.events if event["answered"] is not None]
        exchanged += answers != sorted(answers)
        cut += sum(event["answered"] is None for event in trace.events)
    assert reached >= 6
    assert cut > 20  # requests that a power cut ended
    assert exchanged > 20  # traces in which answers came in another order than the calls


def test_a_run_depends_on_nothing_but_its_requests(bench: Bench) -> None:
    for seed in range(25):
        first = driven(seed, bench)
        again = bench.drive(first.program, first.seed, first.options)
        assert again.events == first.events, seed


def test_the_schedule_decides(bench: Bench) -> None:
    """The same requests with other schedules are answered in other orders."""
    orders = set()
    program = driven(3, bench).program
    for seed in range(8):
        choose = random.Random(seed)
        other = [
            {**request, "schedule": choose.randrange(1 << 40)} if "schedule" in request else request
            for request in program
        ]
        trace = bench.drive(other, 3, {"layout": "mirror", "block_bytes": 512})
        orders.add(tuple(event["answered"] for event in trace.events))
    assert len(orders) > 4


@pytest.mark.parametrize("bug", FOUND_BY_RACES)
def test_a_bug_of_requests_in_flight_is_found_by_races(bug: str) -> None:
    needs = ",".join(f"{name}={value}" for name, value in BUGS[bug].needs.items())
    target = f"refmodel:plant={bug}" + (needs and f",{needs}")
    bench = Bench(targets.resolve(target))
    try:
        assert any(is_wrong(driven(seed, bench, target)) for seed in range(MOST_RACES))
    finally:
        bench.clear()


def is_wrong(trace: Trace) -> bool:
    """Return whether the answers have no order, or the engine broke off."""
    return any("failure" in event for event in trace.events) or judge(trace).at is not None


def test_engines_that_cannot_overlap_say_so() -> None:
    for name in ("refmodel:redo-vsan", "refmodel:in-place-raid6"):
        bench = Bench(targets.resolve(name))
        hello = bench.hello({"block_bytes": 512})
        bench.clear()
        assert (hello["protocol"], hello["in_flight"]) == (2, 1)


def test_the_adapter_of_another_process_takes_eight() -> None:
    bench = Bench(targets.resolve(f"exec:{sys.executable} -m refmodel adapter --block-bytes 512"))
    try:
        hello = bench.hello({})
        assert (hello["protocol"], hello["in_flight"], hello["atomic"]) == (2, 8, "request")
        reached = 0
        for seed in range(5):
            program = overlap.written(random.Random(seed), hello, 50, 8)
            trace = bench.drive(program, seed, {})
            assert judge(trace).at is None
            assert not any("failure" in event for event in trace.events), seed
            reached = max(reached, most_in_flight(trace))
        assert reached > 3
    finally:
        bench.clear()


def test_the_adapter_speaks_version_1_where_it_is_asked_to() -> None:
    requests = [{"op": "hello", "protocol": 1}, {"op": "create", "blocks": 8}, {"op": "bye"}]
    done = subprocess.run(
        [sys.executable, "-m", "refmodel", "adapter"],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    hello, create, bye = map(json.loads, done.stdout.splitlines())
    assert hello["ok"] and not {"protocol", "in_flight", "id"} & hello.keys()
    assert create["ok"] and bye["ok"] and "id" not in create


def test_the_program_of_a_trace_gives_the_same_trace(bench: Bench) -> None:
    """Also where the power failed in the middle of a request, and a crash came after that."""
    cut = 0
    for seed in range(60):
        choose = random.Random(seed)
        hello = bench.hello({})
        plain = generate.program(choose, hello, 40, cuts=True)
        program = woven.woven(choose, plain, hello["in_flight"], schedules=True)
        trace = bench.drive(program, seed, {})
        again = bench.drive(trace.program, seed, {})
        cut += any("cut" in event and event["result"] is None for event in trace.events)
        answers = [[event["result"] for event in one.events] for one in (trace, again)]
        assert answers[0] == answers[1], seed
    assert cut > 5
