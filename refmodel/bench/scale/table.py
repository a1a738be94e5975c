"""The costs of operations by the size of the disk: the profile `scale`.

A disk is filled, and aged by writes at random places until its cleaner is at work, so that segments
of all ages are partly dead. It gets its snapshots with writes in between. Then single operations
are measured, in CPU time and in counts: I/Os of devices, nodes that are made or read, steps. Writes
are measured twice: alone, and while a deleted snapshot is reclaimed and a device is rebuilt. Counts
are exact; seconds are of this machine. Devices store no chunks, so that a large disk needs only the
space of its maps.

Python's full collections of cycles wait meanwhile, as they do in a server that is not idle.
"""

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from time import process_time
from typing import NamedTuple

from refmodel.bench.scale.dataless import BLOCK, DATA, DatalessDevices
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.geometry import Geometry, plan, with_reserve
from refmodel.log_structured.maps.page_store import NODE_BYTES
from refmodel.runtime.collector import full_collections_in_idle_moments

SIZES = (1 << 14, 1 << 18, 1 << 20, 1 << 24)  # blocks: 64 MiB, 1, 4, 64 GiB
USUAL = SIZES[2]  # the largest that is run unless more is asked for
SNAPSHOTS = (0, 12, 200)  # numbers of snapshots that are held meanwhile
WRITES = 50_000  # number of measured writes, and as many again during repair
BETWEEN = 500  # writes before each snapshot
REPEATED = 9  # times that a snapshot is taken, reverted to and deleted
FILL = 512  # blocks of a write that fills the disk
AGED = 64  # blocks of a write that ages it
TURNS = 3  # times that every segment is filled before a disk counts as aged anyway
SPARE = 8  # a part in so many of what the disk holds is spare space, besides the reserve


class Cost(NamedTuple):
    """The cost of one operation; of several operations, the median."""

    milliseconds: float  # CPU time
    ios: int  # device I/Os
    nodes: int  # made, or read when the disk is opened


class Writes(NamedTuple):
    """The CPU time of single writes, in milliseconds."""

    p999: float
    longest: float


@dataclass(frozen=True)
class Row:
    """The costs of a disk with some number of blocks and snapshots."""

    blocks: int
    snapshots: int
    snapshot: Cost
    revert: Cost
    delete: Cost
    open_closed: Cost
    open_crashed: Cost
    writes: Writes
    repairing: Writes  # the same while a snapshot is reclaimed and a device is rebuilt
    reclaim_steps: int  # meanwhile
    rebuild_steps: int
    most_step: int  # changes merged or nodes written by one step of a checkpoint
    node_bytes: float  # written per byte that a user wrote
    misses: float  # nodes read per write
    memory: float  # bytes of nodes in memory per block, at the end


