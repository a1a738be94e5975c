"""The connection of one NBD client: a session on a socket that never blocks."""

import socket
from collections.abc import Callable
from time import monotonic

from refmodel.serving.callbacks import READ, WRITE, Callbacks
from refmodel.serving.nbd.protocol import Exports
from refmodel.serving.nbd.session import Request, Session

RECEIVED_AT_A_TIME = 1 << 18  # bytes
MOST_PARTS = 512  # parts of one sendmsg; the system allows 1024
_received = memoryview(bytearray(RECEIVED_AT_A_TIME))  # one thread: all connections share it


class Connection:
    """One connection.

    `requested` is called with the requests that arrive, `closed` when it is closed.
    """

    def __init__(
        self,
        client: socket.socket,
        exports: Exports,
        callbacks: Callbacks,
        requested: Callable[[list[Request]], None],
        closed: Callable[["Connection"], None],
    ) -> None:
        self.since = monotonic()
        self.session = Session(exports)
        self._closed = closed
        self._socket = client
        self._callbacks = callbacks
        self._requested = requested
        client.setblocking(False)

    def send(self) -> None:
        """Send what there is, as far as the client takes it; resume the session if it can."""
        session = self.session
        try:
            self._send_output()
            while session.resumes:
                self._requested(session.feed())
                self._send_output()
        except OSError:
            self.close()
            return
        if session.over:
            self.close()
            return
        wanted = (READ if session.takes else 0) | (WRITE if session.output else 0)
        self._callbacks.watch(self._socket, wanted, self._ready)

    def close(self) -> None:
        """Disconnect the client."""
        self.session.end()
        self._callbacks.forget(self._socket)
        self._socket.close()
        self._closed(self)

    def _ready(self, events: int) -> None:
        session = self.session
        if events & READ and session.takes:
            try:
                size = self._socket.recv_into(_received)
            except BlockingIOError:
                return
            except OSError:
                self.close()
                return
            if not size:
                session.end()
            elif requests := session.feed(_received[:size]):
                self._requested(requests)
        if session.output or session.ended:
            self.send()

    def _send_output(self) -> None:
        """Send until the client takes no more for now. Raises OSError if it is gone."""
        session, output = self.session, self.session.output
        while output:
            parts = output[:MOST_PARTS]
            try:
                sent = self._socket.sendmsg(parts)
            except BlockingIOError:
                return
            session.unsent -= sent
            if not session.unsent:
                output.clear()
                return
            done = 0
            while done < len(parts) and sent >= len(parts[done]):
                sent -= len(parts[done])
                done += 1
            if sent:
                output[done] = memoryview(output[done])[sent:]
            del output[:done]
