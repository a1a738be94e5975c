"""Targets whose threads carry out several requests at a time."""

import threading
import time

import pytest

from conformance.targets.base import Message, PowerCut, TargetFailure
from conformance.targets.overlapping import InProcess
from conformance.targets.threads import Gate, Outcome, Ranges, Threads

LONG = 5.0  # seconds, that no test takes


class Slow:
    """Answers a request when it is told to."""

    def __init__(self) -> None:
        self.hello: Message = {"protocol": 2, "in_flight": 8}
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.error: Exception | None = None
        self.power_failed = False
        self.threads = Threads(self.request, lambda _: self.power_failed)
        self.call = self.threads.call

    def request(self, message: Message) -> Message:
        """Wait, then answer."""
        self.begun.release()
        assert self.go.wait(LONG)
        if self.error is not None:
            raise self.error
        return {"ok": True, "was": message["op"]}

    def close(self) -> None:
        """Nothing is left running."""
        self.threads.close()


def test_requests_are_carried_out_together_and_answered_in_any_order() -> None:
    target = Slow()
    calls = InProcess(target)
    for number in range(8):
        calls.call(number, {"op": "read"})
    assert all(target.begun.acquire(timeout=LONG) for _ in range(8)), "all eight are under way"
    assert not calls.answered()
    target.go.set()
    answers = [calls.answer(LONG) for _ in range(8)]
    assert {answer[0] for answer in answers if answer} == set(range(8))
    target.close()


def test_what_is_cut_is_not_answered_and_ends_before_the_power_is_back() -> None:
    target, answers = Slow(), list[Outcome]()
    for _ in range(9):  # one more than there are threads
        target.call({"op": "write"}, answers.append)
    assert all(target.begun.acquire(timeout=LONG) for _ in range(8))
    target.threads.cut()
    target.go.set()
    target.threads.wait()
    assert answers == []
    assert not target.begun.acquire(blocking=False), "the ninth was not begun any more"
    target.call({"op": "flush"}, answers.append)
    target.threads.wait()
    assert answers == [{"ok": True, "was": "flush"}]
    target.close()


def test_when_the_power_fails_one_power_cut_is_all_that_comes() -> None:
    target = Slow()
    calls = InProcess(target)
    for number in range(3):
        calls.call(number, {"op": "write"})
    target.power_failed = True
    target.go.set()
    with pytest.raises(PowerCut):
        calls.answer(LONG)
    target.threads.wait()
    assert not calls.answered()
    target.close()


@pytest.mark.parametrize("error", [TargetFailure("hang", "no answer"), ValueError("a bug")])
def test_what_a_thread_raises_is_the_failure_of_its_request(error: Exception) -> None:
    target = Slow()
    calls = InProcess(target)
    target.error = error
    calls.call(7, {"op": "write"})
    target.go.set()
    with pytest.raises(TargetFailure) as raised:
        calls.answer(LONG)
    assert raised.value.index == 7 and str(error) in raised.value.message  # type: ignore[attr-defined]
    target.close()


def test_who_is_alone_has_nobody_beside_and_is_not_overtaken() -> None:
    gate, order = Gate(), list[str]()
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with gate.together():
            inside.set()
            assert leave.wait(LONG)
            order.append("first")

    def alone() -> None:
        with gate.alone():
            order.append("alone")

    def last() -> None:
        with gate.together():
            order.append("last")

    threads = [threading.Thread(target=work) for work in (first, alone, last)]
    threads[0].start()
    assert inside.wait(LONG)
    threads[1].start()
    while not gate._claimed:
        time.sleep(0.001)
    threads[2].start()
    time.sleep(0.02)
    assert order == []
    leave.set()
    for thread in threads:
        thread.join(LONG)
    assert order == ["first", "alone", "last"]


def test_ranges_that_meet_are_held_one_after_the_other() -> None:
    ranges, done = Ranges(), threading.Event()

    def second() -> None:
        with ranges.held(3, 2):
            done.set()

    with ranges.held(0, 4):
        thread = threading.Thread(target=second)
        thread.start()
        with ranges.held(4, 9):
            pass  # a neighbour
        assert not done.wait(0.02)
    assert done.wait(LONG)
    thread.join(LONG)
