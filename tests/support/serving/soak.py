"""A soak: a served disk under mixed load, snapshots and faults of devices, for as long as wished.

Every answer is compared with what was written. At the end memory, open files and the rate per CPU
second have to be where they were after the first quarter. `python -m support.serving.soak MINUTES`
prints a line per sample (`make soak`).
"""

import argparse
import os
import random
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

from support.serving.nbd_client import FLUSH, READ, TRIM, WRITE, Client
from support.serving.served import Server, refmodel

BLOCKS, BLOCK = 4096, 4096
IN_FLIGHT = 16
ROUNDS = 60  # of requests between two commands
MOST_SNAPSHOTS = 4
SEGMENTS = 256  # room for the live view and all snapshots, whatever they hold
SAMPLES = 40
LONG = 1800.0  # seconds, from which on rates are steady enough to be compared


class Sample(NamedTuple):
    """What a server holds, and how fast it was since the last sample."""

    seconds: float  # since the soak began
    memory: int  # bytes
    files: int  # open
    rate: float  # requests per CPU second

    def __str__(self) -> str:
        return (
            f"{self.seconds:8.0f} s {self.memory / 2**20:8.1f} MiB {self.files:4} files "
            f"{self.rate:8,.0f} requests per CPU second"
        )


class Wrong(Exception):
    """What the soak found."""


def soak(folder: Path, seconds: float, seed: int) -> Iterator[Sample]:
    """Yield samples. Raises Wrong if an answer is wrong, or the server does not stay as it was."""
    server = Server(folder)
    options = ("--blocks", BLOCKS, "--layout", "raid6-4+2", "--segments", SEGMENTS)
    refmodel("create", server.disk, *options)
    server.start()
    samples: list[Sample] = []
    try:
        with closing(socket.socket(socket.AF_UNIX)) as connected:
            connected.connect(str(server.socket))
            load = Load(connected, server, random.Random(seed))
            began = last = time.monotonic()
            asked, spent = 0, server.cpu_seconds()
            while last - began < seconds:
                while time.monotonic() - last < seconds / SAMPLES:
                    asked += load.step()
                last, now = time.monotonic(), server.cpu_seconds()
                rate = asked / (now - spent)
                asked, spent = 0, now
                samples.append(Sample(last - began, server.memory(), server.open_files(), rate))
                yield samples[-1]
        refmodel("settle", server.disk)
        refmodel("scrub", server.disk)
        if server.end() != 0:
            raise Wrong("the server did not end cleanly")
    finally:
        server.stop()
    require_steady(samples, rates=seconds >= LONG)


def require_steady(samples: list[Sample], *, rates: bool) -> None:
    """Compare the last quarter with the second: the first is spent on filling the disk.

    Raises Wrong if memory or open files grew, or the rate fell.
    """
    if not (quarter := len(samples) // 4):
        raise Wrong("there are too few samples: let it run for longer")
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    memory = [median(one.memory for one in part) for part in (early, late)]
    rate = [median(one.rate for one in part) for part in (early, late)]
    files = [min(one.files for one in part) for part in (early, late)]  # more: a command runs
    if memory[1] > 1.1 * memory[0] + (8 << 20):
        raise Wrong(f"memory grew from {memory[0]:,} to {memory[1]:,} bytes")
    if files[1] > files[0] + 1:
        raise Wrong(f"open files grew from {files[0]} to {files[1]}")
    if rates and rate[1] < 0.7 * rate[0]:
        raise Wrong(f"the rate fell from {rate[0]:,.0f} to {rate[1]:,.0f} per CPU second")


class Load:
    """A client and commands, and what the disk has to hold: tags of blocks, by view."""

    def __init__(self, connected: socket.socket, server: Server, choose: random.Random) -> None:
        self._server, self._choose = server, choose
        self._connected = connected
        self._expected = 0  # bytes of the answers that are to come
        self._client = Client(self._exchange, structured=False)
        self._live = [0] * BLOCKS
        self._snapshots: dict[str, list[int]] = {}
        self._tag = 0
        self._absent: int | None = None

    def step(self) -> int:
        """Do some rounds of requests, then one command. Return the number of requests."""
        for _ in range(ROUNDS):
            self._round()
        self._command()
        return ROUNDS * IN_FLIGHT

    def _round(self) -> None:
        choose = self._choose
        wanted, after = [], []
        for lba in choose.sample(range(BLOCKS // 2), IN_FLIGHT):  # none twice
            first = 2 * lba
            self._tag += 1
            match choose.choice((READ, READ, READ, WRITE, WRITE, WRITE, TRIM, FLUSH)):
                case kind if kind == WRITE:
                    wanted.append((WRITE, first * BLOCK, 0, _block(self._tag) * 2, 0))
                    after += [(first, self._tag), (first + 1, self._tag)]
                case kind if kind == TRIM:
                    wanted.append((TRIM, first * BLOCK, BLOCK, b"", 0))
                    after.append((first, 0))
                case kind:
                    length = 2 * BLOCK if kind == READ else 0
                    wanted.append((kind, first * BLOCK if length else 0, length, b"", 0))
        self._expected = sum(16 + (length if kind == READ else 0) for kind, _, length, *_ in wanted)
        for (kind, offset, _, _, _), reply in zip(wanted, self._client.ask(*wanted), strict=True):
            if reply.error:
                raise Wrong(f"a request was refused: {reply}")
            lba = offset // BLOCK
            if kind == READ and reply.content != b"".join(map(_block, self._live[lba : lba + 2])):
                raise Wrong(f"blocks {lba} and {lba + 1} are wrong")
        for lba, tag in after:
            self._live[lba] = tag

    def _command(self) -> None:
        disk, choose = self._server.disk, self._choose
        if choose.random() < 0.3:
            if self._absent is None:
                self._absent = choose.randrange(6)
                refmodel("fail", disk, self._absent)
            else:
                refmodel("return", disk, self._absent)
                self._absent = None
        elif len(self._snapshots) < MOST_SNAPSHOTS and choose.random() < 0.6:
            name = f"s{self._tag}"
            refmodel("snapshot", disk, name)
            self._snapshots[name] = list(self._live)
        elif self._snapshots:
            name = choose.choice([*self._snapshots])
            held = self._snapshots.pop(name)
            lba = choose.randrange(BLOCKS - 64)
            read = refmodel("read", disk, lba, 64, "--view", name).stdout
            if read != b"".join(map(_block, held[lba : lba + 64])):
                raise Wrong(f"snapshot {name} is wrong from block {lba} on")
            refmodel("delete", disk, name)

    def _exchange(self, data: bytes) -> bytes:
        """Send, and receive all answers."""
        self._connected.sendall(data)
        received = self._connected.recv(1 << 20)
        while len(received) < self._expected:
            part = self._connected.recv(1 << 20)
            if not part:
                raise Wrong("the server has disconnected")
            received += part
        return received


def _block(tag: int) -> bytes:
    return tag.to_bytes(8, "little") * (BLOCK // 8)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Soak the server; $SEED draws the requests.")
    parser.add_argument("minutes", type=float)
    minutes = parser.parse_args().minutes
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        seed = int(os.environ.get("SEED", 1))
        try:
            for sample in soak(Path(name), 60 * minutes, seed):
                print(sample, flush=True)
        except Wrong as wrong:
            sys.exit(f"soak, seed {seed}: {wrong}")
