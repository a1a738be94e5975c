"""Runs commands in the process that has the disk open: a server or a bench.

Only one process can have a disk open. So that other commands work meanwhile, that process listens
on the Unix socket `control` in the disk's folder. A second process sends its command line there,
and prints the answer: the same code runs, with the same words and the same exit status. Commands
and the process's own work take turns, in one thread.

A request is one line of JSON: the arguments of the command line, the folder that the command was
called in, and what it read from stdin (base64). The answer is one line of JSON: stdout and stderr
(base64), and the exit status.
"""

import base64
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from refmodel.registry import Disk
from refmodel.serving.callbacks import READ, WRITE, Callbacks
from refmodel.serving.exit_status import REFUSED, UNKNOWN

SOCKET_NAME = "control"
PART = 1 << 18  # bytes that are received at a time


class Answer(NamedTuple):
    """The output of a command, and its exit status."""

    stdout: bytes
    stderr: bytes
    status: int


class RunCommand(Protocol):
    """Runs a command line on a disk that is already open, and returns what it printed."""

    def __call__(self, disk: Disk, arguments: list[str], stdin: bytes) -> Answer: ...


class CommandSocket:
    """The socket, and the commands that arrive there. They run when the callbacks do."""

    def __init__(
        self, folder: Path, callbacks: Callbacks, run: Callable[[list[str], bytes], Answer]
    ) -> None:
        """Listen in the disk's folder. Raises OSError if the socket cannot be made."""
        self._path = folder / SOCKET_NAME
        self._callbacks = callbacks
        self._run = run
        # Only the process that has the disk open gets here, so nobody else listens: a socket
        # that exists was left behind by a process that was killed.
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            with _short_path(folder) as address:
                self._socket.bind(address)
        except OSError as error:
            self._socket.close()
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self._path.chmod(0o600)
        self._socket.listen()
        self._socket.setblocking(False)
        callbacks.watch(self._socket, READ, self._accept)

    def close(self) -> None:
        """Stop listening, and remove the socket."""
        self._callbacks.forget(self._socket)
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _accept(self, _: int) -> None:
        with suppress(OSError):
            client, _address = self._socket.accept()
            client.setblocking(False)
            _Client(client, self._callbacks, self._run)


class _Client:
    """A process that sends one command line, and waits for the answer."""

    def __init__(
        self,
        client: socket.socket,
        callbacks: Callbacks,
        run: Callable[[list[str], bytes], Answer],
    ) -> None:
        self._socket, self._callbacks, self._run = client, callbacks, run
        self._request = bytearray()
        self._answer = b""
        callbacks.watch(client, READ, self._receive)

    def _receive(self, _: int) -> None:
        try:
            part = self._socket.recv(PART)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        self._request += part
        if not part:
            self._close()
        elif part.endswith(b"\n"):
            self._callbacks.watch(self._socket, 0, self._receive)
            self._answer = json.dumps(_encoded(self._performed())).encode() + b"\n"
            self._send(WRITE)

    def _performed(self) -> Answer:
        try:
            request = json.loads(self._request)
            with chdir(request["folder"]):
                return self._run(request["arguments"], base64.b64decode(request["stdin"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            return Answer(
                b"", f"refmodel: the command cannot run there: {error}\n".encode(), REFUSED
            )

    def _send(self, _: int) -> None:
        try:
            sent = self._socket.send(self._answer)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close()
            return
        self._answer = self._answer[sent:]
        if self._answer:
            self._callbacks.watch(self._socket, WRITE, self._send)
        else:
            self._close()

    def _close(self) -> None:
        self._callbacks.forget(self._socket)
        self._socket.close()


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
        return Answer(b"", message, UNKNOWN)
    answer = json.loads(line)
    stdout, stderr = (base64.b64decode(answer[name]) for name in ("stdout", "stderr"))
    return Answer(stdout, stderr, answer["status"])


def _encoded(answer: Answer) -> dict[str, Any]:
    stdout, stderr = (base64.b64encode(data).decode() for data in (answer.stdout, answer.stderr))
    return {"stdout": stdout, "stderr": stderr, "status": answer.status}


@contextmanager
def _short_path(folder: Path) -> Iterator[str]:
    """Yield the socket's path through /proc: sockets allow 107 bytes, and a folder's path can be
    long.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{SOCKET_NAME}"
    finally:
        os.close(opened)
