"""Commands on a disk that another process has open run in that process: the same code, words and exit status as on a closed disk.

That process listens on the socket `control` in the disk's folder. A request is one line of JSON: the arguments of the command line, the folder it was
called in, and what it read from stdin. The answer is another: what the command printed, and its exit status.
"""

import base64
import json
import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from refmodel.registry import Disk

NAME = "control"
PATIENCE = 10  # seconds for a client to say what it wants, or to take the answer

held: ContextVar[Disk | None] = ContextVar(
    "held", default=None
)  # the disk that a command is to use, already open


class Turn:
    """A lock that whoever waits for it gets next, however fast its holder comes back for it."""

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._taken = threading.Lock()

    def __enter__(self) -> None:
        with self._next:
            self._taken.acquire()

    def __exit__(self, *_: object) -> None:
        self._taken.release()

    def last(self, timeout: float) -> bool:
        """Take it for good. Says whether it became free, in seconds at most."""
        return self._taken.acquire(timeout=timeout)


class Listener:
    """Runs commands on an open disk in a thread of its own; `turn` is held while one runs."""

    def __init__(self, folder: Path, disk: Disk, turn: Turn) -> None:
        self._socket = folder / NAME
        self._socket.unlink(
            missing_ok=True
        )  # whoever has the disk open may: nobody else can be listening

        class Handler(socketserver.StreamRequestHandler):
            timeout = PATIENCE

            def handle(self) -> None:
                answer = _run(disk, turn, json.loads(self.rfile.readline()))
                self.wfile.write(json.dumps(answer).encode() + b"\n")

        with _address(folder) as address:
            self._server = socketserver.UnixStreamServer(address, Handler)
        self._socket.chmod(0o600)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._socket.unlink(missing_ok=True)


def forward(folder: Path, arguments: list[str], stdin: bytes) -> tuple[bytes, bytes, int] | None:
    """Have a command run by the process that has the disk open: its stdout, stderr and exit status. None if nobody listens."""
    request = {
        "arguments": arguments,
        "folder": os.getcwd(),
        "stdin": base64.b64encode(stdin).decode(),
    }
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            with _address(folder) as address:
                connection.connect(address)
        except OSError:
            return None
        line = b""
        with suppress(BrokenPipeError, ConnectionResetError), connection.makefile("rb") as answers:
            connection.sendall(json.dumps(request).encode() + b"\n")
            line = answers.readline()
    if not line:
        return b"", b"refmodel: the process that has the disk open ended before it answered\n", 1
    answer = json.loads(line)
    return base64.b64decode(answer["stdout"]), base64.b64decode(answer["stderr"]), answer["status"]


def _run(disk: Disk, turn: Turn, request: dict[str, Any]) -> dict[str, Any]:
    from click.testing import (
        CliRunner,  # it runs a command on streams of its own, which is just what is wanted
    )

    from refmodel.cli import main

    with turn, chdir(request["folder"]):
        token = held.set(disk)
        try:
            done = CliRunner().invoke(
                main, request["arguments"], input=base64.b64decode(request["stdin"])
            )
        finally:
            held.reset(token)
    stderr = done.stderr_bytes
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        stderr += f"refmodel: the server failed: {done.exception!r}\n".encode()
    encoded = {"stdout": done.stdout_bytes, "stderr": stderr}
    return {name: base64.b64encode(data).decode() for name, data in encoded.items()} | {
        "status": done.exit_code
    }


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """The socket's path, short enough for a socket however long the folder's is."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{NAME}"
    finally:
        os.close(opened)
