"""The scheduler: which of the processes that may go on takes the next step.

One thread runs all processes, and a chooser decides. So every interleaving can be repeated: the
same requests with the same choices give the same run.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from refmodel.core.errors import PowerCut
from refmodel.runtime.effects import Process

R = TypeVar("R")
Chooser = Callable[[int], int]  # number of processes that may go on -> index of the chosen one
DIGIT = 8  # the base of a schedule
Done = Callable[[Any, Exception | None], None]  # the result of a process, or its error


def first_come(ready: int) -> int:
    """Choose the process that has waited longest."""
    return 0


class Schedule:
    """The choices that a number stands for: its octal digits, the last one first.

    0 is the process that has waited longest, 1 the next one, and so on; 7, or any digit that is too
    large, is the one that has just gone. A number that is used up is all zeroes.
    """

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, ready: int) -> int:
        self._left, digit = divmod(self._left, DIGIT)
        return min(digit, ready - 1)


class _Running:
    """A process, what it waits for (None: its turn), and who is told when it has ended (None:
    nobody)."""

    __slots__ = ("done", "process", "ready")

    def __init__(self, process: Process[Any], done: Done | None) -> None:
        self.process = process
        self.ready: Callable[[], bool] | None = None
        self.done = done


class Scheduler:
    """The processes of one disk."""

    def __init__(self) -> None:
        self.choose: Chooser = first_come
        self._running: list[_Running] = []  # the one that has waited longest first

    def start(self, process: Process[Any], done: Done | None = None) -> None:
        """Start a process. It takes no step yet. Background work has no `done`."""
        self._running.append(_Running(process, done))

    @property
    def in_flight(self) -> int:
        """Number of processes under way that somebody waits for."""
        return sum(running.done is not None for running in self._running)

    def step(self) -> bool:
        """Let one process take a step. Return False if none may go on.

        Raises PowerCut; then no process is left. Raises what background work raises.
        """
        ready = []
        for running in self._running:
            if (condition := running.ready) is None or condition():
                ready.append(running)
        if not ready:
            return False
        chosen = ready[self.choose(len(ready))] if len(ready) > 1 else ready[0]
        self._running.remove(chosen)
        try:
            chosen.ready = next(chosen.process).ready
        except StopIteration as end:
            if chosen.done is not None:
                chosen.done(end.value, None)
        except PowerCut:
            self.drop()
            raise
        except Exception as error:
            if chosen.done is None:
                raise
            chosen.done(None, error)
        else:
            self._running.append(chosen)
        return True

    def run(self, process: Process[R]) -> R:
        """Run a process to its end, and return its result. Raises what it raises.

        The others take steps only while it waits for them.
        """
        step = self.step
        try:
            while True:
                ready = next(process).ready
                while ready is not None and not ready():
                    moved = step()
                    assert moved, "a process waits for what no other process does"
        except StopIteration as end:
            result: R = end.value
            return result

    def drop(self) -> None:
        """End all processes where they are."""
        dropped, self._running = self._running, []
        for running in dropped:
            running.process.close()
