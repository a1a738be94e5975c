"""What a target in process prints goes to stderr: stdout has the results of the kit."""

import sys
from contextlib import redirect_stdout
from typing import TextIO


def prints_to_stderr() -> redirect_stdout[TextIO]:
    """Return a block in which `print` writes to stderr, in all threads."""
    return redirect_stdout(sys.stderr)
