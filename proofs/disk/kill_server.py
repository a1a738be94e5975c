"""Kill the server of the proved disk while a client has 16 writes in flight, again and again;
nothing that it answered may be lost.

    python proofs/disk/kill_server.py 500
    python proofs/disk/kill_server.py 500 2     # on two mirrors

After each kill the disk is opened again, and each block is compared: it holds what was answered
last, or a write that was in flight.
"""

import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

PROGRAM = Path(__file__).parents[2] / "build" / "proved-disk"
BLOCKS, BLOCK = 96, 4096
IN_FLIGHT = 16
MOST_ANSWERS = 60  # of a server before it is killed
LONGEST = 0.02  # seconds between the last of them and the kill at most
WRITE = 1
OPTION = 0x49484156454F5054
GO = struct.pack(">IQIIIH", 3, OPTION, 7, 6, 0, 0)  # the client's flags, then the default export


class Server:
    """The server of the disk in `folder`, as a process."""

    def __init__(self, folder: Path, *options: str | Path) -> None:
        self._socket = folder / "nbd.sock"
        command: list[str | Path] = [PROGRAM, "serve", folder / "disk", "--socket", self._socket]
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert b"serving" in line, line

    def connect(self) -> socket.socket:
        """Return a connection that has chosen the live disk."""
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(self._socket))
        client.sendall(GO)
        received = b""
        while not received.endswith(struct.pack(">QIII", 0x3E889045565A9, 7, 1, 0)):
            part = client.recv(4096)
            assert part, received
            received += part
        return client


def content(tag: int, lba: int) -> bytes:
    """Return the block that the write number `tag` writes at `lba`; write 0 is the new disk."""
    return struct.pack(">QQ", tag, lba) * (BLOCK // 16) if tag else bytes(BLOCK)


def write(
    server: Server, choose: random.Random, allowed: list[set[int]], tags: range
) -> tuple[int, int]:
    """Write until the server is dead, no block twice at a time.

    Keep in `allowed` which writes each block may hold. Return how many were sent and answered.
    """
    client = server.connect()
    timer = threading.Timer(choose.random() * LONGEST, server.process.kill)
    last = choose.randrange(2, MOST_ANSWERS)
    in_flight: dict[int, range] = {}
    received, sent, answered = b"", 0, 0
    try:
        while True:
            while len(in_flight) < IN_FLIGHT:
                busy = {lba for lbas in in_flight.values() for lba in lbas}
                start = choose.choice([lba for lba in range(BLOCKS) if lba not in busy])
                stop = start + 1
                while stop < BLOCKS and stop not in busy and choose.random() < 0.5:
                    stop += 1
                tag, lbas = tags[sent], range(start, stop)
                sent += 1
                in_flight[tag] = lbas
                for lba in lbas:
                    allowed[lba].add(tag)
                data = b"".join(content(tag, lba) for lba in lbas)
                head = (0x25609513, 0, WRITE, tag, start * BLOCK, len(data))
                client.sendall(struct.pack(">IHHQQI", *head) + data)
            part = client.recv(1 << 16)
            if not part:
                break
            received += part
            while len(received) >= 16:
                error, tag = struct.unpack_from(">IQ", received, 4)
                assert not error, f"the server refused a write with error {error}"
                received = received[16:]
                answered += 1
                if answered == last:
                    timer.start()
                for lba in in_flight.pop(tag):
                    allowed[lba] = {tag}
    except (BrokenPipeError, ConnectionResetError):
        pass
    timer.join()
    client.close()
    assert server.process.wait() == -signal.SIGKILL
    return sent, answered


def killed(kills: int, seed: int = 1, mirrors: int = 0, trees: bool = False) -> tuple[int, int]:
    """Kill so many times, on one device or on mirrors, with whole maps or with trees.

    Return how many writes were answered, and how many blocks had a write in flight that had
    happened. Raises AssertionError if something is lost."""
    choose = random.Random(seed)
    answered = happened = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        create: list[str | Path] = [PROGRAM, "create", folder / "disk", "--blocks", str(BLOCKS)]
        options = ["--segment-blocks", "8", "--log-records", "16", "--snapshots", "2"]
        options += ["--mirrors", str(mirrors)] if mirrors else []
        options += ["--trees"] if trees else []
        subprocess.run([*create, *options], check=True)
        allowed = [{0} for _ in range(BLOCKS)]
        tags = range(1, 1 << 40)
        for kill in range(kills):
            sent, count = write(Server(folder), choose, allowed, tags)
            tags, answered = tags[sent:], answered + count
            read: list[str | Path] = [PROGRAM, "read", folder / "disk", "0", str(BLOCKS)]
            found = subprocess.run(read, check=True, capture_output=True).stdout
            for lba in range(BLOCKS):
                block = found[lba * BLOCK : (lba + 1) * BLOCK]
                (tag,) = struct.unpack_from(">Q", block)
                assert tag in allowed[lba], f"kill {kill}: block {lba} holds write {tag}"
                assert block == content(tag, lba), f"kill {kill}: block {lba} is torn"
                happened += len(allowed[lba]) > 1 and tag == max(allowed[lba])
                allowed[lba] = {tag}
    return answered, happened


def main() -> int:
    """Kill as often as the command line says."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    kills, mirrors = numbers + [500, 0][len(numbers) :]
    began = time.monotonic()
    answered, happened = killed(kills, mirrors=mirrors, trees="--trees" in sys.argv)
    print(
        f"{kills} kills, {answered} answered writes, {happened} blocks with a write in flight that "
        f"had happened: nothing lost ({time.monotonic() - began:.0f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
