"""Targets that take several requests at a time (version 2 of the dialogue).

`calls` opens one of a target in process or of another process. A call gives a request a number, and
answers come back with their numbers, in any order.
"""

import queue
import traceback
from collections.abc import Callable
from typing import Protocol, cast

from conformance.contract.trace import OVERLAPPING
from conformance.targets.base import (
    RAISED,
    Message,
    PowerCut,
    Target,
    TargetFailure,
    Unusable,
    named,
)
from conformance.targets.printing import prints_to_stderr
from conformance.targets.time_limit import PATIENT, SECONDS, SLOW_FACTOR, TooLate, limit

LEAST = 0.01  # seconds: a timer of 0 seconds never runs out


class Calls(Protocol):
    """A target as the driver of overlapping programs sees it."""

    hello: Message
    cuts: bool  # whether a request may carry `cut`
    schedules: bool  # whether a request may carry `schedule`
    patience: float  # seconds by the wall for an answer

    def call(self, number: int, message: Message) -> None:
        """Send the request under this number. Raises TargetFailure, PowerCut."""
        ...

    def answered(self) -> bool:
        """Return whether an answer is there already."""
        ...

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        """Return the next answer and its number; None after `seconds`.

        Raises TargetFailure, PowerCut."""
        ...

    def inside(self) -> list[Message]:
        """Return the inner events since the last answer, or since the last call of this."""
        ...

    def cut(self) -> None:
        """Forget, after a power cut, what was in flight: it is never answered."""
        ...

    def ended(self, failure: TargetFailure) -> TargetFailure:
        """End the target if it is a process; return the failure with what it printed."""
        ...


class InProcess:
    """A target with `call(message, done)`: `done(response)` is called once, in any thread.

    A target whose threads answer may call `done(error)` instead, with what it would raise.
    A target without threads has `step()` too: it takes one step and returns whether it did. Its
    request may carry `schedule` if it has the attribute `schedules`, and `cut` if it has `cuts`;
    then `call` and `step` raise PowerCut where the power fails. A target that tells what happens
    inside has `drain_events()`, which returns that and forgets it."""

    patience = SECONDS * PATIENT

    def __init__(self, target: Target):
        self.hello = target.hello
        self.cuts = getattr(target, "cuts", False)
        self.schedules = getattr(target, "schedules", False)
        self._call: Callable[[Message, Callable[[Message | Exception], None]], None] = target.call  # type: ignore[attr-defined]
        self._target = target
        self._step: Callable[[], bool] | None = getattr(target, "step", None)
        self.inside: Callable[[], list[Message]] = getattr(target, "drain_events", list)
        self._answers: queue.SimpleQueue[tuple[int, Message | Exception]] = queue.SimpleQueue()

    def call(self, number: int, message: Message) -> None:
        alone = message["op"] not in OVERLAPPING  # it may be answered within the call
        if hasattr(self._target, "drain_events"):
            message = {**message, "id": number}  # so that it can be told what happened inside

        def done(answer: Message | Exception) -> None:
            if isinstance(answer, dict) and (inside := self.inside()):
                answer = {**answer, "events": inside}
            self._answers.put((number, answer))

        self._guarded(
            SECONDS * SLOW_FACTOR if alone else SECONDS, lambda: self._call(message, done)
        )

    def answered(self) -> bool:
        return not self._answers.empty()

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        if self._answers.empty() and self._step is not None:
            self._guarded(seconds / PATIENT, self._steps)
        wait = seconds > 0 and self._step is None
        try:
            number, answer = (
                self._answers.get(timeout=seconds) if wait else self._answers.get_nowait()
            )
        except queue.Empty:
            return None
        if isinstance(answer, Exception):
            raise _failure(answer, number)
        return number, answer

    def _steps(self) -> None:
        """Let the target take steps until it answers, or cannot go on."""
        while self._answers.empty() and self._step is not None and self._step():
            pass

    @staticmethod
    def _guarded(seconds: float, work: Callable[[], None]) -> None:
        """Let the target do something. What it raises is its failure, and so is to be too late."""
        try:
            with prints_to_stderr(), limit(max(seconds, LEAST)):
                work()
        except (PowerCut, TargetFailure, Unusable):
            raise
        except TooLate as late:
            text = f"it went on for {late.after(seconds)} without an answer"
            raise TargetFailure("hang", text, late.stack) from None
        except RAISED as error:
            raise _failure(error) from None

    def cut(self) -> None:
        pass  # an answer that comes late is not in flight, which is the driver's to see

    def ended(self, failure: TargetFailure) -> TargetFailure:
        return failure


def _failure(error: BaseException, number: int | None = None) -> PowerCut | TargetFailure:
    """Return the exception that a request raised as a failure, with the number of the request."""
    if isinstance(error, PowerCut):
        return error
    if not isinstance(error, TargetFailure):
        stack = "".join(traceback.format_exception(error))[-4000:]
        error = TargetFailure("exit", f"it raised {named(error)}", stack)
    if number is not None:
        error.index = number  # type: ignore[attr-defined]  # which request failed
    return error


class OneAtATime:
    """A target that takes one request at a time: each call is answered at once."""

    schedules = False
    patience = SECONDS * PATIENT

    def __init__(self, target: Target):
        self.cuts = getattr(target, "cuts", False)
        self.hello = {**target.hello, "in_flight": 1}
        self._target = target
        self._answers: list[tuple[int, Message]] = []

    def inside(self) -> list[Message]:
        return []

    def cut(self) -> None:
        pass

    def ended(self, failure: TargetFailure) -> TargetFailure:
        return failure

    def call(self, number: int, message: Message) -> None:
        try:
            answer = self._target.request(message)
        except (PowerCut, TargetFailure, Unusable):
            raise
        except RAISED as error:
            raise _failure(error, number) from None
        self._answers.append((number, answer))

    def answered(self) -> bool:
        return bool(self._answers)

    def answer(self, seconds: float) -> tuple[int, Message] | None:
        return self._answers.pop(0) if self._answers else None


def calls(target: Target) -> Calls:
    """Return the target as one that takes several requests at a time, if it does."""
    if hasattr(target, "answer") and target.hello.get("protocol") == 2:
        return cast(Calls, target)  # a process with numbered requests
    if hasattr(target, "call") and target.hello.get("protocol") == 2:
        return InProcess(target)
    return OneAtATime(target)
