"""The bench over NBD: the same fio job, in turns, against the engine in nbdkit, qcow2 in qemu-nbd, and memory in nbdkit's Python plugin.

IOPS by the wall are what clients see, and noise where the machine does anything else; the processor time of a server is what an operation costs it. The servers
take turns, a few rounds of them, and of each the median counts.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from refmodel.bench.fio_jobs import kind
from refmodel.bench.profiles import BLOCK, Access
from refmodel.core.errors import NotADisk
from refmodel.registry import DEFAULT, create, open_disk, plan
from refmodel.serving.nbdkit_launch import environment, nbdkit

TOOLS = ("nbdkit", "fio", "qemu-img", "qemu-nbd")
ACCESS = Access(0.5, 2, in_flight=16)
ENGINE, QCOW2, MEMORY = (
    "the engine, in nbdkit",
    "qcow2, in qemu-nbd",
    "memory, in nbdkit's Python plugin",
)
FILL = 64  # blocks of a write that fills the disk
ROUNDS = 3
PATIENCE = 60.0  # seconds that a tool may take
Command = list[str | Path]


class Run(NamedTuple):
    iops: float  # by the wall
    processor: float  # seconds of the server's, an operation


class Server(NamedTuple):
    command: Command
    environment: Mapping[str, str]


def missing(tools: tuple[str, ...] = TOOLS) -> list[str]:
    return [tool for tool in tools if shutil.which(tool) is None]


def compare(
    *, layout: str, blocks: int, operations: int, rounds: int = ROUNDS
) -> Iterator[tuple[str, Run]]:
    """Each server and what it did, round by round. Raises NotADisk without the tools, RuntimeError with what a tool said."""
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
    """A table for a person; ratios are to qcow2."""
    medians = {
        name: Run(*map(median, zip(*(run for other, run in runs if other == name))))
        for name, _ in runs
    }
    peer = medians[QCOW2]
    lines = [
        f"fio over NBD: {ACCESS}; {layout}, nobody waits for the medium; medians of {len(runs) // len(medians)} rounds",
        f"  {'server':<34} {'a second':>9} {'to qcow2':>9} {'server us':>10} {'to qcow2':>9}   by the wall; processor time of an operation",
    ]
    for name, (iops, processor) in medians.items():
        lines.append(
            f"  {name:<34} {iops:>9,.0f} {iops / peer.iops:>9.2f} {1e6 * processor:>10.1f} {processor / peer.processor:>9.2f}"
        )
    return "\n".join(lines)


def measure(
    server: Server, socket: Path, blocks: int, access: Access, operations: int, seed: int
) -> Run:
    """Start a server, run fio on it, and see what that cost the server. Raises RuntimeError with what a tool said."""
    output = socket.with_name("fio.json")
    job = {
        "name": "run", "ioengine": "nbd", "uri": f"nbd+unix:///?socket={socket}", "iodepth": access.in_flight, "bs": access.blocks * BLOCK,
        "norandommap": 1, "randseed": seed + 1, "filesize": blocks * BLOCK, "io_size": operations * access.blocks * BLOCK, "thread": 1,
    }  # fmt: skip
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
    """Run one. Raises RuntimeError with what it said."""
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, cwd=folder, timeout=PATIENCE
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {(done.stderr or done.stdout).strip()}")


def qcow2(image: Path, blocks: int) -> None:
    """An image with random data in every block."""
    raw = image.with_suffix(".raw")
    raw.write_bytes(os.urandom(blocks * BLOCK))
    tool("qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, image)
    raw.unlink()


def qemu_nbd(image: Path, socket: Path) -> Server:
    return Server(["qemu-nbd", "-t", "-f", "qcow2", "-k", socket, image], os.environ)


def _engine(folder: Path, socket: Path, layout: str, blocks: int) -> Server:
    create(folder / "disk", plan(DEFAULT, blocks, layout=layout), sync=False)
    with closing(open_disk(folder / "disk", sync=False)) as disk:
        for lba in range(0, blocks, FILL):
            disk.write(lba, os.urandom(min(FILL, blocks - lba) * BLOCK))
    return Server(
        [
            sys.executable,
            "-m",
            "refmodel",
            "serve",
            folder / "disk",
            "--socket",
            socket,
            "--no-sync",
        ],
        os.environ,
    )


def _qcow2(folder: Path, socket: Path, blocks: int) -> Server:
    qcow2(folder / "image", blocks)
    return qemu_nbd(folder / "image", socket)


def _memory(socket: Path, blocks: int) -> Server:
    return Server(
        nbdkit(socket, Path(__file__).with_name("nbdkit_memory.py"), f"bytes={blocks * BLOCK}"),
        environment(),
    )


@contextmanager
def _serving(server: Server, socket: Path) -> Iterator[int]:
    """The server's process, which listens on the socket."""
    process = subprocess.Popen(
        server.command, env=server.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{server.command[0]} does not serve")
            time.sleep(0.005)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        socket.unlink(missing_ok=True)


def _processor(process: int) -> float:
    """Seconds of the processor that a process has used, and the system for it, threads that have ended included."""
    return time.clock_gettime(~process << 3 | 2)  # the clock that clock_getcpuclockid(3) names
