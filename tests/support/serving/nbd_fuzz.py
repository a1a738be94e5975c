"""Fuzzes an NBD server: messages that are right, wrong, cut off or noise, over many connections.

A message is an option or a request. Most are right at first, and are then damaged with some
probability. The server must answer or disconnect, must not print anything, and must serve others
meanwhile. Running `python -m support.serving.nbd_fuzz SOCKET MESSAGES SEED` prints what was sent.
"""

import random
import select
import socket
import struct
import sys
from collections import Counter
from pathlib import Path

from support.serving.nbd_client import (
    EXPORT_NAME,
    GO,
    INFO,
    LIST,
    LIST_META,
    READ,
    SET_META,
    STRUCTURED,
    WRITE,
    counted,
    go,
    meta,
    option,
    request,
)

PATIENCE = 20.0  # seconds without an answer, after which the server counts as hung
NAMES = ("", "", "s1", "nowhere", "\xe9", "x" * 4096)


def fuzz(path: Path, messages: int, seed: int) -> Counter[str]:
    """Send so many messages to the server at a Unix socket. Return what was sent and came back.

    Raises TimeoutError if the server hangs.
    """
    choose = random.Random(seed)
    found: Counter[str] = Counter()
    while found["messages"] < messages:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.setblocking(False)
            found["connections"] += 1
            _one_connection(client, choose, found)
    return found


def _one_connection(client: socket.socket, choose: random.Random, found: Counter[str]) -> None:
    negotiates = choose.random() < 0.3
    sent = struct.pack(">I", choose.choice((3, 3, 3, 1, 0, 0xFFFFFFFF)) if negotiates else 3)
    if not negotiates:
        sent += option(STRUCTURED) + meta("", "base:allocation") + go(choose.choice(("", "s1")))
    reads = choose.random() < 0.7  # else it does not take its answers
    try:
        for _ in range(choose.randrange(1, 200)):
            message = _option(choose) if negotiates else _request(choose)
            if choose.random() < 0.02:
                message = _damaged(message, choose)
                found["damaged"] += 1
            sent += message
            found["messages"] += 1
            if len(sent) > 1 << 16 or choose.random() < 0.1:
                if not _send(client, sent, reads, found):
                    found["left"] += 1
                    return
                sent = b""
        if _send(client, sent, reads, found) and reads:
            client.shutdown(socket.SHUT_WR)
            while received := _received(client):
                found["received"] += received
            found["ended by the server"] += 1
    except (BrokenPipeError, ConnectionResetError):
        found["disconnected by the server"] += 1


def _send(client: socket.socket, data: bytes, reads: bool, found: Counter[str]) -> bool:
    """Send, and take answers meanwhile. Return False if the client cannot send for not reading."""
    while data:
        patience = PATIENCE if reads else 0.01
        readable, writable, _ = select.select([client] if reads else [], [client], [], patience)
        if readable:
            received = _received(client)
            if not received:
                raise ConnectionResetError
            found["received"] += received
        if writable:
            data = data[client.send(data) :]
        if not readable and not writable:
            if reads:
                raise TimeoutError("the server neither answers nor takes requests")
            return False
    return True


def _received(client: socket.socket) -> int:
    """Wait for answers. Return their length; 0 if the server has disconnected."""
    if not select.select([client], [], [], PATIENCE)[0]:
        raise TimeoutError("the server does not answer")
    return len(client.recv(1 << 20))


def _option(choose: random.Random) -> bytes:
    name = choose.choice(NAMES)
    match choose.choice((EXPORT_NAME, LIST, INFO, GO, STRUCTURED, LIST_META, SET_META, 0, 4, 5)):
        case number if number in (LIST_META, SET_META):
            queries = choose.sample(("base:allocation", "base:", "x:y", ""), choose.randrange(4))
            return meta(name, *queries, number=number)
        case number if number in (INFO, GO):
            return go(name, number) if choose.random() < 0.9 else option(number, counted(name))
        case number if number == EXPORT_NAME:
            return option(LIST) if choose.random() < 0.9 else option(number, name.encode())
        case number:
            return option(number, b"" if choose.random() < 0.7 else choose.randbytes(10))


def _request(choose: random.Random) -> bytes:
    kind = choose.choice((READ, READ, WRITE, WRITE, 3, 4, 5, 6, 7, choose.randrange(65536)))
    flags = choose.choice((0, 0, 0, 1, 8, 16, choose.randrange(65536)))
    offset = choose.choice((choose.randrange(1 << 18), choose.randrange(1 << 64), 4096, 0))
    length = choose.choice((512, 4096, 0, choose.randrange(1 << 18), choose.randrange(1 << 32)))
    cookie = choose.randrange(1 << 64)
    if kind == 2:
        kind = READ
    if kind == WRITE:
        data = choose.randbytes(choose.choice((0, 1, 512, 4096, 20000)))
        return request(kind, offset, data=data, flags=flags, cookie=cookie)
    return request(kind, offset, length, flags=flags, cookie=cookie)


def _damaged(message: bytes, choose: random.Random) -> bytes:
    match choose.randrange(3):
        case 0:  # some byte
            at = choose.randrange(len(message))
            return message[:at] + choose.randbytes(1) + message[at + 1 :]
        case 1:  # cut off, so that the next message is taken for its end
            return message[: choose.randrange(len(message))]
        case _:
            return choose.randbytes(choose.randrange(1, 100))


if __name__ == "__main__":
    print(dict(fuzz(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
