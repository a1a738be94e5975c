"""The event loop: sockets in a selector, each with the function to call when it is ready."""

import selectors
import socket
from collections.abc import Callable

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
Ready = Callable[[int], None]  # takes what the socket is ready for: READ, WRITE or both


class Callbacks:
    """Sockets, and what is called when they are ready."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wanted: dict[socket.socket, int] = {}

    def watch(self, watched: socket.socket, events: int, ready: Ready) -> None:
        """Call `ready` when a socket is ready for one of the events; with none, never."""
        if (before := self._wanted.get(watched, 0)) == events:
            return
        if not before:
            self._selector.register(watched, events, ready)
        elif events:
            self._selector.modify(watched, events, ready)
        else:
            self._selector.unregister(watched)
        self._wanted[watched] = events

    def forget(self, watched: socket.socket) -> None:
        """Stop to watch a socket, before it is closed."""
        if self._wanted.pop(watched, 0):
            self._selector.unregister(watched)

    def run(self, timeout: float) -> bool:
        """Wait until a socket is ready, `timeout` seconds at most, and call what is to be called.

        Returns whether any was ready.
        """
        ready = self._selector.select(timeout)
        for key, events in ready:
            key.data(events)
        return bool(ready)

    def close(self) -> None:
        """Watch nothing any more."""
        self._selector.close()
