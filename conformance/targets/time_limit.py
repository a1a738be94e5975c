"""A time limit for targets in process, as targets in other processes have one.

A timer interrupts the main thread. It also interrupts a lock that is waited for and an endless loop
in Python, but not code in C that never returns to Python. In other threads there is no limit.

`_signal` is what the module `signal` wraps: a call of `signal.signal` takes ten times as long,
since it looks for an enumeration's member, and each request needs two calls.
"""

import _signal  # type: ignore[import-not-found]
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from conformance.targets.base import Message, Target, TargetFailure

SECONDS = 10.0  # for an answer
SLOW = frozenset(["crash", "settle", "restart"])  # operations that may recover or rebuild
SLOW_FACTOR = 3
CLOSING = 5.0  # seconds to close a target
SHOWN_FRAMES = 8  # of the stack at the time limit


class TooLate(BaseException):
    """The time limit has passed. No `except Exception` of a target catches this."""

    def __init__(self, stack: str) -> None:
        super().__init__()
        self.stack = stack


class TimeLimited:
    """A target in process whose answers have a time limit.

    Everything but `request` and `close` is the target's own."""

    def __init__(self, target: Target, seconds: float = SECONDS) -> None:
        self._target, self._seconds = target, seconds
        self.hello: Message = target.hello

    def request(self, message: Message) -> Message:
        """Return the answer. Raises TargetFailure `hang` if it takes longer than the limit."""
        op = message["op"]
        seconds = self._seconds * (SLOW_FACTOR if op in SLOW else 1)
        try:
            with limit(seconds):
                return self._target.request(message)
        except TooLate as late:
            text = f"no answer to {op} within {seconds:g} seconds"
            raise TargetFailure("hang", text, late.stack) from None

    def close(self) -> None:
        """Close the target; give up after CLOSING seconds."""
        try:
            with limit(CLOSING):
                self._target.close()
        except TooLate:
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooLate in this block after so many seconds. A timer of somebody else goes on after."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _signal.signal(signal.SIGALRM, _too_late)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        _signal.signal(signal.SIGALRM, handler)


def _too_late(_: int, frame: FrameType | None) -> None:
    stack = traceback.format_stack(frame)[-SHOWN_FRAMES:]
    raise TooLate("it was busy here:\n" + "".join(stack))
