"""Workloads: how fast the engine is in process, next to peers in the same run, and what an operation costs in device I/Os.

Deterministic by seed. Seconds are noise on a shared machine; the counts are not.
"""

import os
import random
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from refmodel.control import Listener, Turn
from refmodel.counters import families
from refmodel.engines import DEFAULT, Disk, create, open_disk, plan


class Profile(NamedTuple):
    what: str
    reads: float  # share of the operations


PROFILES = {
    "4k-random-write": Profile("4 KiB writes, uniformly random, on a disk that was written once", 0.0),
    "4k-random-read": Profile("4 KiB reads, uniformly random, on a disk that was written once", 1.0),
    "4k-random-50-50": Profile("4 KiB, half reads and half writes, uniformly random, on a disk that was written once", 0.5),
}
FILL = 64  # blocks of a write that fills the disk
BLOCK = 4096
Request = tuple[bool, int]  # whether it is a read, and the LBA


@dataclass(frozen=True)
class Result:
    profile: str
    engine: str  # and its layout
    depth: int  # operations in flight together
    snapshots: int
    operations: int
    seconds: float
    latencies: list[float]  # seconds, one for each `depth` operations
    ios: Counter[str]  # of devices, by cause
    bytes: Counter[str]
    user_bytes: int
    peers: dict[str, float]  # name -> seconds for the same operations

    @property
    def iops(self) -> float:
        return self.operations / self.seconds

    def percentile(self, percent: float) -> float:
        """Latency in microseconds that so many percent of the operations do not exceed."""
        found = sorted(self.latencies)
        return 1e6 * found[min(len(found) - 1, int(len(found) * percent / 100))]

    def as_dict(self) -> dict:
        """What `--json` writes."""
        return {
            "profile": self.profile,
            "engine": self.engine,
            "snapshots": self.snapshots,
            "depth": self.depth,
            "operations": self.operations,
            "seconds": self.seconds,
            "iops": self.iops,
            "latency_us": {"p50": self.percentile(50), "p99": self.percentile(99)},
            "foreground_device_ios": self.ios["foreground"],
            "device_ios_by_cause": dict(self.ios),
            "device_bytes_by_cause": dict(self.bytes),
            "user_bytes": self.user_bytes,
            "ratio_to_peers": {name: seconds / self.seconds for name, seconds in self.peers.items()},
        }


def run(
    profile: str,
    *,
    engine: str = DEFAULT,
    layout: str | None = None,
    blocks: int = 16384,
    operations: int = 20000,
    depth: int = 16,
    snapshots: int = 0,
    compare: bool = False,
    sync: bool = False,
    seed: int = 1,
    path: Path | None = None,
) -> Result:
    """Run a profile on a fresh disk, filled once; snapshots are taken evenly over the first half of the run.

    The disk is made at `path` and stays, or is a temporary one. `compare` runs the same operations on peers too.
    Raises KeyError for a profile that does not exist, NotADisk if the folder is in use.
    """
    choose = random.Random(seed)
    requests = [(choose.random() < PROFILES[profile].reads, choose.randrange(blocks)) for _ in range(operations)]
    batches = [requests[at : at + depth] for at in range(0, operations, depth)]
    block = os.urandom(BLOCK)
    with tempfile.TemporaryDirectory() as folder:
        path = path or Path(folder) / "disk"
        shape = plan(engine, blocks, **({"layout": layout} if layout else {}))
        create(path, shape, sync=sync)
        turn = Turn()
        with closing(open_disk(path, sync=sync)) as disk, closing(Listener(path, disk, turn)):
            for lba in range(0, blocks, FILL):
                with turn:
                    disk.write(lba, block * min(FILL, blocks - lba))
            ios, written = _by_cause(disk, "device.reads", "device.writes"), _by_cause(disk, "device.bytes_read", "device.bytes_written")
            latencies = list(_timed(disk, turn, batches, block, snapshots))
            ios = _by_cause(disk, "device.reads", "device.writes") - ios
            written = _by_cause(disk, "device.bytes_read", "device.bytes_written") - written
        peers = {name: peer(Path(folder), blocks, batches, block) for name, peer in PEERS.items()} if compare else {}
    user = operations * BLOCK
    name = ", ".join(filter(None, (engine, getattr(shape, "layout", None))))
    return Result(profile, name, depth, snapshots, operations, sum(latencies), latencies, ios, written, user, peers)


