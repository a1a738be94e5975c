"""A server in the process of a test: its loop turns when the test says so."""

import socket
from collections.abc import Callable

from refmodel.serving.server import Server
from support.serving.nbd_client import Client


class Loop:
    """A server whose loop runs while a client waits."""

    def __init__(self, server: Server, listening: socket.socket) -> None:
        self._server, self._address = server, listening.getsockname()
        self._family = listening.family
        self.sent: Callable[[], object] = lambda: None  # called when a client has sent something

    def turns(self, turns: int = 4) -> None:
        """Let the server do what there is to do."""
        for _ in range(turns):
            self._server.turn()

    def connect(self) -> socket.socket:
        """Return the socket of a new client, which never blocks."""
        client = socket.socket(self._family)
        client.connect(self._address)
        self.turns()
        client.setblocking(False)
        return client

    def client(self, turns: int = 4) -> Client:
        """Return a client that has chosen the live view, and gets answers within so many turns."""
        connected = self.connect()

        def exchange(data: bytes) -> bytes:
            connected.sendall(data)
            self.sent()
            self.turns(turns)
            return connected.recv(1 << 20)

        return Client(exchange)