class Bench:
    """A disk that is measured."""

    def __init__(self, folder: Path, geometry: Geometry, memory: int | None) -> None:
        self._folder = folder
        self._geometry = geometry
        self._memory = memory
        self._choose = random.Random(1)
        LogStructuredDisk.create(folder, geometry, sync=False)
        self.disk = self._opened()

    def age(self, snapshots: int, *, cleaned: bool) -> None:
        """Fill the disk, write at random places, take snapshots, and finish what is left to do.

        If it is to be `cleaned`, it is written until its cleaner is at work, or until every segment
        was filled several times: with space for many snapshots, segments die by themselves.
        """
        blocks, segments = self._geometry.blocks, self._geometry.segments
        for lba in range(0, blocks, FILL):
            self.disk.write(lba, DATA * min(FILL, blocks - lba))
        self.write(BETWEEN)
        cleaning = self.disk.cleaning
        times = TURNS * segments * self._geometry.segment_blocks // AGED if cleaned else 0
        for _ in range(times):
            if cleaning.steps or cleaning.forced:
                break
            self.disk.write_many([(self._choose.randrange(blocks), DATA) for _ in range(AGED)])
        for number in range(snapshots):
            self.disk.snapshot(f"held{number}")
            self.write(BETWEEN // 2)
        self.disk.settle()
        self.disk.checkpoint()

    def write(self, count: int) -> list[float]:
        """Write single blocks at random places. Returns the CPU time of each, in seconds."""
        disk, blocks, times = self.disk, self._geometry.blocks, []
        for _ in range(count):
            lba, started = self._choose.randrange(blocks), process_time()
            disk.write(lba, DATA)
            times.append(process_time() - started)
        return times

    def write_during_repair(self, count: int) -> list[float]:
        """Do the same while a deleted snapshot is reclaimed and a device is rebuilt.

        A device that was rebuilt is replaced again. Each snapshot is deleted after some writes.
        """
        disk, times = self.disk, list[float]()
        for number in range(-(-count // BETWEEN)):
            if not disk.resync.progress():
                disk.fail(1, "degraded")
                disk.replace(1)
            disk.snapshot(f"passing{number}")
            times += self.write(min(BETWEEN, count - len(times)))
            disk.delete(f"passing{number}")
        return times

    def cost(self, operation: Callable[[], None]) -> Cost:
        """Do an operation once, and return what it cost."""
        pages, ios, started = self.disk.state.pages, self._ios(), process_time()
        created = pages.created
        operation()
        spent = process_time() - started
        return Cost(1000 * spent, self._ios() - ios, pages.created - created)

    def reopen(self, *, cleanly: bool) -> Cost:
        """Close the disk, or let its process crash, and return what it costs to open it again."""
        if cleanly:
            self.disk.checkpoint()
            self.disk.close()
        else:
            self.disk.abandon()
        started = process_time()
        self.disk = self._opened()
        spent = process_time() - started
        return Cost(1000 * spent, self._ios(), self.disk.state.pages.loaded)

    def bytes_of(self, cause: str) -> int:
        """Return how many bytes were written to all devices under a cause."""
        meters = self.disk.meters.values()
        return sum(meter.of("bytes_written").get(cause, 0) for meter in meters)

    def _ios(self) -> int:
        return self.disk.state.performance.ios + self.disk.state.capacity.ios

    def _opened(self) -> LogStructuredDisk:
        devices = DatalessDevices(self._geometry.capacity_base)
        return LogStructuredDisk.open(self._folder, sync=False, power=devices, memory=self._memory)


def measure(
    blocks: int,
    snapshots: int,
    *,
    writes: int = WRITES,
    memory: int | None = None,
    cleaned: bool = True,
) -> Row:
    """Measure a disk of `blocks` blocks while it holds `snapshots` snapshots.

    If it is to be `cleaned`, its cleaner is at work meanwhile.
    """
    held = blocks + (snapshots + REPEATED) * BETWEEN + min(writes, blocks)
    spare = held // SPARE if cleaned else held // 2
    segments = with_reserve((held + spare) // 128 + 1)
    shm = Path("/dev/shm")
    with (
        full_collections_in_idle_moments(),
        tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder,
    ):
        bench = Bench(Path(folder) / "disk", plan(blocks, segments=segments), memory)
        bench.age(snapshots, cleaned=cleaned)
        pages = bench.disk.state.pages
        loaded, written = pages.loaded, bench.bytes_of("checkpoint")
        bench.disk.checkpoints.most_done = 0
        alone = bench.write(writes)
        bench.disk.checkpoint()
        loaded = pages.loaded - loaded
        written = bench.bytes_of("checkpoint") - written
        steps = bench.disk.checkpoints.most_done
        mirrors = len(bench.disk.state.performance.components)
        costs: dict[str, list[Cost]] = {"snapshot": [], "revert": [], "delete": []}
        for number in range(REPEATED):
            bench.write(BETWEEN)
            for kind, found in costs.items():
                found.append(bench.cost(partial(getattr(bench.disk, kind), f"measured{number}")))
        reclaimer, resync = bench.disk.state.reclaimer, bench.disk.resync
        reclaimed, rebuilt = reclaimer.steps, resync.steps
        repairing = bench.write_during_repair(writes)
        reclaimed, rebuilt = reclaimer.steps - reclaimed, resync.steps - rebuilt
        in_memory = len(pages.nodes) * NODE_BYTES
        bench.disk.settle()
        closed = bench.reopen(cleanly=True)
        bench.write(BETWEEN)
        crashed = bench.reopen(cleanly=False)
        bench.disk.close()
    return Row(
        blocks=blocks,
        snapshots=snapshots,
        **{name: sorted(found)[len(found) // 2] for name, found in costs.items()},
        open_closed=closed,
        open_crashed=crashed,
        writes=_of(alone),
        repairing=_of(repairing),
        reclaim_steps=reclaimed,
        rebuild_steps=rebuilt,
        most_step=steps,
        node_bytes=written / mirrors / (writes * BLOCK),
        misses=loaded / writes,
        memory=in_memory / blocks,
    )


def _of(times: list[float]) -> Writes:
    ordered = sorted(times)
    return Writes(1000 * ordered[int(len(ordered) * 0.999)], 1000 * ordered[-1])


def table(
    largest: int = USUAL, *, writes: int = WRITES, memory: int | None = None
) -> Iterator[Row]:
    """Yield a row for each size up to `largest` blocks and each number of snapshots."""
    for snapshots in SNAPSHOTS:
        for blocks in SIZES:
            if blocks <= largest:
                yield measure(blocks, snapshots, writes=writes, memory=memory)


def describe(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of the table; behind a CPU time stands its ratio to the smallest disk's."""
    yield HEADER
    for _, same in groupby(rows, key=lambda row: row.snapshots):
        smallest = None
        for row in same:
            smallest = smallest or row
            yield _line(row, smallest)


HEADER = (
    "     disk held |  snapshot ms  I/Os nodes |    revert ms  I/Os |    delete ms  I/Os |"
    "  write p99.9  longest ms  step | in repair p99.9  longest ms  reclaim  rebuild |"
    " open closed ms  reads  crashed ms |"
    " nodes B/B  misses  memory B/block"
)


def _line(row: Row, smallest: Row) -> str:
    def versus(cost: str) -> str:
        mine, other = getattr(row, cost), getattr(smallest, cost)
        return (
            f"{mine.milliseconds:7.3f} {mine.milliseconds / other.milliseconds:4.1f}x {mine.ios:4}"
        )

    return (
        f"{row.blocks // 256:5} MiB {row.snapshots:4} |"
        f" {versus('snapshot')} {row.snapshot.nodes:5} | {versus('revert')} | {versus('delete')} |"
        f" {row.writes.p999:12.2f} {row.writes.longest:11.1f} {row.most_step:5} |"
        f" {row.repairing.p999:15.2f} {row.repairing.longest:11.1f}"
        f" {row.reclaim_steps:8} {row.rebuild_steps:8} |"
        f" {row.open_closed.milliseconds:14.1f} {row.open_closed.ios:6}"
        f" {row.open_crashed.milliseconds:11.1f} |"
        f" {row.node_bytes:9.3f} {row.misses:7.3f} {row.memory:15.1f}"
    )
