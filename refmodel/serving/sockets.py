"""The sockets that a server listens on: a Unix socket, and a port for clients on this machine."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from refmodel.core.errors import NotADisk

LOOPBACK = "127.0.0.1"


@contextmanager
def listen_at(path: Path) -> Iterator[socket.socket]:
    """Yield a Unix socket that listens at a path, which is removed at the end. Raises NotADisk."""
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(str(path))
        except OSError as error:
            raise NotADisk(f"cannot listen at {path}: {error.strerror or error}") from error
        try:
            listening.listen()
            listening.setblocking(False)
            yield listening
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def listen_on(port: int) -> Iterator[socket.socket]:
    """Yield a socket that listens on a port of this machine; 0 is any free one. Raises NotADisk."""
    with socket.socket(socket.AF_INET) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
        except OSError as error:
            raise NotADisk(f"cannot listen on port {port}: {error.strerror or error}") from error
        listening.listen()
        listening.setblocking(False)
        yield listening


def require_free(path: Path) -> None:
    """Remove a socket without a listener. Raises NotADisk if another server does, or if the file is
    no socket."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
                return
        raise NotADisk(f"another server listens on {path}")
    if path.exists():
        raise NotADisk(f"{path} exists and is not a socket")
