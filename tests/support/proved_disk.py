"""The command line of the proved disk."""

import subprocess
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "build" / "proved-disk"
# Each failure is shrunk, and a kept one is run first the next time: one is enough, found anew.
FIRST_FAILURE = ["--failures", "1", "--no-keep"]


def call(*arguments: object, status: int = 0, text: bytes | None = None) -> bytes:
    """Run a command that must end with `status`, and return what it printed."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, input=text)
    assert done.returncode == status, done.stderr.decode()
    assert b"xception" not in done.stderr
    return done.stdout


def told(*arguments: object, status: int) -> str:
    """Run a command that must end with `status`, and return the one line that it says."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
    return done.stderr.removeprefix("proved-disk: ").rstrip("\n")
