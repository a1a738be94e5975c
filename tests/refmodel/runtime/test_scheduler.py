"""The scheduler: who takes the next step, and how processes end."""

import pytest

from refmodel.core.errors import PowerCut
from refmodel.runtime.effects import TURN, Effect, Process
from refmodel.runtime.scheduler import Schedule, Scheduler


def counting(name: str, steps: int, log: list[str]) -> Process[str]:
    for number in range(steps):
        log.append(f"{name}{number}")
        yield TURN
    return name


def ended(scheduler: Scheduler) -> None:
    """Let all processes end."""
    while scheduler.in_flight:
        assert scheduler.step()


def test_first_come_first_served() -> None:
    scheduler = Scheduler()
    log: list[str] = []
    results: list[str | None] = []
    for name in "ab":
        scheduler.start(counting(name, 2, log), lambda result, error: results.append(result))
    ended(scheduler)
    assert log == ["a0", "b0", "a1", "b1"]
    assert results == ["a", "b"]


def test_a_schedule_is_the_digits_of_a_number() -> None:
    scheduler = Scheduler()
    log: list[str] = []
    for name in "abc":
        scheduler.start(counting(name, 1, log), lambda result, error: None)
    scheduler.choose = Schedule(0o71)  # the second, then the one that has just gone
    ended(scheduler)
    assert log == ["b0", "a0", "c0"]


def test_a_process_waits_until_what_it_waits_for_holds() -> None:
    scheduler = Scheduler()
    log: list[str] = []

    def waiting() -> Process[None]:
        yield Effect("a has ended", lambda: "a1" in log)
        log.append("then")

    scheduler.start(waiting(), lambda result, error: None)
    scheduler.start(counting("a", 2, log), lambda result, error: None)
    ended(scheduler)
    assert log == ["a0", "a1", "then"]
    assert not scheduler.step()


def test_run_lets_others_go_on_only_while_it_waits() -> None:
    scheduler = Scheduler()
    log: list[str] = []
    scheduler.start(counting("a", 3, log))

    def waiting() -> Process[int]:
        log.append("first")
        yield TURN
        yield Effect("a1", lambda: "a1" in log)
        return 7

    assert scheduler.run(waiting()) == 7
    assert log == ["first", "a0", "a1"]


def test_an_error_ends_only_its_process() -> None:
    scheduler = Scheduler()
    log: list[str] = []
    errors: list[str] = []

    def failing() -> Process[None]:
        yield TURN
        raise ValueError("no")

    scheduler.start(failing(), lambda result, error: errors.append(str(error)))
    scheduler.start(counting("a", 3, log), lambda result, error: None)
    ended(scheduler)
    assert errors == ["no"] and log == ["a0", "a1", "a2"]


def test_a_power_cut_ends_all_processes() -> None:
    scheduler = Scheduler()
    log: list[str] = []

    def cut() -> Process[None]:
        yield TURN
        raise PowerCut

    scheduler.start(counting("a", 9, log), lambda result, error: log.append("answered"))
    scheduler.start(cut(), lambda result, error: log.append("answered"))
    with pytest.raises(PowerCut):
        while scheduler.step():
            pass
    assert not scheduler.in_flight and "answered" not in log
