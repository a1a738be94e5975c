"""Runs a checker as a process: to its end, or until it is stopped with all that it started."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_running: set[subprocess.Popen[bytes]] = set()


def run(
    command: Sequence[str],
    timeout: float | None,
    *,
    most: int | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int | None, str]:
    """Return the exit status and the output. The status is None after `timeout` seconds, or after
    `most` CPU seconds.

    Raises OSError if the process cannot be started."""
    if most is not None:
        command = ["sh", "-c", f'ulimit -t {most}; exec "$@"', "sh", *command]
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
        if most is not None and status in (-signal.SIGXCPU, -signal.SIGKILL):
            status = None
        return status, out.read().decode("utf-8", "replace")


def stop() -> None:
    """End every one that another thread waits for."""
    for process in list(_running):
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(process.pid, signal.SIGKILL)
