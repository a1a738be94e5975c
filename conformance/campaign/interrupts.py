"""Ctrl-C and SIGTERM: a campaign ends, and shows what it has found.

Python drops an exception that is raised while it puts an object away, so an interrupt is kept, too,
and a campaign looks for it before each trace.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_asked: list[int] = []  # the signals that came


@contextmanager
def heeded() -> Iterator[None]:
    """Have these signals raise KeyboardInterrupt in the main thread, which this must be."""
    before = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _asked.clear()


def look() -> None:
    """Raises KeyboardInterrupt if one came."""
    if _asked:
        raise KeyboardInterrupt


def ask(number: int, frame: Any) -> NoReturn:
    """Raise KeyboardInterrupt, and keep that it was asked for."""
    _asked.append(number)
    raise KeyboardInterrupt
