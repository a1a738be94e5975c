"""Ctrl-C that arrives in a finalizer: Python prints it as "ignored" there, and goes on."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

SOON = 0.01  # seconds; the finalizer has ended by then


@contextmanager
def interrupts_repeated() -> Iterator[None]:
    """In this `with` block, a Ctrl-C that was ignored comes again, until it ends the program."""
    usual = sys.unraisablehook

    def repeat(ignored: "sys.UnraisableHookArgs") -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            again = Timer(SOON, os.kill, (os.getpid(), signal.SIGINT))
            again.daemon = True
            again.start()
        else:
            usual(ignored)

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = usual
