"""Standard output that cannot be written: a full device, or a pipe that nobody reads."""

import os
import sys


def give_up_if_unwritable() -> None:
    """Forget what is buffered for it if it cannot be written: Python would try again when the
    process ends, and change the exit status to 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
