"""A time limit for targets in process, as targets in other processes have one.

The limit is CPU time of this process, so that a busy machine makes no false alarm. A target
that waits uses none: it has PATIENT times as long by the clock on the wall.

Two timers interrupt the main thread. They also interrupt a lock that is waited for and an endless
loop in Python, but not code in C that never returns to Python: that ends only in a worker, which
its parent kills (signs_of_life). In other threads there is no limit.
An exception in a finalizer or in a callback of the garbage collector is printed and lost, so a
finalizer is interrupted only if it still runs SPARED times later. The timers go on until the block
is left.

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

from conformance.targets import signs_of_life
from conformance.targets.base import Message, Target, TargetFailure
from conformance.targets.printing import prints_to_stderr

SECONDS = 10.0  # CPU time for an answer
PATIENT = 6  # times as many seconds by the wall
SLOW = frozenset(["crash", "settle", "restart"])  # operations that may recover or rebuild
SLOW_FACTOR = 3
CLOSING = 5.0  # CPU seconds to close a target
SHORTEST = 0.001  # seconds that a timer can be set to
AGAIN = 0.1  # seconds until a timer interrupts once more
SHOWN_FRAMES = 8  # frames of the stack at the time limit

SPARED = 10  # times that a finalizer is not interrupted: Python drops what is raised in it

_spared = (0, 0)  # the finalizer, by its frame, that was spared last, and how many times


class TooLate(BaseException):
    """The time limit has passed. No `except Exception` of a target catches this.

    `times` is how many times the limit has passed by the clock that ended it, `clock` its name."""

    def __init__(self, times: int, clock: str, stack: str) -> None:
        super().__init__()
        self._times, self._clock, self.stack = times, clock, stack

    def after(self, limit: float) -> str:
        """Return how much time went by, for the limit that was given."""
        return f"{limit * self._times:g} seconds{self._clock}"


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
            with prints_to_stderr(), limit(seconds):
                return self._target.request(message)
        except TooLate as late:
            text = f"no answer to {op} within {late.after(seconds)}"
            raise TargetFailure("hang", text, late.stack) from None

    def close(self) -> None:
        """Close the target; give up after CLOSING seconds."""
        try:
            with prints_to_stderr(), limit(CLOSING):
                self._target.close()
        except TooLate:
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooLate in this block after `seconds` of CPU time, or PATIENT times as many by
    the wall. In a block that has a limit itself, what is left of that is the most. Other timers
    continue afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    on_the_wall = _Timer(signal.ITIMER_REAL, signal.SIGALRM, seconds * PATIENT)
    of_processor = _Timer(signal.ITIMER_PROF, signal.SIGPROF, seconds)
    before = signs_of_life.begin_call(seconds * PATIENT)
    try:
        yield
    finally:
        signs_of_life.end_call(before)
        try:
            of_processor.restore()
        finally:
            on_the_wall.restore()


class _Timer:
    """A timer of the process, set for a block; `restore` makes it what it was before."""

    def __init__(self, which: int, number: int, seconds: float) -> None:
        self._which, self._number, self._seconds = which, number, seconds
        self._handler = _signal.signal(number, _too_late)
        self._left, self._again = signal.setitimer(which, seconds, AGAIN)
        self._within = self._handler is _too_late and self._left > 0  # a block that has a limit
        if self._within and self._left < seconds:
            self._seconds = self._left
            signal.setitimer(which, self._left, AGAIN)

    def restore(self) -> None:
        remaining, _ = signal.setitimer(self._which, 0)
        taken = self._seconds - remaining if self._within else 0.0
        left = max(self._left - taken, SHORTEST) if self._left else 0.0  # 0 would be no limit
        _signal.signal(self._number, self._handler)
        signal.setitimer(self._which, left, self._again)


def _too_late(number: int, frame: FrameType | None) -> None:
    global _spared
    if frame is not None and frame.f_code.co_name == "gc_callback":
        return  # Hypothesis measures the garbage collector
    for within, _ in traceback.walk_stack(frame):
        if within.f_code.co_name == "__del__":
            times = _spared[1] if _spared[0] == id(within) else 0
            _spared = id(within), times + 1
            if times < SPARED:
                return
    stack = "it was busy here:\n" + "".join(traceback.format_stack(frame)[-SHOWN_FRAMES:])
    if number == signal.SIGPROF:
        raise TooLate(1, " of CPU time", stack)
    raise TooLate(PATIENT, "", stack)
