"""Serves a disk over NBD, from one thread: an event loop.

A turn of the loop takes what all clients have sent, performs it as one group, and answers it. Then
it does one step of each long request, and, while no request changes the disk, one step of
housekeeping: reclaim, resync and rebuild. Python's full collections of cycles wait until there is
none of this to do, either. Commands on the disk (refmodel.serving.command_socket) run between two
turns, so a long command makes clients wait.
"""

import errno
import os
import signal
import socket
import sys
from collections import deque
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic, perf_counter_ns

from refmodel.core.errors import DiskError
from refmodel.core.time_spent import ANSWER, ENGINE, THREAD, TURN
from refmodel.media.enclosure import Enclosure
from refmodel.registry import Disk, open_disk
from refmodel.runtime.collector import collect_if_due, full_collections_in_idle_moments
from refmodel.serving.callbacks import READ, Callbacks
from refmodel.serving.command_socket import CommandSocket, RunCommand
from refmodel.serving.connection import Connection
from refmodel.serving.exports import DiskExports, Servable
from refmodel.serving.lasting_disk import LastingDisk
from refmodel.serving.nbd.protocol import Command
from refmodel.serving.nbd.session import Request, Session
from refmodel.serving.requests import Performer, Steps
from refmodel.serving.sockets import LOOPBACK, listen_at, listen_on, require_free

MOST_CLIENTS = 64  # connected at the same time
NEGOTIATION = 10.0  # seconds that a client has to choose an export
IDLE = 0.1  # seconds without a change, after which housekeeping begins
GRACE = 0.5  # seconds that clients have to disconnect, once the server is to end
NAMES = {int(command): command.name.lower().replace("_", "-") for command in Command}


class Server:
    """The loop, on one open disk and sockets that listen."""

    def __init__(
        self,
        disk: Servable,
        callbacks: Callbacks,
        listening: list[socket.socket],
        house: Disk | None,
    ) -> None:
        self._house = house
        self._callbacks = callbacks
        self._listening = listening
        self._exports = DiskExports(disk)
        self._performer = Performer(disk)
        self._connections: dict[Session, Connection] = {}
        self._arrived: list[Request] = []
        self._in_steps: deque[tuple[Request, Steps]] = deque()
        self._changes = -1  # changes of the disk when housekeeping last looked
        self._quiet_from = 0.0  # the time when housekeeping may go on
        self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        for one in listening:
            callbacks.watch(one, READ, partial(self._accept, one))

    def turn(self) -> None:
        """Wait for something to do, a short while at most, and do it."""
        busy = self._arrived or self._in_steps
        wait = 0 if busy else max(0.0, min(self._quiet_from - monotonic(), IDLE))
        called = self._callbacks.run(wait)
        if self._arrived:
            group = self._arrived.copy()
            self._arrived.clear()  # connections hold the list
            self._perform(group)
        for _ in range(len(self._in_steps)):
            self._step(*self._in_steps.popleft())
        self._keep_house(idle=not called and not self._in_steps)

    def close(self) -> None:
        """Let clients disconnect for a short while, then disconnect them."""
        for one in self._listening:
            self._callbacks.forget(one)
        deadline = monotonic() + GRACE
        while self._connections and monotonic() < deadline:
            self.turn()
        for connection in [*self._connections.values()]:
            connection.close()
        os.close(self._reserve)

    def _arrive(self, requests: list[Request]) -> None:
        """Take requests that were received together."""
        arrived = THREAD.until_now()
        for request in requests:
            request.arrived = arrived
        self._arrived += requests

    def _perform(self, group: list[Request]) -> None:
        """Perform requests that are in flight together, and answer those that need no more."""
        rest: list[tuple[Request, Steps]] = []
        in_flight = len(group) + len(self._in_steps)
        if self._house is not None:
            self._house.operations.groups.add(len(group))
            self._house.operations.in_flight.add(in_flight)
        THREAD.switch(ENGINE)
        try:
            rest = self._performer.perform(group)
        except Exception as error:
            for request in group:
                _fail(request, error)
        in_steps = {id(request) for request, _ in rest}
        self._in_steps += rest
        done = [one for one in group if id(one) not in in_steps] if rest else group
        self._answer(done, in_flight, len(group))

    def _step(self, request: Request, steps: Steps) -> None:
        """Do one step of a request, unless its client has gone. Answer it if that was the last."""
        if request.session not in self._connections:
            return
        THREAD.switch(ENGINE)
        try:
            next(steps)
            self._in_steps.append((request, steps))
            THREAD.switch(TURN)
            return
        except StopIteration:
            pass
        except Exception as error:
            _fail(request, error)
        self._answer([request], len(self._in_steps) + 1, 1)

    def _answer(self, requests: list[Request], in_flight: int, group: int) -> None:
        """Send the answers of requests of a group, and count what each has waited for."""
        THREAD.switch(ANSWER)
        sessions = set()
        for request in requests:
            session = request.session
            session.answer(request)
            sessions.add(session)
        for session in sessions:
            if (connection := self._connections.get(session)) is not None:
                connection.send()
        THREAD.switch(TURN)
        if self._house is not None:
            counted, now = self._house.operations.requests, THREAD.until_now()
            for (kind, _), alike in _alike(requests).items():
                breakdown = counted[NAMES.get(kind, "unknown")]
                breakdown.add(alike[0].arrived, now, len(alike), in_flight, group)

    def _keep_house(self, *, idle: bool) -> None:
        """Do a step of housekeeping, unless the disk was changed a short while ago.

        `idle`: no client waits.
        """
        house, now = self._house, monotonic()
        changes = self._changes if house is None else house.operations.changes
        if changes != self._changes:
            self._changes, self._quiet_from = changes, now + IDLE
        elif now >= self._quiet_from:
            try:
                done = house is not None and house.background()
            except (DiskError, OSError):
                done = False  # the next request gets the error
            if not done:
                self._quiet_from = now + IDLE
                self._drop_slow()
                if idle:
                    collect_if_due()

    def _accept(self, listening: socket.socket, _: int) -> None:
        self._drop_slow()
        try:
            client, _address = listening.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._refuse(listening)
            return
        if len(self._connections) >= MOST_CLIENTS:
            client.close()
            return
        if client.family == socket.AF_INET:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(client, self._exports, self._callbacks, self._arrive, self._closed)
        self._connections[connection.session] = connection
        connection.send()

    def _refuse(self, listening: socket.socket) -> None:
        """Disconnect a client for want of file descriptors, with the one that was kept for this.

        Otherwise the client would stay in the queue, and the loop would turn around it.
        """
        os.close(self._reserve)
        with suppress(OSError):
            listening.accept()[0].close()
        self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _closed(self, connection: Connection) -> None:
        del self._connections[connection.session]

    def _drop_slow(self) -> None:
        """Disconnect clients that take too long to choose an export."""
        oldest = monotonic() - NEGOTIATION
        for connection in [*self._connections.values()]:
            if connection.session.negotiating and connection.since < oldest:
                connection.close()


