"""qcow2 beside the engines of this project: the same rungs of snapshots, by qemu's own tools, with fio as the client over NBD.

Internal snapshots are within the image, each cluster with a reference count; an external one is a new image on top of what becomes its backing file, so
the disk is a chain. An image is 64 KiB clusters in memory, as qemu makes it by default, written once before the first rung.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from refmodel.fio import kind
from refmodel.profiles import BLOCK, Access

TOOLS = ("qemu-img", "qemu-nbd", "fio")
READ, WRITE = Access(1, 1, in_flight=16), Access(0, 1, in_flight=16)
PATIENCE = 60.0  # seconds


class Run(NamedTuple):
    iops: float  # by the wall
    processor: float  # seconds of the server's, an operation


class Rung(NamedTuple):
    """What fio found with so many snapshots."""

    snapshots: int
    write: Run  # right after the snapshot, or the deletion
    read: Run


def missing() -> list[str]:
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def ladder(how: str, *, blocks: int, writes: int, reads: int, most: int) -> Iterator[Rung]:
    """0 to `most` snapshots, `internal` or `external`, and then they are deleted one by one, the oldest first; at each rung 4 KiB random writes, then reads."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        image = {"internal": Internal, "external": External}[how](Path(name), blocks)
        for number, snapshots in enumerate([*range(most + 1), *reversed(range(most))]):
            if snapshots and number <= most:
                image.snapshot()
            elif number > most:
                image.delete_oldest()
            yield Rung(
                snapshots,
                *(_run(image, access, operations, number) for access, operations in ((WRITE, writes), (READ, reads))),
            )


class Internal:
    def __init__(self, folder: Path, blocks: int) -> None:
        self.folder, self.bytes = folder, blocks * BLOCK
        self.top = _filled(folder, blocks)
        self._names: list[str] = []
        self._taken = 0

    def snapshot(self) -> None:
        self._taken += 1
        self._names.append(f"s{self._taken}")
        _tool("qemu-img", "snapshot", "-c", self._names[-1], self.top)

    def delete_oldest(self) -> None:
        _tool("qemu-img", "snapshot", "-d", self._names.pop(0), self.top)


class External:
    def __init__(self, folder: Path, blocks: int) -> None:
        self.folder, self.bytes = folder, blocks * BLOCK
        self._chain = [_filled(folder, blocks)]  # the oldest first
        self._taken = 0

    @property
    def top(self) -> Path:
        return self._chain[-1]

    def snapshot(self) -> None:
        self._taken += 1
        overlay = self.folder / f"o{self._taken}"
        _tool("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", self.top, overlay)
        self._chain.append(overlay)

    def delete_oldest(self) -> None:
        """What the oldest overlay holds goes into the base, and the next overlay is put on that."""
        base, gone, *rest = self._chain
        _tool("qemu-img", "commit", "-q", gone)
        if rest:
            _tool("qemu-img", "rebase", "-q", "-u", "-F", "qcow2", "-b", base, rest[0])
        gone.unlink()
        self._chain = [base, *rest]


def _filled(folder: Path, blocks: int) -> Path:
    image, raw = folder / "base", folder / "raw"
    raw.write_bytes(os.urandom(blocks * BLOCK))
    _tool("qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, image)
    raw.unlink()
    return image


def _run(image: Internal | External, access: Access, operations: int, seed: int) -> Run:
    """Serve the image, run fio, and see what that cost the server. Raises RuntimeError with what a tool said."""
    socket, output = image.folder / "nbd", image.folder / "fio.json"
    server = subprocess.Popen(["qemu-nbd", "-t", "-f", "qcow2", "-k", socket, image.top], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while not socket.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"qemu-nbd does not serve {image.top.name}")
            time.sleep(0.005)
        job = {
            "name": "run", "ioengine": "nbd", "uri": f"nbd+unix:///?socket={socket}", "iodepth": access.in_flight, "bs": access.blocks * BLOCK,
            "norandommap": 1, "randseed": seed + 1, "filesize": image.bytes, "io_size": operations * access.blocks * BLOCK, "thread": 1,
        }  # fmt: skip
        words = [f"--{key}={value}" for key, value in job.items()] + [f"--{line}" for line in kind(access)]
        before = _processor(server.pid)
        _tool("fio", *words, "--output-format=json", f"--output={output}", folder=image.folder)
        processor = _processor(server.pid) - before
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE)
        socket.unlink(missing_ok=True)
    text = output.read_text()
    job = json.loads(text[text.index("{") :])["jobs"][0]
    done = job["read"]["total_ios"] + job["write"]["total_ios"]
    return Run(job["read"]["iops"] + job["write"]["iops"], processor / done)


def _processor(process: int) -> float:
    """Seconds of the processor that the threads of a process have used, its own and the system's for it, to the nanosecond."""
    return sum(int(stat.read_text().split()[0]) for stat in Path(f"/proc/{process}/task").glob("*/schedstat")) / 1e9


def _tool(*words: object, folder: Path | None = None) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=folder, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {(done.stderr or done.stdout).strip()}")
