"""Targets that take several requests at a time (version 2 of the dialogue).

`calls` opens one of a target in process or of another process. A call gives a request a number, and
answers come back with their numbers, in any order.
"""

import queue
from collections.abc import Callable
from typing import Protocol, cast

from conformance.targets.base import Message, Target, TargetFailure


class Calls(Protocol):
    """A target as the driver of overlapping programs sees it."""

    hello: Message

    def call(self, number: int, message: Message) -> None:
        """Send the request under this number. Raises TargetFailure."""
        ...

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        """The next answer and its number; None after so many seconds. Raises TargetFailure."""
        ...

    def cut(self) -> None:
        """After a power cut: what was in flight is never answered."""
        ...


class InProcess:
    """A target with `call(message, done)`: `done(response)` is called once, in any thread.

    A target without threads has `step()` too: it takes one step and returns whether it did."""

    def __init__(self, target: Target):
        self.hello = target.hello
        self._call: Callable[[Message, Callable[[Message], None]], None] = target.call  # type: ignore[attr-defined]
        self._step: Callable[[], bool] | None = getattr(target, "step", None)
        self._answers: queue.SimpleQueue[tuple[int, Message]] = queue.SimpleQueue()

    def call(self, number: int, message: Message) -> None:
        try:
            self._call(message, lambda response: self._answers.put((number, response)))
        except TargetFailure:
            raise
        except Exception as error:
            raise TargetFailure("exit", f"it raised {type(error).__name__}: {error}") from None

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        while self._step is not None and self._answers.empty() and self._step():
            pass
        try:
            return self._answers.get(timeout=seconds) if seconds else self._answers.get_nowait()
        except queue.Empty:
            return None

    def cut(self) -> None:
        pass  # an answer that comes late is not in flight, which is the driver's to see


class OneAtATime:
    """Any target, one request at a time: what is called is answered at once."""

    def __init__(self, target: Target):
        self.hello = {**target.hello, "in_flight": 1}
        self._target = target
        self._answers: list[tuple[int, Message]] = []

    def cut(self) -> None:
        pass

    def call(self, number: int, message: Message) -> None:
        self._answers.append((number, self._target.request(message)))

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        return self._answers.pop(0) if self._answers else None


def calls(target: Target) -> Calls:
    """The target as one that takes several requests at a time, if it does."""
    if hasattr(target, "answer") and target.hello.get("protocol") == 2:
        return cast(Calls, target)  # a process with numbered requests
    if hasattr(target, "call") and not hasattr(target, "answer"):
        return InProcess(target)
    return OneAtATime(target)
