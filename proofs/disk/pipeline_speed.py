"""Compare the server of the proved disk with its pipeline, without it, and with write-back (the
profile prefix), on a file that is flushed.

    python proofs/disk/pipeline_speed.py [ROUNDS] [FOLDER]

In turns: nbdcopy copies an image of 64 MiB, in requests of 256 KiB, 4 MiB and 32 MiB, and fio
writes 4,000 random blocks: 16 and 64 in flight, and 16 in flight with a flush after every 64
writes. Each job ends with a flush. The disk is in FOLDER, by default the one for temporary files;
its medium should take time to flush. The table has medians. Needs fio and nbdcopy
(`make serve-setup`).
"""

import json
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kill_server import BLOCK, PROGRAM, Server

BLOCKS, WRITES = 16384, 4000
COPIES, DEPTHS, FLUSHED = (256 << 10, 4 << 20, 32 << 20), (16, 64), 64
MODES = {
    "pipeline": [],
    "--no-pipeline": ["--no-pipeline"],
    "prefix": ["--profile", "prefix"],
}


class Spent(NamedTuple):
    """What a job took: seconds, flushes of the device, CPU seconds of the server."""

    seconds: float
    flushes: int
    processor: float


def copying(size: int, folder: Path) -> list[str | Path]:
    image = folder / "image"
    image.write_bytes(b"".join((i + 1).to_bytes(8, "little") * 512 for i in range(BLOCKS)))
    return ["nbdcopy", "--flush", f"--request-size={size}", image]


def writing(depth: int, flushed: int, _: Path) -> list[str | Path]:
    job = {"ioengine": "nbd", "iodepth": depth, "bs": BLOCK, "rw": "randwrite", "norandommap": 1}
    job |= {"filesize": BLOCKS * BLOCK, "io_size": WRITES * BLOCK, "thread": 1}
    job |= {"end_fsync": 1, "fsync": flushed}
    return ["fio", "--name=run", *(f"--{key}={value}" for key, value in job.items())]


def measured(folder: Path, command: list[str | Path], options: list[str]) -> Spent:
    """Run a client of a new disk in `folder`."""
    subprocess.run([PROGRAM, "create", folder / "disk", "--blocks", str(BLOCKS)], check=True)
    server = Server(folder, *options)
    uri = f"nbd+unix:///?socket={folder}/nbd.sock"
    target = f"--uri={uri}" if command[0] == "fio" else uri
    subprocess.run(["sync"], check=True)
    began = time.monotonic()
    subprocess.run([*command, target], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    seconds = time.monotonic() - began
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(folder / "disk" / "control"))
        control.sendall(b'{"op":"stats"}\n')
        counters: dict[str, int] = json.loads(control.makefile().readline())["counters"]
    status = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    server.process.terminate()
    server.process.wait()
    return Spent(seconds, counters["device_flushes"], (int(status[11]) + int(status[12])) / 100)


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    place = sys.argv[2] if len(sys.argv) > 2 else None
    found: dict[tuple[str, str], list[Spent]] = defaultdict(list)
    jobs: dict[str, Callable[[Path], list[str | Path]]] = {
        f"copy, requests of {size >> 10} KiB": partial(copying, size) for size in COPIES
    }
    jobs |= {f"random writes, {depth} in flight": partial(writing, depth, 0) for depth in DEPTHS}
    jobs[f"a flush after {FLUSHED} writes"] = partial(writing, DEPTHS[0], FLUSHED)
    for _ in range(rounds):
        for job, command in jobs.items():
            for mode, options in MODES.items():
                with TemporaryDirectory(dir=place) as name:
                    folder = Path(name)
                    found[job, mode].append(measured(folder, command(folder), options))
    print(f"medians of {rounds} rounds")
    for (job, mode), runs in found.items():
        count = BLOCKS if job.startswith("copy") else WRITES
        print(
            f"  {job:<28} {mode:<14} {count / median(run.seconds for run in runs):>8,.0f} blocks/s"
            f" {median(run.flushes for run in runs):>6,.0f} flushes"
            f" {1e6 * median(run.processor for run in runs) / count:>6.1f} us of CPU per block"
        )


if __name__ == "__main__":
    main()
