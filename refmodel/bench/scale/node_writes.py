"""The bytes of tree nodes that are written per byte that a user writes, and what the trees allow.

A checkpoint writes each leaf that changed since the last one, once. Let c changes of a map fall on
its L leaves by chance, between two checkpoints that are n writes apart: then L (1 - e^(-c/L)) of
its leaves change. Of uniform writes, the logical map has n changes, and the middle map n w: a write
drops a chunk, and for w - 1 chunks that the cleaner moves an entry changes, where w is the write
amplification of cleaning. The middle map gets its new entries in order, so they add few leaves; so
do the places of chunks in new segments. A disk is filled, and aged by the workload that is measured
until that has written all spare space twice. Every figure is a count, the same on any machine.
"""

import math
import random
import tempfile
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from refmodel.bench.scale.dataless import BLOCK, DATA
from refmodel.bench.scale.table import AGED, FILL, SPARE, Bench
from refmodel.log_structured.geometry import plan, with_reserve
from refmodel.log_structured.maps.node import MapKind

SIZES = (1 << 14, 1 << 18)  # blocks: 64 MiB, 1 GiB
WRITES = 30_000  # single blocks that are measured
AGE = 2  # times the spare space that ageing writes
WORKLOADS = ("sequential", "zipf", "uniform")
SKEW = 0.99  # of zipf; its blocks are scattered over the disk


class Row(NamedTuple):
    """The nodes that one workload writes on one disk."""

    blocks: int
    workload: str
    between: float  # writes from one checkpoint to the next
    amplification: float  # chunks written to segments per chunk of a user
    node_bytes: float  # per byte of a user, on one mirror
    allowed: float | None  # the same by the formula above; None but for uniform writes

    @property
    def ratio(self) -> float | None:
        """What is written, divided by what the trees allow."""
        return None if self.allowed is None else self.node_bytes / self.allowed


def measure(blocks: int, workload: str, *, writes: int = WRITES) -> Row:
    """Measure one workload on a disk of `blocks` blocks, in single writes."""
    segments = with_reserve((blocks + blocks // SPARE) // 128 + 1)
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        bench = Bench(Path(folder) / "disk", plan(blocks, segments=segments), None)
        disk, state, places = bench.disk, bench.disk.state, _places(blocks, workload)
        for lba in range(0, blocks, FILL):
            disk.write(lba, DATA * min(FILL, blocks - lba))
        for _ in range(AGE * (segments * state.segments.units - blocks) // AGED):
            disk.write_many([(next(places), DATA) for _ in range(AGED)])
        disk.checkpoint()
        nodes, checkpoints = state.pages.written, state.checkpoint_number
        new, filled = state.chunks.destaged, state.segments.fillings
        for _ in range(writes):
            disk.write(next(places), DATA)
        disk.checkpoint()
        between = writes / (state.checkpoint_number - checkpoints)
        amplification = (
            (state.segments.fillings - filled)
            * state.segments.units
            / (state.chunks.destaged - new)
        )
        written = (state.pages.written - nodes) / writes
        leaves = state.pages.used
        disk.abandon()
    allowed = None
    if workload == "uniform":
        changes = {MapKind.LOGICAL: between, MapKind.MIDDLE: between * amplification}
        allowed = sum(touched(leaves[kind], many) for kind, many in changes.items()) / between
    return Row(blocks, workload, between, amplification, written, allowed)


def touched(leaves: int, changes: float) -> float:
    """Return how many of some leaves have one of some changes at least, which fall by chance."""
    return leaves * (1 - math.exp(-changes / leaves))


def table(largest: int = SIZES[-1], *, writes: int = WRITES) -> Iterator[Row]:
    """Yield a row for each size up to `largest` blocks, and each workload."""
    for blocks in SIZES:
        if blocks <= largest:
            for workload in WORKLOADS:
                yield measure(blocks, workload, writes=writes)


def describe(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        "bytes of nodes per byte of a user: size, workload | writes per checkpoint,"
        " write amplification | nodes B/B | allowed, ratio"
    )
    for row in rows:
        allowed = "" if row.allowed is None else f" {row.allowed:.3f} {row.ratio:.3f}"
        yield (
            f"{row.blocks * BLOCK >> 20:5} MiB {row.workload:<10} | {row.between:7,.0f}"
            f" {row.amplification:6.3f} | {row.node_bytes:.3f} |{allowed}"
        )


def _places(blocks: int, workload: str) -> Iterator[int]:
    """Yield the blocks that are written, always the same."""
    choose = random.Random(1)
    if workload == "sequential":
        while True:
            yield from range(blocks)
    if workload == "uniform":
        while True:
            yield choose.randrange(blocks)
    by_rank = [*range(blocks)]
    choose.shuffle(by_rank)
    weights = [*accumulate((rank + 1) ** -SKEW for rank in range(blocks))]
    while True:
        yield from choose.choices(by_rank, cum_weights=weights, k=1000)
