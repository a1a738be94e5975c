"""Targets in process have a time limit, also where they hang in a lock or an endless loop."""

import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from conformance.campaign.driver import Bench
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.targets import Factory, resolve
from conformance.targets.base import Message, Target, Unusable
from conformance.targets.model import ModelTarget
from conformance.targets.time_limit import TimeLimited, TooLate, limit

PROGRAM: list[Message] = [
    {"op": "create", "blocks": 4},
    {"op": "flush"},
    {"op": "write", "lba": 0, "tags": [1]},
]


def endless() -> None:
    while True:
        with suppress(Exception):  # a target that survives everything
            time.sleep(0.01)


def deadlock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def busy() -> None:
    while True:
        pass


def finalizer() -> None:
    class Slow:
        def __del__(self) -> None:
            busy()

    Slow()
    busy()


def hanging(hang: Callable[[], None]) -> Callable[[dict[str, Any]], Target]:
    class Hanging(ModelTarget):
        def request(self, message: Message) -> Message:
            if message["op"] == "write":
                hang()
            return super().request(message)

    return Hanging


@pytest.mark.parametrize(
    ("hang", "limit"),
    [
        (endless, "0.6 seconds"),
        (deadlock, "0.6 seconds"),
        (busy, "0.1 seconds of CPU time"),
        (finalizer, "0.1 seconds of CPU time"),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of the finalizer
def test_a_target_that_hangs_fails(hang: Callable[[], None], limit: str) -> None:
    bench = Bench(Factory("hangs", hanging(hang), seconds=0.1))
    started = time.monotonic()
    trace = bench.drive(PROGRAM, 1, {})
    bench.clear()
    assert time.monotonic() - started < 30
    verdict = judge([trace], {"model": named("model")})[0]
    assert verdict.kind == "hang" and verdict.at == 2
    wall = "0.6 seconds"  # on a busy machine it may be reached before the limit of CPU time
    assert verdict.actual in {f"no answer to write within {least}" for least in (limit, wall)}
    assert hang.__name__ in verdict.reason, "it says where"


def test_a_time_limit_that_ends_in_a_finalizer_is_not_lost_and_prints_nothing() -> None:
    lost: list[object] = []

    class Slow:
        def __del__(self) -> None:
            deadline = time.process_time() + 0.35  # the limits end at 0.3, 0.4
            while time.process_time() < deadline:
                pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lost.append)
        with pytest.raises(TooLate), limit(0.3):
            Slow()
            busy()
    assert not lost


def test_a_target_that_does_not_open_is_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.targets.OPENING", 0.1)

    def never(options: dict[str, Any]) -> Target:
        endless()
        raise AssertionError

    with pytest.raises(Unusable, match="did not open within 0.6 seconds"):
        Factory("never", never, seconds=1.0)({})


@pytest.mark.parametrize("name", ["refmodel", "python:conformance.targets.model:ModelTarget"])
def test_targets_in_process_are_limited(name: str) -> None:
    target = resolve(name)(resolve(name).first)
    try:
        assert isinstance(target, TimeLimited)
    finally:
        target.close()


def test_a_target_that_waits_for_its_turn_is_not_late() -> None:
    target = TimeLimited(hanging(lambda: time.sleep(0.3))({}), seconds=0.1)
    target.request(PROGRAM[0])
    assert target.request(PROGRAM[2]) == {"ok": True}


def test_a_timer_of_somebody_else_goes_on() -> None:
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with limit(60):
            pass
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.2
        time.sleep(0.4)
        assert rang == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("within", [0.05, 60])
def test_a_block_takes_its_time_from_the_one_around_it(within: float) -> None:
    started = time.process_time()
    with pytest.raises(TooLate), limit(0.3):
        with suppress(TooLate), limit(within):
            busy()
        busy()
    assert 0.2 < time.process_time() - started < 5
    assert signal.getitimer(signal.ITIMER_PROF) == signal.getitimer(signal.ITIMER_REAL) == (0, 0)
