"""The command `refmodel` as a process."""

import subprocess
import sys

ENGINE = [sys.executable, "-m", "refmodel"]


def run(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run `refmodel` with arguments, and return its status and output."""
    return subprocess.run(
        [*ENGINE, *map(str, arguments)], input=stdin, capture_output=True, timeout=60
    )
