"""Ctrl-C and SIGTERM: a campaign ends, and shows what it has found.

Python drops an exception that is raised while it puts an object away, and prints it. So an
interrupt is kept, too, and a campaign looks for it before each trace.
"""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds in which another signal is the same interrupt: `timeout` sends two. Raised while a lock is
# given back, the second one would leave it locked for ever.
SAME = 0.5
_asked: list[float] = []  # when interrupts came


@contextmanager
def heeded() -> Iterator[None]:
    """Have these signals raise KeyboardInterrupt in the main thread, which this must be."""
    before = {number: signal.signal(number, ask) for number in SIGNALS}
    usual, sys.unraisablehook = sys.unraisablehook, unless_kept
    try:
        yield
    finally:
        sys.unraisablehook = usual
        for number, handler in before.items():
            signal.signal(number, handler)
        _asked.clear()


def look() -> None:
    """Raises KeyboardInterrupt if one came."""
    if _asked:
        raise KeyboardInterrupt


def unless_kept(dropped: "sys.UnraisableHookArgs") -> None:
    """Print an exception that Python drops, but for an interrupt."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)


def ask(number: int, frame: Any) -> None:
    """Raise KeyboardInterrupt, and keep that it was asked for; not twice for the same one."""
    now = time.monotonic()
    if not _asked or now - _asked[-1] > SAME:
        _asked.append(now)
        raise KeyboardInterrupt
