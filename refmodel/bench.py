"""Workloads: how fast the engine is in process, against the bare device writes that it cannot do without, and what an operation costs in device I/Os."""

import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from refmodel.counters import counters
from refmodel.disk import LogStructuredDisk, create, open_disk
from refmodel.geometry import plan

PROFILES = {
    "4k-random-write": "4 KiB writes, uniformly random, on a disk that was written once",
    "4k-random-read": "4 KiB reads, uniformly random, on a disk that was written once",
}


@dataclass(frozen=True)
class Result:
    profile: str
    operations: int
    seconds: float
    peer_seconds: float  # for the same number of bare pwrites or preads of as many bytes
    user_bytes: int
    deltas: dict[str, int]  # of the counters

    @property
    def per_second(self) -> float:
        return self.operations / self.seconds

    @property
    def ratio(self) -> float:
        """Of the engine's rate to the peer's."""
        return self.peer_seconds / self.seconds


def run(profile: str, *, blocks: int = 16384, operations: int = 20000, seed: int = 1, sync: bool = False) -> Result:
    """Run a profile on a fresh disk in a temporary folder, filled once."""
    with tempfile.TemporaryDirectory() as folder:
        create(Path(folder) / "disk", plan(blocks), sync=sync)
        disk = open_disk(Path(folder) / "disk", sync=sync)
        block = os.urandom(disk.geometry.block_bytes)
        for lba in range(0, blocks, 128):
            disk.write(lba, block * min(128, blocks - lba))
        choose = random.Random(seed)
        lbas = [choose.randrange(blocks) for _ in range(operations)]
        work = _writes if profile == "4k-random-write" else _reads
        before = counters(disk)
        seconds = _timed(lambda: work(disk, lbas, block))
        after = counters(disk)
        deltas = {name: after[name] - before.get(name, 0) for name in after}
        peer = _timed(lambda: _bare(Path(folder) / "bare", profile, disk, lbas, block))
        disk.close()
    return Result(profile, operations, seconds, peer, operations * len(block), deltas)


def _writes(disk: LogStructuredDisk, lbas: list[int], block: bytes) -> None:
    for lba in lbas:
        disk.write(lba, block)


def _reads(disk: LogStructuredDisk, lbas: list[int], block: bytes) -> None:
    for lba in lbas:
        disk.read(lba)


def _bare(path: Path, profile: str, disk: LogStructuredDisk, lbas: list[int], block: bytes) -> None:
    """A write to each device, or a read from one, without anything around it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.truncate(file, disk.geometry.blocks * len(block))
        for lba in lbas:
            if profile == "4k-random-read":
                os.pread(file, len(block), lba * len(block))
                continue
            for _ in range(disk.geometry.devices):
                os.pwrite(file, block, lba * len(block))
    finally:
        os.close(file)


def _timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def describe(result: Result) -> str:
    """A table for a person."""
    lines = [
        f"{result.profile}: {PROFILES[result.profile]}",
        f"  {result.operations} operations in {result.seconds:.2f} s: {result.per_second:,.0f} a second",
        f"  {result.ratio:.2f} times the rate of bare device I/O of the same size in the same run",
    ]
    for name, count in sorted(result.deltas.items()):
        if name.startswith("device.") and count:
            share = f"{count / result.user_bytes:.3f} a user byte" if "bytes" in name else f"{count / result.operations:.3f} an operation"
            lines.append(f"  {name:<48} {count:>14,}  {share}")
    return "\n".join(lines)
