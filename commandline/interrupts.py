"""Interrupts of a program: SIGTERM ends it as Ctrl-C does, and no Ctrl-C is lost.

Python prints a Ctrl-C that arrives in a finalizer as "ignored", and goes on.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread

SOON = 0.01  # seconds; the finalizer has ended by then


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """In this `with` block, SIGTERM ends the program as Ctrl-C does, so it removes its folders.

    A handler that the program has for SIGTERM already stays.
    """
    unhandled = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not unhandled or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
