"""Measure the proved disk over NBD beside the Python engine and qcow2 in qemu-nbd, in one run.

    python proofs/disk/served_speed.py [OPERATIONS] [ROUNDS]

The same fio jobs run on each server in turns, on files in memory, so nothing waits for a medium.
The table has medians: CPU time of the server per operation, and operations per second of wall-clock
time, which are noise where the machine does anything else. The device I/Os of the proved disk are
counted in one more run of random writes. Needs fio, nbdcopy and qemu-utils (`make serve-setup`).
"""

import json
import os
import socket as sockets
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from refmodel.bench.nbd_comparison import Run, Server, measure, qemu_nbd, tool
from refmodel.bench.workloads.workload import BLOCK, Access

PROGRAM = Path(__file__).parents[2] / "build" / "proved-disk"
BLOCKS = 16384
JOBS = {
    "4 KiB random writes": Access(0.0, 1, in_flight=16),
    "4 KiB random reads": Access(1.0, 1, in_flight=16),
    "8 KiB, half of them reads": Access(0.5, 2, in_flight=16),
}
PROVED, ENGINE, QCOW2 = "proved disk", "Python engine", "qcow2, in qemu-nbd"


def servers(folder: Path) -> dict[str, Server]:
    """Make a disk for each server in `folder`. Return how they are started."""
    socket = folder / "nbd"
    blocks = ["--blocks", str(BLOCKS)]
    python = [sys.executable, "-m", "refmodel"]
    subprocess.run([PROGRAM, "create", folder / "proved", *blocks], check=True)
    subprocess.run([*python, "create", folder / "engine", *blocks], check=True)
    tool("qemu-img", "create", "-q", "-f", "qcow2", folder / "image", BLOCKS * BLOCK)
    serve: list[str | Path] = ["--socket", socket, "--no-sync"]
    return {
        PROVED: Server([PROGRAM, "serve", folder / "proved", *serve], os.environ),
        ENGINE: Server([*python, "serve", folder / "engine", *serve], os.environ),
        QCOW2: qemu_nbd(folder / "image", socket),
    }


@contextmanager
def running(server: Server, socket: Path) -> Iterator[int]:
    """Start a server and yield its process id. End it."""
    process = subprocess.Popen(server.command, env=server.environment, stderr=subprocess.DEVNULL)
    try:
        while not socket.exists():
            time.sleep(0.01)
        yield process.pid
    finally:
        process.terminate()
        process.wait()
        socket.unlink(missing_ok=True)


def fill(server: Server, socket: Path, image: Path) -> int:
    """Copy the image to the disk. Return the memory that its server holds then, in bytes."""
    with running(server, socket) as process:
        tool("nbdcopy", image, f"nbd+unix:///?socket={socket}")
        status = Path(f"/proc/{process}/status").read_text()
        return 1024 * int(status.split("VmRSS:")[1].split()[0])


def device_ios(server: Server, socket: Path, disk: Path, operations: int) -> dict[str, float]:
    """Return the device I/Os of the proved disk per random write of a block, by kind."""
    job = {
        "name": "run",
        "ioengine": "nbd",
        "uri": f"nbd+unix:///?socket={socket}",
        "iodepth": 16,
        "bs": BLOCK,
        "rw": "randwrite",
        "norandommap": 1,
        "filesize": BLOCKS * BLOCK,
        "io_size": operations * BLOCK,
        "thread": 1,
    }
    with running(server, socket):
        tool("fio", *(f"--{key}={value}" for key, value in job.items()), folder=socket.parent)
        with sockets.socket(sockets.AF_UNIX) as control:
            control.connect(str(disk / "control"))
            control.sendall(b'{"op":"stats"}\n')
            counters: dict[str, int] = json.loads(control.makefile().readline())["counters"]
    return {name: count / operations for name, count in counters.items()}


def stored(path: Path) -> int:
    """Return the bytes that the files below `path` take."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(512 * file.stat().st_blocks for file in files)


def main() -> int:
    """Print the table."""
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        socket = folder / "nbd"
        image = folder / "random"
        image.write_bytes(os.urandom(BLOCKS * BLOCK))
        found: dict[tuple[str, str], list[Run]] = defaultdict(list)
        held, started = {}, servers(folder)
        for server, how in started.items():
            held[server] = fill(how, socket, image)
        for number in range(rounds):
            for job, access in JOBS.items():
                for server, how in started.items():
                    run = measure(how, socket, BLOCKS, access, operations, number)
                    found[job, server].append(run)
        counted = device_ios(started[PROVED], socket, folder / "proved", operations)
        places = {PROVED: folder / "proved", ENGINE: folder / "engine", QCOW2: folder / "image"}
        sizes = {server: stored(path) for server, path in places.items()}
    print(f"{operations} operations, 16 in flight, {BLOCKS} blocks; median of {rounds} rounds")
    print(f"  {'':<26} {'server':<20} {'CPU us per op':>14} {'to qcow2':>9} {'ops per s':>10}")
    for (job, server), runs in found.items():
        processor = median(run.processor for run in runs)
        peer = median(run.processor for run in found[job, QCOW2])
        iops = median(run.iops for run in runs)
        print(
            f"  {job:<26} {server:<20} {1e6 * processor:>14.1f} {processor / peer:>9.2f} "
            f"{iops:>10,.0f}"
        )
    ios = ", ".join(f"{count:.2f} {name}" for name, count in counted.items())
    print(f"  4 KiB random writes, device I/Os of the proved disk per write: {ios}")
    for server, size in sizes.items():
        print(
            f"  {server:<20} {size / (BLOCKS * BLOCK):.2f} bytes stored per byte of the disk, "
            f"{held[server] / BLOCKS:,.0f} bytes of memory per block"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
