"""Checkers are processes of their own: one runs to its end, or is ended with all that it started."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_running: set[subprocess.Popen] = set()


def run(
    command: Sequence[str],
    timeout: float | None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int | None, str]:
    """Exit status (None: it took longer than `timeout` seconds) and what was printed. Raises OSError if it cannot be started."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _running.add(process)
        try:
            status: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            _running.discard(process)
        out.seek(0)
        return status, out.read().decode("utf-8", "replace")


def stop() -> None:
    """End every one that another thread waits for."""
    for process in list(_running):
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(process.pid, signal.SIGKILL)
