"""Runs commands in the process that has the disk open: a server or a bench.

Only one process can have a disk open. So that other commands work meanwhile, that process listens
on the Unix socket `control` in the disk's folder. A second process sends its command line there,
and prints the answer: the same code runs, with the same words and the same exit status.

A request is one line of JSON: the arguments of the command line, the folder that the command was
called in, and what it read from stdin (base64). The answer is one line of JSON: stdout and stderr
(base64), and the exit status.
"""

import base64
import json
import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from refmodel.registry import Disk

SOCKET_NAME = "control"
TIMEOUT = 10  # seconds that a client has to send its request, or to take the answer


class Answer(NamedTuple):
    """What a command printed, and its exit status."""

    stdout: bytes
    stderr: bytes
    status: int


class RunCommand(Protocol):
    """Runs a command line on a disk that is already open, and returns what it printed."""

    def __call__(self, disk: Disk, arguments: list[str], stdin: bytes) -> Answer: ...


class Turn:
    """A fair lock: a thread that waits gets the lock before its holder can take it again."""

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._held = threading.Lock()

    def __enter__(self) -> None:
        with self._next:
            self._held.acquire()

    def __exit__(self, *_: object) -> None:
        self._held.release()

    def acquire_forever(self, timeout: float) -> bool:
        """Acquire the lock and never release it. Return False if it stayed held for `timeout` s."""
        return self._held.acquire(timeout=timeout)


class Listener:
    """Runs commands on an open disk, in a thread of its own. It holds `turn` while one runs."""

    def __init__(self, folder: Path, disk: Disk, turn: Turn, run_command: RunCommand) -> None:
        """Listen in the disk's folder. Raises OSError if the socket cannot be made."""
        self._socket = folder / SOCKET_NAME
        # Only the process that has the disk open gets here, so nobody else listens: a socket
        # that exists was left behind by a process that was killed.
        self._socket.unlink(missing_ok=True)

        class Handler(socketserver.StreamRequestHandler):
            timeout = TIMEOUT

            def handle(self) -> None:
                request = json.loads(self.rfile.readline())
                with turn, chdir(request["folder"]):
                    stdin = base64.b64decode(request["stdin"])
                    answer = run_command(disk, request["arguments"], stdin)
                self.wfile.write(json.dumps(_encoded(answer)).encode() + b"\n")

        with _short_path(folder) as address:
            self._server = socketserver.UnixStreamServer(address, Handler)
        self._socket.chmod(0o600)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish the command that runs, stop listening, and remove the socket."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._socket.unlink(missing_ok=True)


def forward(folder: Path, arguments: list[str], stdin: bytes) -> Answer | None:
    """Run a command in the process that has the disk in `folder` open.

    Returns its answer, or None if no process listens there.
    """
    request = {
        "arguments": arguments,
        "folder": os.getcwd(),
        "stdin": base64.b64encode(stdin).decode(),
    }
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            with _short_path(folder) as address:
                connection.connect(address)
        except OSError:
            return None
        line = b""
        with suppress(BrokenPipeError, ConnectionResetError), connection.makefile("rb") as answers:
            connection.sendall(json.dumps(request).encode() + b"\n")
            line = answers.readline()
    if not line:
        message = b"refmodel: the process that has the disk open ended before it answered\n"
        return Answer(b"", message, 1)
    answer = json.loads(line)
    stdout, stderr = (base64.b64decode(answer[name]) for name in ("stdout", "stderr"))
    return Answer(stdout, stderr, answer["status"])


def _encoded(answer: Answer) -> dict[str, Any]:
    stdout, stderr = (base64.b64encode(data).decode() for data in (answer.stdout, answer.stderr))
    return {"stdout": stdout, "stderr": stderr, "status": answer.status}


@contextmanager
def _short_path(folder: Path) -> Iterator[str]:
    """The socket's path through /proc: sockets allow 107 bytes, and a folder's path can be long."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{SOCKET_NAME}"
    finally:
        os.close(opened)