def _timed(
    disk: Disk, turn: Turn, batches: list[list[Request]], block: bytes, snapshots: int
) -> Iterator[float]:
    """Seconds that each batch took. Between two of them others may have their turn."""
    due = {len(batches) * number // (2 * snapshots) for number in range(snapshots)} if snapshots else set()
    for number, batch in enumerate(batches):
        with turn:
            if number in due:
                disk.snapshot(f"s{number}")
            started = time.perf_counter()
            writes = [(lba, block) for reads, lba in batch if not reads]
            if writes:
                disk.write_many(writes)
            for reads, lba in batch:
                if reads:
                    disk.read(lba)
            took = time.perf_counter() - started
        yield took


def _by_cause(disk: Disk, *names: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for family in families(disk):
        if family.name in names:
            for (*_, cause), count in family.samples(disk):
                found[cause] += count
    return found


# Peers: the same operations, in the same process, on the same medium, without waiting for it. Seconds.


def _file(folder: Path, blocks: int, batches: list[list[Request]], block: bytes) -> float:
    """A file, overwritten in place: what any engine that keeps data in one file cannot beat."""
    file = os.open(folder / "bare", os.O_RDWR | os.O_CREAT)
    try:
        for lba in range(blocks):
            os.pwrite(file, block, lba * BLOCK)
        started = time.perf_counter()
        for batch in batches:
            for reads, lba in batch:
                if reads:
                    os.pread(file, BLOCK, lba * BLOCK)
                else:
                    os.pwrite(file, block, lba * BLOCK)
        return time.perf_counter() - started
    finally:
        os.close(file)


def _sqlite(folder: Path, blocks: int, batches: list[list[Request]], block: bytes) -> float:
    """SQLite in WAL mode, a row a block, a transaction for the writes in flight together."""
    with closing(sqlite3.connect(folder / "peer.db", isolation_level=None)) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = OFF")
        base.execute("CREATE TABLE disk (lba INTEGER PRIMARY KEY, data BLOB)")
        base.execute("BEGIN")
        base.executemany("INSERT INTO disk VALUES (?, ?)", ((lba, block) for lba in range(blocks)))
        base.execute("COMMIT")
        started = time.perf_counter()
        for batch in batches:
            base.execute("BEGIN")
            base.executemany("UPDATE disk SET data = ? WHERE lba = ?", [(block, lba) for reads, lba in batch if not reads])
            base.execute("COMMIT")
            for reads, lba in batch:
                if reads:
                    base.execute("SELECT data FROM disk WHERE lba = ?", (lba,)).fetchone()
        return time.perf_counter() - started


PEERS: dict[str, Callable[[Path, int, list[list[Request]], bytes], float]] = {
    "a file in place": _file,
    "SQLite, a row a block": _sqlite,
}


def describe(result: Result) -> str:
    """A table for a person."""
    snapshots = f", {result.snapshots} snapshots" if result.snapshots else ""
    lines = [
        f"{result.profile}: {PROFILES[result.profile].what}",
        f"  {result.engine}, {result.depth} in flight{snapshots}: {result.operations} operations in {result.seconds:.2f} s,"
        f" {result.iops:,.0f} a second; latency {result.percentile(50):.0f} us, 99 % within {result.percentile(99):.0f} us",
    ]
    for name, seconds in result.peers.items():
        lines.append(f"  {seconds / result.seconds:.2f} times the rate of {name} in the same run")
    for cause, count in sorted(result.ios.items()):
        moved = result.bytes[cause] / result.user_bytes
        lines.append(f"  {cause:<12} {count:>9,} device I/Os, {count / result.operations:.3f} an operation; {moved:.3f} bytes a user byte")
    return "\n".join(lines)
