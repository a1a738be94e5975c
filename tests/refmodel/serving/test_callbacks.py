"""The event loop: what is called, and what is no longer called."""

import socket
from contextlib import closing
from functools import partial

from refmodel.serving.callbacks import READ, WRITE, Callbacks


def test_a_socket_that_is_not_watched_wakes_nobody_even_if_its_peer_has_gone() -> None:
    ours, theirs = socket.socketpair()
    with closing(Callbacks()) as callbacks, ours:
        called: list[int] = []
        callbacks.watch(ours, READ, called.append)
        theirs.close()
        assert callbacks.run(0) and called == [READ]
        callbacks.watch(ours, 0, called.append)
        assert not callbacks.run(0) and called == [READ]
        callbacks.watch(ours, READ | WRITE, called.append)
        assert callbacks.run(0) and called == [READ, READ | WRITE]


def test_a_socket_that_another_callback_has_closed_is_not_called() -> None:
    sockets = [*socket.socketpair(), *socket.socketpair()]
    with closing(Callbacks()) as callbacks:
        called: list[int] = []

        def close_others(own: int, _: int) -> None:
            called.append(own)
            for one in sockets:
                callbacks.forget(one)

        for number in (0, 2):
            sockets[number + 1].send(b"x")
            callbacks.watch(sockets[number], READ, partial(close_others, number))
        assert callbacks.run(0) and len(called) == 1
        assert not callbacks.run(0)
    for one in sockets:
        one.close()
