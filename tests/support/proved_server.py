"""Talking to a server of the proved disk: over NBD, and in the dialogue of the kit."""

import json
import os
import signal
import socket
import subprocess
from collections import Counter
from pathlib import Path

from support.serving.nbd_client import WRITE, Client, replies, request

BLOCK = 4096


def connected(folder: Path, name: str = "") -> tuple[Client, socket.socket]:
    """Return a client of an export, and its socket."""
    end = socket.socket(socket.AF_UNIX)
    end.connect(str(folder / "nbd.sock"))

    def exchange(sent: bytes) -> bytes:
        end.settimeout(10)  # a long request takes a busy machine its time, too
        end.sendall(sent)
        received = end.recv(1 << 20)
        end.settimeout(0.05)
        while True:
            try:
                part = end.recv(1 << 20)
            except TimeoutError:
                return received
            if not part:
                return received
            received += part

    return Client(exchange, name, structured=False), end


def asked(folder: Path, line: dict[str, object]) -> dict[str, object]:
    """Return the server's answer to a line of the kit's dialogue."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(folder / "control"))
        control.sendall(json.dumps(line).encode() + b"\n")
        answer: dict[str, object] = json.loads(control.makefile().readline())
        return answer


def counted(disk: Path) -> Counter[str]:
    """Return how many device I/Os the server has done."""
    counters = asked(disk, {"op": "stats"})["counters"]
    assert isinstance(counters, dict)
    return Counter(counters)


def answers_to(
    process: subprocess.Popen[bytes], end: socket.socket, messages: bytes, length: int
) -> bytes:
    """Send messages while the server stands still. Return its answers, of so many bytes."""
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    end.sendall(messages)
    os.kill(process.pid, signal.SIGCONT)
    end.settimeout(10)
    received = b""
    while len(received) < length:
        part = end.recv(1 << 16)
        assert part, "the server hung up"
        received += part
    return received


def sent_together(
    process: subprocess.Popen[bytes], end: socket.socket, writes: list[tuple[int, bytes]]
) -> list[int]:
    """Send writes of blocks at LBAs while the server stands still. Return their errors."""
    messages = b"".join(request(WRITE, lba * BLOCK, data=data) for lba, data in writes)
    answers = answers_to(process, end, messages, 16 * len(writes))
    return [reply.error for reply in replies(answers, {})]
