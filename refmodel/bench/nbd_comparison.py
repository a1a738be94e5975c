"""The bench over NBD: the same fio job on three servers, in turns.

The servers are the engine, qcow2 in qemu-nbd, and memory in the engine's server. IOPS by wall-clock
time are what clients see; they are noise if the machine does anything else. CPU time per operation
is what the server itself needs. The median of a few rounds counts.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from refmodel.bench.workloads.fio_jobs import kind
from refmodel.bench.workloads.workload import BLOCK, Access
from refmodel.core.errors import NotADisk
from refmodel.registry import DEFAULT, create, open_disk, plan

TOOLS = ("fio", "qemu-img", "qemu-nbd")
ACCESS = Access(0.5, 2, in_flight=16)
ENGINE, QCOW2, MEMORY = "the engine", "qcow2, in qemu-nbd", "memory, in the same server"
FILL = 64  # blocks per write that fills the disk
ROUNDS = 3
TIMEOUT = 60.0  # seconds that a tool may take
Command = Sequence[str | Path]


class Run(NamedTuple):
    """What fio measured of a server."""

    iops: float  # operations per second of wall-clock time
    processor: float  # CPU seconds of the server per operation


class Server(NamedTuple):
    """How a server is started."""

    command: Command
    environment: Mapping[str, str]


def missing(tools: tuple[str, ...] = TOOLS) -> list[str]:
    """Return the tools that are not installed."""
    return [tool for tool in tools if shutil.which(tool) is None]


def compare(
    *, layout: str, blocks: int, operations: int, rounds: int = ROUNDS
) -> Iterator[tuple[str, Run]]:
    """Yield the name of each server and its result, round by round.

    Raises NotADisk if a tool is not installed, RuntimeError with the message of a tool that failed.
    """
    if gone := missing():
        raise NotADisk(f"the bench over NBD needs {', '.join(gone)}: `make serve-setup`")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Path(name)
        socket = folder / "nbd"
        servers = {
            ENGINE: _engine(folder, socket, layout, blocks),
            QCOW2: _qcow2(folder, socket, blocks),
            MEMORY: _memory(socket, blocks),
        }
        for number in range(rounds):
            for name, server in servers.items():
                yield name, measure(server, socket, blocks, ACCESS, operations, number)


def describe(runs: list[tuple[str, Run]], layout: str) -> str:
    """Return a table of the medians, and of their ratios to qcow2."""
    medians = {name: _median([run for other, run in runs if other == name]) for name, _ in runs}
    peer = medians[QCOW2]
    lines = [
        f"fio over NBD: {ACCESS}; {layout}",
        f"  no waiting for the medium; median of {len(runs) // len(medians)} rounds",
        f"  {'':<34} {'ops per':>12} {'ratio':>9} {'CPU us':>9} {'ratio':>9}",
        f"  {'server':<34} {'wall second':>12} {'to qcow2':>9} {'per op':>9} {'to qcow2':>9}",
    ]
    for name, (iops, processor) in medians.items():
        lines.append(
            f"  {name:<34} {iops:>12,.0f} {iops / peer.iops:>9.2f} "
            f"{1e6 * processor:>9.1f} {processor / peer.processor:>9.2f}"
        )
    return "\n".join(lines)


def _median(runs: list[Run]) -> Run:
    return Run(median(run.iops for run in runs), median(run.processor for run in runs))


def measure(
    server: Server, socket: Path, blocks: int, access: Access, operations: int, seed: int
) -> Run:
    """Start a server, run fio on it, and end it. Returns what was measured.

    Raises RuntimeError with the message of a tool that failed.
    """
    output = socket.with_name("fio.json")
    job = {
        "name": "run",
        "ioengine": "nbd",
        "uri": f"nbd+unix:///?socket={socket}",
        "iodepth": access.in_flight,
        "bs": access.blocks * BLOCK,
        "norandommap": 1,
        "randseed": seed + 1,
        "filesize": blocks * BLOCK,
        "io_size": operations * access.blocks * BLOCK,
        "thread": 1,
    }
    words = [f"--{key}={value}" for key, value in job.items()] + [
        f"--{line}" for line in kind(access)
    ]
    with _serving(server, socket) as process:
        before = _processor(process)
        tool("fio", *words, "--output-format=json", f"--output={output}", folder=socket.parent)
        processor = _processor(process) - before
    text = output.read_text()
    found = json.loads(text[text.index("{") :])["jobs"][0]
    done = found["read"]["total_ios"] + found["write"]["total_ios"]
    return Run(found["read"]["iops"] + found["write"]["iops"], processor / done)


def tool(*words: object, folder: Path | None = None) -> None:
    """Run a program. Raises RuntimeError with its message if it fails."""
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, cwd=folder, timeout=TIMEOUT
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {(done.stderr or done.stdout).strip()}")


def qcow2(image: Path, blocks: int) -> None:
    """Make a qcow2 image that has random data in every block. Raises RuntimeError."""
    raw = image.with_suffix(".raw")
    raw.write_bytes(os.urandom(blocks * BLOCK))
    tool("qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, image)
    raw.unlink()


def qemu_nbd(image: Path, socket: Path) -> Server:
    """Return the server of a qcow2 image."""
    return Server(["qemu-nbd", "-t", "-f", "qcow2", "-k", socket, image], os.environ)


def _engine(folder: Path, socket: Path, layout: str, blocks: int) -> Server:
    create(folder / "disk", plan(DEFAULT, blocks, layout=layout), sync=False)
    with closing(open_disk(folder / "disk", sync=False)) as disk:
        for lba in range(0, blocks, FILL):
            disk.write(lba, os.urandom(min(FILL, blocks - lba) * BLOCK))
    command = [sys.executable, "-m", "refmodel", "serve", str(folder / "disk")]
    return Server([*command, "--socket", str(socket), "--no-sync"], os.environ)


def _qcow2(folder: Path, socket: Path, blocks: int) -> Server:
    qcow2(folder / "image", blocks)
    return qemu_nbd(folder / "image", socket)


def _memory(socket: Path, blocks: int) -> Server:
    module = "refmodel.bench.memory_disk"
    return Server([sys.executable, "-m", module, str(socket), str(blocks)], os.environ)


@contextmanager
def _serving(server: Server, socket: Path) -> Iterator[int]:
    """Start a server, yield its process id once it listens on the socket, and end it."""
    process = subprocess.Popen(
        server.command, env=server.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + TIMEOUT
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{server.command[0]} did not begin to serve")
            time.sleep(0.005)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)
        socket.unlink(missing_ok=True)


def _processor(process: int) -> float:
    """CPU seconds of a process: user and system time, also of threads that have ended."""
    return time.clock_gettime(~process << 3 | 2)  # as clock_getcpuclockid(3) computes it
