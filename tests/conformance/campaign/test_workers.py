"""Campaigns in several processes, on a cluster, in several goes: always the same traces."""

import json
import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.campaign import batches, workers
from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.campaign.saved.campaign_file import BadKept, Kept
from conformance.cli import main
from conformance.contract.trace import Passed, Trace
from conformance.judging.oracles import Opinion, named
from conformance.targets import Factory, resolve
from conformance.targets.base import Target, Unusable

MODEL = {"model": named("model")}
COUNT = 230  # traces: two parts and some
LOSES = "python:support.losing_target:Loses"
# Traces of refmodel take long: a part and some. Of the other one each part ends behind a failure.
OTHERS = {"refmodel": 130, LOSES: 330}
PLAN = batches.Plan(LOSES, frozenset(), 2, 20, True, ("model",), 1)


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes find `support` too."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


class Interrupted(Future[batches.Part]):
    """A part under way; whoever waits for it without a limit gets a Ctrl-C."""

    def result(self, timeout: float | None = None) -> batches.Part:
        if timeout is None:
            raise KeyboardInterrupt
        return super().result(timeout)


def run(target: str = "model", **more: Any) -> Campaign:
    return campaign(
        resolve(target),
        **{"count": OTHERS.get(target, COUNT), "ops": 20, "seed": 2, "oracles": MODEL, **more},
    )


def essence(result: Campaign) -> tuple[object, ...]:
    """Return all of a result except how long it took."""
    return (
        result.verdict,
        result.happened,
        result.counters,
        result.skipped,
        result.judges,
        result.operations,
        result.crashes,
        json.dumps(
            [
                (trace if isinstance(trace, Passed) else asdict(trace), verdict.kind)
                for trace, verdict in result.judged.values()
            ]
        ),
        json.dumps([(one.number, one.before, one.trace.events) for one in result.failures]),
    )


def test_the_same_seed_gives_the_same_whether_or_not_the_certified_checker_is_built() -> None:
    """Which judges as soon as it is there."""
    asked: list[Trace] = []

    def certified(traces: Sequence[Trace]) -> list[Opinion]:
        asked.extend(traces)
        return MODEL["model"](traces)

    with_it, without = run(LOSES, oracles={**MODEL, "certified": certified}), run(LOSES)
    assert asked
    with_it.judges = without.judges
    assert essence(with_it) == essence(without)


@pytest.mark.parametrize("target", ["refmodel", LOSES])
def test_the_same_seed_gives_the_same_wherever_it_runs(target: str) -> None:
    alone = run(target)
    assert essence(alone) == essence(run(target, workers=workers.on_this_machine(2)))
    assert (alone.verdict == "fail") == (target == LOSES)
    if target == LOSES:
        assert len(alone.failures) == 3 and max(alone.judged) == alone.failures[-1].number


def test_a_failure_does_not_wait_for_the_rest_of_its_part() -> None:
    """A few traces follow it. The next part has the numbers that it has without the failure."""
    result = run(LOSES, count=2 * batches.MOST_TRACES, most_failures=99)
    first, second = [one.number for one in result.failures if one.number in result.judged][:2]
    assert first is not None and first + batches.SOON < batches.MOST_TRACES
    behind = [number for number in result.judged if first < number < batches.MOST_TRACES]
    assert behind == [*range(first + 1, first + 1 + batches.SOON)]
    assert batches.MOST_TRACES in result.judged


def where(seconds: float) -> set[int]:
    time.sleep(seconds)
    return os.sched_getaffinity(0)


@pytest.mark.parametrize("jobs, each", [(1, 2), (2, 1), (3, 1)])
def test_one_process_for_each_processor_stays_there(
    monkeypatch: pytest.MonkeyPatch, jobs: int, each: int
) -> None:
    some = sorted(os.sched_getaffinity(0))[:2]
    if len(some) < 2:
        pytest.skip("NOT RUN: there is one processor only")
    monkeypatch.setattr(
        "conformance.campaign.workers.os.sched_getaffinity", lambda process: set(some)
    )
    pool = workers.on_this_machine(jobs)
    try:
        places = [future.result() for future in [pool.submit(where, 0.5) for _ in range(jobs)]]
    finally:
        pool.close()
    assert set().union(*places) == set(some) and {len(place) for place in places} == {each}


def wait_long(begun: Path) -> None:
    begun.touch()
    time.sleep(60)


@pytest.mark.parametrize("ends", ["closed", "interrupted"])
def test_what_was_handed_to_a_process_ends_with_the_campaign(tmp_path: Path, ends: str) -> None:
    pool, begun = workers.on_this_machine(1), tmp_path / "begun"
    try:
        process = pool.submit(os.getpid).result()
        calls = [pool.submit(wait_long, begun) for _ in range(3)]
        while not begun.exists():
            time.sleep(0.01)
        started = time.monotonic()
        if ends == "interrupted":
            os.kill(process, signal.SIGINT)
            for call in calls:
                with pytest.raises(KeyboardInterrupt):
                    call.result()
    finally:
        pool.close()
    assert time.monotonic() - started < 30


def test_and_on_a_cluster() -> None:
    pytest.importorskip(
        "distributed", reason="NOT RUN: dask.distributed is not installed: requirements-cluster.txt"
    )
    assert essence(run()) == essence(run(workers=workers.on_cluster("local")))


def test_what_passed_is_forgotten_but_a_sample() -> None:
    whole = [trace for trace, _ in run().judged.values() if not isinstance(trace, Passed)]
    assert len(whole) == batches.SAMPLE