def serve(
    folder: Path,
    run_command: RunCommand,
    *,
    socket_path: Path | None = None,
    port: int | None = None,
    sync: bool = True,
    memory: int | None = None,
) -> None:
    """Serve the disk in a folder until SIGTERM or SIGINT, and run commands on it meanwhile.

    The arguments are those of serve_disk. Without `sync` a flush does not wait for the medium.
    `memory` is for the maps, in bytes.
    Raises NotADisk if there is no disk or no free socket, DiskBusy, DataLost, OSError.
    """
    Enclosure(folder).close()  # whether there is a disk that nobody has open is a quick question
    if socket_path is not None:
        require_free(socket_path)
    with ExitStack() as stack:
        opening = partial(open_disk, folder, sync=sync, memory=memory)
        disk = stack.enter_context(closing(LastingDisk(opening)))
        callbacks = stack.enter_context(closing(Callbacks()))
        commands = CommandSocket(
            folder, callbacks, lambda words, stdin: run_command(disk.disk, words, stdin)
        )
        stack.enter_context(closing(commands))
        serve_disk(disk, callbacks, str(folder), socket_path=socket_path, port=port, house=disk)


def serve_disk(
    disk: Servable,
    callbacks: Callbacks,
    name: str,
    *,
    socket_path: Path | None = None,
    port: int | None = None,
    house: Disk | None = None,
) -> None:
    """Serve a disk, on a Unix socket and on a port of this machine, until SIGTERM or SIGINT.

    Port 0 is any free one. `name` is for the line that says that it is served. `house` is the disk
    if it has background work. Raises NotADisk if there is no free socket.
    """
    ended = _end_signals()
    with ExitStack() as stack:
        listening, uris = [], []
        if socket_path is not None:
            listening.append(stack.enter_context(listen_at(socket_path)))
            uris.append(f"nbd+unix:///?socket={socket_path.absolute()}")
        if port is not None:
            listening.append(stack.enter_context(listen_on(port)))
            uris.append(f"nbd://{LOOPBACK}:{listening[-1].getsockname()[1]}")
        server = stack.enter_context(closing(Server(disk, callbacks, listening, house)))
        THREAD.measure(perf_counter_ns if house is not None else None)
        stack.callback(THREAD.measure, None)
        stack.enter_context(full_collections_in_idle_moments())
        print(f"refmodel: serving {name} at {' and '.join(uris)}", file=sys.stderr, flush=True)
        while not ended.is_set():
            server.turn()


def _alike(requests: list[Request]) -> dict[tuple[int, int], list[Request]]:
    """Put requests together that have the same command and were received together."""
    found: dict[tuple[int, int], list[Request]] = {}
    for request in requests:
        found.setdefault((request.kind, id(request.arrived)), []).append(request)
    return found


def _fail(request: Request, error: Exception) -> None:
    """Answer a request that failed for a reason that is none of an engine's errors."""
    print(f"refmodel: a request failed: {error!r}", file=sys.stderr, flush=True)
    request.fail(errno.EIO, f"the server failed: {error!r}")


def _end_signals() -> Event:
    """Return an event that is set when SIGTERM or SIGINT arrives."""
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    return ended
