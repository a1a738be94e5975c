"""The bench over NBD: the same fio job on three servers, in turns.

The servers are the engine, qcow2 in qemu-nbd, and memory in the engine's server. IOPS by wall-clock
time and latencies are what clients see; they are noise if the machine does anything else. CPU time
per operation is what the server itself needs. The servers take turns, and the median of five rounds
counts.

The loop is closed: 16 requests are in flight, and the next one follows an answer. So a stall delays
16 requests, and not all that an open stream of clients would have sent meanwhile (coordinated
omission). Latencies are comparable within a run, and say nothing about clients at a fixed rate.
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
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from refmodel.bench.workloads.fio_jobs import kind
from refmodel.bench.workloads.workload import BLOCK, Access
from refmodel.core.errors import NotADisk
from refmodel.engine.disk import closed_at_end
from refmodel.registry import DEFAULT, create, open_disk, plan

TOOLS = ("fio", "qemu-img", "qemu-nbd")
ACCESS = Access(0.5, 2, in_flight=16)
ENGINE, QCOW2, MEMORY = "the engine", "qcow2, in qemu-nbd", "memory, in the same server"
FILL = 64  # blocks per write that fills the disk
ROUNDS = 5
PERCENTILES = (50.0, 90.0, 99.0, 99.9)
TIMEOUT = 60.0  # seconds that a tool may take
Command = Sequence[str | Path]


class Run(NamedTuple):
    """fio's measurements of one server."""

    iops: float  # operations per second of wall-clock time
    processor: float  # CPU seconds of the server per operation
    bandwidth: float  # bytes per second of wall-clock time
    percentiles: tuple[float, ...]  # percentiles of the latency by wall-clock time, in seconds

    def as_dict(self) -> dict[str, object]:
        """Return the object that `--json` writes; names are fio's where it has them."""
        return {
            "iops": self.iops,
            "bw_bytes": self.bandwidth,
            "clat_ns": {
                "percentile": {
                    f"{percent:.6f}": round(1e9 * seconds)
                    for percent, seconds in zip(PERCENTILES, self.percentiles, strict=True)
                }
            },
            "server_cpu_ns_per_io": round(1e9 * self.processor),
        }


class Server(NamedTuple):
    """A server and the command that starts it."""

    command: Command
    environment: Mapping[str, str]


def missing(tools: tuple[str, ...] = TOOLS) -> list[str]:
    """Return the tools that are not installed."""
    return [tool for tool in tools if shutil.which(tool) is None]


def compare(
    *, layout: str, blocks: int, operations: int, sync: bool = False, rounds: int = ROUNDS
) -> Iterator[tuple[str, Run]]:
    """Yield the name of each server and its result, round by round.

    With `sync` the files are where temporary files are, and fio flushes after each write, so each
    write waits for the medium, on every server. Raises NotADisk if a tool is not installed,
    RuntimeError with the message of a tool that failed.
    """
    if gone := missing():
        raise NotADisk(f"the bench over NBD needs {', '.join(gone)}: `make serve-setup`")
    memory = None if sync or not Path("/dev/shm").is_dir() else "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory) as name:
        folder = Path(name)
        socket = folder / "nbd"
        servers = {
            ENGINE: _engine(folder, socket, layout, blocks, sync),
            QCOW2: _qcow2(folder, socket, blocks),
            MEMORY: _memory(socket, blocks),
        }
        options = {"fsync": 1} if sync else {}
        for number in range(rounds):
            for name, server in servers.items():
                yield name, measure(server, socket, blocks, ACCESS, operations, number, options)


def describe(runs: list[tuple[str, Run]], layout: str, *, sync: bool = False) -> str:
    """Return a table of the medians, and of their ratios to qcow2."""
    medians = {name: _median([run for other, run in runs if other == name]) for name, _ in runs}
    peer = medians[QCOW2]
    waits = "a flush after each write" if sync else "no waiting for the medium"
    lines = [
        f"fio over NBD: {ACCESS}; {layout}",
        f"  {waits}; median of {len(runs) // len(medians)} rounds",
        f"  {'':<34} {'ops per':>12} {'ratio':>9} {'CPU us':>9} {'ratio':>9}",
        f"  {'server':<34} {'wall second':>12} {'to qcow2':>9} {'per op':>9} {'to qcow2':>9}",
    ]
    for name, run in medians.items():
        lines.append(
            f"  {name:<34} {run.iops:>12,.0f} {run.iops / peer.iops:>9.2f} "
            f"{1e6 * run.processor:>9.1f} {run.processor / peer.processor:>9.2f}"
        )
    lines.append(f"  {'':<34} {'wall':>12}" + " wall, us" * len(PERCENTILES))
    shown = "".join(f" {f'p{percent:g}':>8}" for percent in PERCENTILES)
    lines.append(f"  {'server':<34} {'MiB/s':>12}{shown}")
    for name, run in medians.items():
        figures = "".join(f" {1e6 * seconds:>8,.0f}" for seconds in run.percentiles)
        lines.append(f"  {name:<34} {run.bandwidth / 2**20:>12,.1f}{figures}")
    return "\n".join(lines)


def _median(runs: list[Run]) -> Run:
    return Run(
        median(run.iops for run in runs),
        median(run.processor for run in runs),
        median(run.bandwidth for run in runs),
        tuple(map(median, zip(*(run.percentiles for run in runs), strict=True))),
    )


def measure(
    server: Server,
    socket: Path,
    blocks: int,
    access: Access,
    operations: int,
    seed: int,
    options: Mapping[str, object] = MappingProxyType({}),
) -> Run:
    """Start a server, run fio on it with more options, and end it. Returns what was measured.

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
        "unified_rw_reporting": "mixed",
        "percentile_list": ":".join(map(str, PERCENTILES)),
        **options,
    }
    words = [f"--{key}={value}" for key, value in job.items()] + [
        f"--{line}" for line in kind(access)
    ]
    with _serving(server, socket) as process:
        before = _processor(process)
        tool("fio", *words, "--output-format=json", f"--output={output}", folder=socket.parent)
        processor = _processor(process) - before
    text = output.read_text()
    found = json.loads(text[text.index("{") :])["jobs"][0]["mixed"]
    latencies = found["clat_ns"]["percentile"].values()
    return Run(
        found["iops"],
        processor / found["total_ios"],
        found["bw_bytes"],
        tuple(nanoseconds / 1e9 for nanoseconds in latencies),
    )


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


def _engine(folder: Path, socket: Path, layout: str, blocks: int, sync: bool) -> Server:
    create(folder / "disk", plan(DEFAULT, blocks, layout=layout), sync=False)
    with closed_at_end(open_disk(folder / "disk", sync=False)) as disk:
        for lba in range(0, blocks, FILL):
            disk.write(lba, os.urandom(min(FILL, blocks - lba) * BLOCK))
    command = [sys.executable, "-m", "refmodel", "serve", str(folder / "disk")]
    unsynced = [] if sync else ["--no-sync"]
    return Server([*command, "--socket", str(socket), *unsynced], os.environ)


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
    """Return CPU seconds of a process: user and system time, also of threads that have ended."""
    return time.clock_gettime(~process << 3 | 2)  # as clock_getcpuclockid(3) computes it
