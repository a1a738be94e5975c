"""Standard streams that are closed, and output that cannot be written: a full device, or a pipe
that nobody reads.
"""

import os
import sys


def open_closed_streams() -> None:
    """Open the standard streams that are closed: Python has None for them.

    Input is empty then, output cannot be written ("Bad file descriptor"), and what is printed to
    stderr is lost. Otherwise the next file that is opened, a device, would take their numbers.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def give_up_if_unwritable() -> None:
    """Forget what is buffered for it if it cannot be written: Python would try again when the
    process ends, and change the exit status to 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