@pytest.mark.parametrize("target", ["refmodel", LOSES])
def test_it_goes_on_where_it_was(tmp_path: Path, target: str) -> None:
    file = tmp_path / "kept"
    once = run(target)
    for more in ({"count": batches.MOST_TRACES}, {"count": batches.MOST_TRACES + 20}, {}):
        result = run(target, kept=Kept(file), **more)
    assert essence(once) == essence(result)
    whole = file.read_bytes()
    for damaged in (whole[:-40], b"\xff" + whole, b"[]", b""):
        file.write_bytes(damaged)
        with pytest.raises(BadKept, match="no campaign that can go on") as said:
            run(target, kept=Kept(file))
        assert "Error" not in str(said.value), "the words of Python's errors explain nothing"


def test_another_campaign_is_not_gone_on_with(tmp_path: Path) -> None:
    run(count=batches.MOST_TRACES, kept=Kept(tmp_path / "kept"))
    with pytest.raises(BadKept, match="of another campaign"):
        run(count=batches.MOST_TRACES, seed=10, kept=Kept(tmp_path / "kept"))


def test_it_stops_in_time_and_when_interrupted(tmp_path: Path) -> None:
    for kept, traces in ((None, 1), (Kept(tmp_path / "kept"), batches.MOST_TRACES)):
        result = run(count=None, minutes=1e-6, kept=kept)
        assert len(result.judged) == traces and result.verdict == "pass" and not result.interrupted

    def interrupt(result: Campaign) -> None:
        if len(result.judged) > batches.MOST_TRACES:
            raise KeyboardInterrupt

    result = run(count=None, progress=interrupt)
    assert (
        result.interrupted
        and len(result.judged) == 2 * batches.MOST_TRACES
        and result.verdict == "inconclusive"
    )


def test_what_every_worker_has_begun_is_shown_when_it_is_interrupted() -> None:
    """Failures are shown, too, but are not shrunk any more."""
    calls: list[Interrupted] = []

    def submit(work: object, plan: batches.Plan, number: int, *rest: object) -> Interrupted:
        calls.append(Interrupted())
        calls[-1].set_running_or_notify_cancel()
        return calls[-1]

    def interrupt() -> None:
        for call in calls:
            call.set_result(part)

    plan = replace(PLAN, seed=4)
    part = batches.drive(resolve(LOSES), MODEL, plan, 0, 24)
    assert part.judged[-1][1].verdict == "fail", "another seed shows it"
    part.interrupted = True
    there = workers.Elsewhere(submit, 2, lambda: None, interrupt)
    result = run(LOSES, count=None, workers=there, most_failures=99)
    assert len(calls) == 4 and len(result.judged) == 4 * len(part.judged)
    assert result.interrupted and result.verdict == "fail"
    assert all(one.unfinished and not one.repeats for one in result.failures)


def test_what_workers_cannot_open_is_said() -> None:
    def opened(options: dict[str, Any]) -> Target:
        raise Unusable("no such engine")

    result = campaign(Factory("none", opened), count=10, ops=5, seed=1, oracles=MODEL)
    assert result.verdict == "inconclusive" and "no such engine" in result.reason
    result = run("exec:/nonexistent/engine", workers=workers.on_this_machine(2))
    assert result.verdict == "inconclusive" and "cannot start" in result.reason


def test_the_command_line(tmp_path: Path) -> None:
    def invoked(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(
            main, ["run", "--target", "model", "--ops", "10", "--oracle", "model", *words]
        )
        assert "Traceback" not in done.output
        return done.exit_code, done.output

    found = []
    for jobs in ("1", "2"):
        status, output = invoked(
            "--traces", "120", "--seed", "4", "--jobs", jobs, "--json", str(tmp_path / jobs)
        )
        told = json.loads((tmp_path / jobs).read_text())
        told["worth"].pop("more", None)  # it goes by seconds
        found.append(told | {"seconds": 0})
        assert status == 0, output
    assert (
        found[0] == found[1] and found[0]["traces"] == 120 and found[0]["pairs"]["happened"] > 100
    )
    status, output = invoked(
        "--minutes", "0.0001", "--jobs", "1", "--seed", "1", "--resume", str(tmp_path / "kept")
    )
    assert status == 0 and ("50 traces" in output or "100 traces" in output), (
        "a part, twice as long where the certified checker judges"
    )
    assert invoked("--resume", str(tmp_path / "kept"))[0] == 2
    status, output = invoked("--resume", str(tmp_path / "kept"), "--seed", "2")
    assert status == 2 and "another campaign" in output
    status, output = invoked("--scheduler", "tcp://127.0.0.1:9")
    assert status == 2 and ("no dask scheduler" in output or "not installed" in output)


@pytest.mark.parametrize("most", [2, 1])
def test_where_the_judge_gives_up_the_program_is_sent_with_fewer_in_flight(most: int) -> None:
    given_up = 0

    def judge(traces: Sequence[Trace]) -> list[Opinion]:
        nonlocal given_up
        unsure = [_most_in_flight(trace) > most for trace in traces]
        given_up += sum(unsure)
        return [Opinion(None, "too many in flight" if one else "") for one in unsure]

    result = campaign(
        resolve("refmodel:log-structured"), count=20, ops=20, seed=1, oracles={"model": judge}
    )
    assert given_up > 2 and result.verdict == "pass", result.reason


def _most_in_flight(trace: Trace) -> int:
    moments = [
        (event[name], change)
        for event in trace.events
        if "called" in event and event["answered"] is not None
        for name, change in (("called", 1), ("answered", -1))
    ]
    in_flight = most = 0
    for _, change in sorted(moments):
        in_flight += change
        most = max(most, in_flight)
    return most
