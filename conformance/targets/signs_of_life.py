"""What a worker does, in memory that its parent can read.

The timers of a time limit cannot interrupt code in C that never returns to Python. Nor can a
signal, or another thread if that code keeps the lock of the interpreter. So the parent looks
whether a call to a target goes on long after its limit, and kills the worker.
"""

import ctypes
import os
import signal
import time

ALONE = 2  # times as long as by the limit: then the kernel ends a worker that has no parent
LEAST = 5.0  # seconds, if the limit is shorter


class Sign(ctypes.Structure):
    """What one worker does: `trace` is a number, or -1 before the first.

    `due` is when the call to the target has to end, by time.monotonic; 0 while there is none.
    """

    _fields_ = [("pid", ctypes.c_int), ("trace", ctypes.c_longlong), ("due", ctypes.c_double)]


_mine: Sign | None = None  # None in a process that nobody watches


def show(sign: Sign) -> None:
    """Show from now on, in this memory, what this process does."""
    global _mine
    sign.pid, sign.trace, sign.due = os.getpid(), -1, 0
    _mine = sign


def at_trace(number: int) -> None:
    """Show that this trace begins."""
    if _mine is not None:
        _mine.trace = number


def begin_call(seconds: float) -> float:
    """Show that a call to the target begins, and how long it may take at most.

    Return what `end_call` takes.
    """
    if _mine is None:
        return 0
    before: float = _mine.due
    _mine.due = time.monotonic() + seconds
    # Its signal ends the process: a call that has little time left must not come near it.
    signal.setitimer(signal.ITIMER_VIRTUAL, ALONE * max(LEAST, seconds))
    return before


def end_call(before: float) -> None:
    """Show that the call is over."""
    if _mine is not None:
        _mine.due = before
        if not before:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
