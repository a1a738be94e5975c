"""A server that is killed while clients write: nothing that it has answered is lost.

The long form is `make kill`.
"""

import os
import random
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from refmodel import create, open_disk, plan
from refmodel.array.layout import LAYOUTS
from refmodel.registry import open_disk as open_any
from refmodel.serving.callbacks import Callbacks
from refmodel.serving.server import serve_disk
from support.serving.nbd_client import WRITE, Client, request

KILLS = int(os.environ.get("KILLS", 8))  # per layout
BLOCKS, BLOCK = 96, 512
IN_FLIGHT = 16
LONGEST = 0.05  # seconds that a server works at most

Image = list[bytes]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_answered_survives(folder: Path, layout: str) -> None:
    shape = plan(
        BLOCKS, block_bytes=BLOCK, segment_blocks=8, segments=60, fanout=8, layout=layout,
        log_bytes=1 << 16,
    )  # fmt: skip
    create(folder, shape, sync=False)
    choose = random.Random(layout)
    image: Image = [bytes(BLOCK)] * BLOCKS
    answered = 0
    for _ in range(KILLS):
        image, count = _life(folder, choose, image)
        answered += count
    assert answered > KILLS


def _life(folder: Path, choose: random.Random, before: Image) -> tuple[Image, int]:
    """Serve, write, kill. Return what the disk holds, and how many writes were answered."""
    path = folder.with_name("socket")
    child = os.fork()
    if child == 0:
        _serve(folder, path)
    with closing(_connected(path)) as client:
        kill_at = time.monotonic() + choose.random() * LONGEST
        allowed, answered = _write(client, choose, before, child, kill_at)
    os.waitpid(child, 0)
    path.unlink()
    disk = open_disk(folder, sync=False)
    found = [disk.read(lba) for lba in range(BLOCKS)]
    wrong = [lba for lba in range(BLOCKS) if found[lba] not in allowed[lba]]
    assert not wrong, f"blocks {wrong} hold neither what was answered nor what was in flight"
    if choose.random() < 0.3:
        disk.settle()
    disk.close()
    return found, answered


def _serve(folder: Path, path: Path) -> None:
    """In the child: serve until killed."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        disk = open_any(folder, sync=False)
        serve_disk(disk, Callbacks(), "disk", socket_path=path, house=disk)
    finally:
        os._exit(1)


def _connected(path: Path) -> socket.socket:
    """A connection to the server, as soon as it listens."""
    for _ in range(1000):
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(str(path))
            return client
        except OSError:
            client.close()
            time.sleep(0.01)
    raise TimeoutError("the server did not begin to serve")


def _write(
    client: socket.socket, choose: random.Random, before: Image, child: int, kill_at: float
) -> tuple[list[set[bytes]], int]:
    """Write until the server is dead. Return what each block may hold, and the number of answers.

    No two requests in flight write the same block.
    """

    def exchange(sent: bytes) -> bytes:
        client.sendall(sent)
        time.sleep(0.002)
        return client.recv(1 << 16)

    Client(exchange, structured=False)
    allowed = [{data} for data in before]
    in_flight: dict[int, tuple[range, bytes]] = {}
    answered, killed, tags = 0, False, iter(range(1 << 62))
    received = b""
    while True:
        try:
            while not killed and len(in_flight) < IN_FLIGHT:
                cookie = next(tags)
                lbas = _free(choose, in_flight)
                data = b"".join(struct.pack(">QQ", cookie, lba) * (BLOCK // 16) for lba in lbas)
                in_flight[cookie] = lbas, data
                for lba, block in _blocks(lbas, data):
                    allowed[lba].add(block)
                client.sendall(request(WRITE, lbas[0] * BLOCK, data=data, cookie=cookie))
            if not killed and time.monotonic() >= kill_at:
                os.kill(child, signal.SIGKILL)
                killed = True
            part = client.recv(1 << 16)
        except (BrokenPipeError, ConnectionResetError):
            part = b""
        if not part:
            return allowed, answered
        received += part
        while len(received) >= 16:
            error, cookie = struct.unpack_from(">IQ", received, 4)
            received = received[16:]
            lbas, data = in_flight.pop(cookie)
            if not error:
                answered += 1
                for lba, block in _blocks(lbas, data):
                    allowed[lba] = {block}


def _free(choose: random.Random, in_flight: dict[int, tuple[range, bytes]]) -> range:
    """Blocks that no request in flight writes."""
    while True:
        lba = choose.randrange(BLOCKS)
        lbas = range(lba, min(BLOCKS, lba + choose.choice((1, 1, 2, 4))))
        if not any(set(lbas) & set(others) for others, _ in in_flight.values()):
            return lbas


def _blocks(lbas: range, data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, lba in enumerate(lbas):
        yield lba, data[number * BLOCK : (number + 1) * BLOCK]
