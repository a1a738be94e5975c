"""What one client may take of the server, and that the others go on."""

import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from refmodel import LogStructuredDisk
from refmodel.serving import server as serving
from refmodel.serving.callbacks import Callbacks
from refmodel.serving.server import Server
from refmodel.serving.sockets import listen_at, listen_on
from support.disks import block
from support.serving.loop import Loop
from support.serving.nbd_client import READ, WRITE

Make = Callable[..., LogStructuredDisk]


@pytest.fixture
def loop(make: Make, folder: Path) -> Iterator[Loop]:
    disk = make(64)
    with listen_at(folder.with_name("socket")) as listening, closing(Callbacks()) as callbacks:
        server = Server(disk, callbacks, [listening], disk)
        yield Loop(server, listening)
        server.close()


def disconnected(client: socket.socket) -> bool:
    try:
        while client.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_most_clients(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MOST_CLIENTS", 3)
    clients = [loop.connect() for _ in range(4)]
    assert [disconnected(client) for client in clients] == [False, False, False, True]
    clients[0].close()
    loop.turns()
    assert not disconnected(loop.connect())


def test_a_client_that_does_not_choose_an_export(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, slow = loop.client(), loop.connect()
    monkeypatch.setattr(serving, "NEGOTIATION", 0.0)
    loop.turns()
    loop.connect()
    assert disconnected(slow)
    assert chosen.one(READ, 0, 512).content == bytes(512)


def test_too_many_open_files(loop: Loop) -> None:
    client = loop.client()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    late = socket.socket(socket.AF_UNIX)
    files = [int(file) for file in os.listdir("/proc/self/fd")]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files) + 1, hard))
    filled: list[int] = []  # the numbers that are free below the limit
    try:
        with suppress(OSError):
            while True:
                filled.append(os.open(os.devnull, os.O_RDONLY))
        late.connect(loop._address)
        loop.turns()
        late.setblocking(False)
        assert disconnected(late)
        assert not client.one(WRITE, 0, 0, block(1)).error
        assert client.one(READ, 0, 512).content == block(1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in filled:
            os.close(file)
    assert not disconnected(loop.connect())


def test_tcp(make: Make) -> None:
    disk = make(64)
    with listen_on(0) as listening, closing(Callbacks()) as callbacks:
        server = Server(disk, callbacks, [listening], None)
        assert listening.getsockname()[0] == "127.0.0.1"
        client = Loop(server, listening).client()
        assert not client.one(WRITE, 100, 0, b"text").error
        assert client.one(READ, 100, 4).content == b"text"
        server.close()


def test_an_error_of_the_program_is_an_answer(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = loop.client()
    monkeypatch.setattr(LogStructuredDisk, "read", lambda *_: 1 // 0)
    for length in (512, 100):
        reply = client.one(READ, 0, length)
        assert reply.error == 5 and "ZeroDivisionError" in reply.message
    assert capsys.readouterr().err.count("\n") == 2
    assert not client.one(WRITE, 0, 0, block(1)).error
