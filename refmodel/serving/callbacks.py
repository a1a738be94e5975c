"""The event loop: sockets that epoll watches, each with the function to call when it is ready."""

import select
import socket
from collections.abc import Callable

READ, WRITE = select.EPOLLIN, select.EPOLLOUT
Ready = Callable[[int], None]  # takes what the socket is ready for: READ, WRITE or both


class Callbacks:
    """Sockets, and what is called when they are ready."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, tuple[int, Ready]] = {}  # file descriptor -> events, function

    def watch(self, watched: socket.socket, events: int, ready: Ready) -> None:
        """Call `ready` when a socket is ready for one of the events; with none, never."""
        file = watched.fileno()
        before = self._watched[file][0] if file in self._watched else 0
        if before == events:
            return
        if not events:
            self.forget(watched)  # otherwise epoll would report errors again and again
            return
        (self._epoll.modify if before else self._epoll.register)(file, events)
        self._watched[file] = events, ready

    def forget(self, watched: socket.socket) -> None:
        """Stop to watch a socket, before it is closed."""
        file = watched.fileno()
        if self._watched.pop(file, None) is not None:
            self._epoll.unregister(file)

    def run(self, timeout: float) -> bool:
        """Wait until a socket is ready, `timeout` seconds at most, and call what is to be called.

        Returns whether any was ready.
        """
        ready = self._epoll.poll(timeout)
        for file, found in ready:
            if file in self._watched:  # another call may have closed it
                events, call = self._watched[file]
                # an error, or the end of the connection, shows in whatever is done with it
                call(found & events or events)
        return bool(ready)

    def close(self) -> None:
        """Watch nothing any more."""
        self._epoll.close()
