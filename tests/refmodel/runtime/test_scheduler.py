"""The scheduler: who takes the next step, and how processes end."""

from collections.abc import Iterator

import pytest

from refmodel.core.errors import PowerCut
from refmodel.runtime.effects import TURN, Effect
from refmodel.runtime.scheduler import Schedule, Scheduler


def counting(name: str, steps: int, log: list[str]) -> Iterator[Effect]:
    for number in range(steps):
        log.append(f"{name}{number}")
        yield TURN
    return name


def ended(scheduler: Scheduler) -> None:
    """Let all processes end."""
    while scheduler.in_flight:
        assert scheduler.step()


def test_first_come_first_served() -> None:
    scheduler, log, results = Scheduler(), [], []
    for name in "ab":
        scheduler.start(counting(name, 2, log), lambda result, error: results.append(result))
    ended(scheduler)
    assert log == ["a0", "b0", "a1", "b1"]
    assert results == ["a", "b"]


def test_a_schedule_is_the_digits_of_a_number() -> None:
    scheduler, log = Scheduler(), []
    for name in "abc":
        scheduler.start(counting(name, 1, log), lambda result, error: None)
    scheduler.choose = Schedule(0o71)  # the second, then the one that has just gone
    ended(scheduler)
    assert log == ["b0", "a0", "c0"]


def test_a_process_waits_until_what_it_waits_for_holds() -> None:
    scheduler, log = Scheduler(), []

    def waiting() -> Iterator[Effect]:
        yield Effect("a has ended", lambda: "a1" in log)
        log.append("then")

    scheduler.start(waiting(), lambda result, error: None)
    scheduler.start(counting("a", 2, log), lambda result, error: None)
    ended(scheduler)
    assert log == ["a0", "a1", "then"]
    assert not scheduler.step()


def test_run_lets_others_go_on_only_while_it_waits() -> None:
    scheduler, log = Scheduler(), []
    scheduler.start(counting("a", 3, log))

    def waiting() -> Iterator[Effect]:
        log.append("first")
        yield TURN
        yield Effect("a1", lambda: "a1" in log)
        return 7

    assert scheduler.run(waiting()) == 7
    assert log == ["first", "a0", "a1"]


def test_an_error_ends_only_its_process() -> None:
    scheduler, log, errors = Scheduler(), [], []

    def failing() -> Iterator[Effect]:
        yield TURN
        raise ValueError("no")

    scheduler.start(failing(), lambda result, error: errors.append(str(error)))
    scheduler.start(counting("a", 3, log), lambda result, error: None)
    ended(scheduler)
    assert errors == ["no"] and log == ["a0", "a1", "a2"]


def test_a_power_cut_ends_all_processes() -> None:
    scheduler, log = Scheduler(), []

    def cut() -> Iterator[Effect]:
        yield TURN
        raise PowerCut

    scheduler.start(counting("a", 9, log), lambda result, error: log.append("answered"))
    scheduler.start(cut(), lambda result, error: log.append("answered"))
    with pytest.raises(PowerCut):
        while scheduler.step():
            pass
    assert not scheduler.in_flight and "answered" not in log
