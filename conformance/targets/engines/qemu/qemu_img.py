"""qemu-img, started once: a child runs each command, see waiting.c. Without cc, a process each."""

import atexit
import os
import signal
import socket
import struct
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from conformance.targets.base import TargetFailure

PATIENCE = 20.0  # seconds for a command
SOURCE = Path(__file__).with_name("waiting.c")


class ToolError(Exception):
    """qemu-img ended with an error. The text is its complaint."""


def run(*words: str, folder: Path | None = None) -> str:
    """Run qemu-img in the folder; return what it printed.

    Raises ToolError with its complaint, TargetFailure if it hangs."""
    try:
        waiting = _waiting()
        status, output = (
            waiting.run(words, folder or Path.cwd()) if waiting else _alone(words, folder)
        )
    except TimeoutError:
        raise TargetFailure(
            "hang", f"qemu-img {words[0]} did not end within {PATIENCE:g} seconds"
        ) from None
    if status < 0:
        raise TargetFailure("exit", f"qemu-img {words[0]} was killed by signal {-status}", output)
    if status:
        raise ToolError(output.strip().removeprefix("qemu-img: "))
    return output


def _alone(words: tuple[str, ...], folder: Path | None) -> tuple[int, str]:
    try:
        done = subprocess.run(
            ["qemu-img", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    return done.returncode, done.stdout


class _Waiting:
    """A qemu-img that waits for command lines. Each command empties the file with its output."""

    def __init__(self, library: Path) -> None:
        self._requests, its_own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.settimeout(PATIENCE)
        # Not a context manager: close() closes it.
        self._output = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        with its_own:
            self._process = subprocess.Popen(
                ["qemu-img"],
                stdin=its_own.fileno(),
                stdout=self._output,
                stderr=self._output,
                env={**os.environ, "LD_PRELOAD": str(library), "LD_BIND_NOW": "1"},
                start_new_session=True,
            )
        atexit.register(self.close)

    def run(self, words: tuple[str, ...], folder: Path) -> tuple[int, str]:
        """Return the exit status (negative: a signal) and what was printed.

        Raises TimeoutError; nothing can be run after it."""
        self._output.seek(0)
        self._output.truncate()
        try:
            self._requests.send(
                b"".join(os.fsencode(word) + b"\0" for word in (str(folder), *words))
            )
            answer = self._requests.recv(struct.calcsize("i"))
        except TimeoutError:
            self.close()
            raise
        except OSError:
            answer = b""
        self._output.seek(0)
        output = self._output.read().decode(errors="replace")
        if not answer:
            self.close()
            raise TargetFailure("exit", f"qemu-img ended before it had done {words[0]}", output)
        return os.waitstatus_to_exitcode(*struct.unpack("i", answer)), output

    def close(self) -> None:
        """End it, and the command that it runs."""
        atexit.unregister(self.close)
        _waiting.cache_clear()
        self._requests.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()


@cache
def _waiting() -> _Waiting | None:
    """Return the library of this process; None if no C compiler makes one that works."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "waiting.so"
        try:
            subprocess.run(
                ["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"],
                check=True,
                capture_output=True,
            )
            waiting = _Waiting(library)
            status, _ = waiting.run(("--version",), Path(folder))
        except (OSError, subprocess.CalledProcessError, TargetFailure):
            return None
        if status:
            waiting.close()
        return None if status else waiting
