"""Write amplification by cleaning, measured and compared with theory.

Write amplification (WA) is the number of chunk slots written to the capacity leg per chunk that
users wrote. Theory is for uniformly random writes, at a live fraction rho of the segments in use,
with b blocks per segment:

- greedy: P. Desnoyers, "Analytic modeling of SSD write performance", 2012;
- FIFO, and greedy for large b: rho = (u - 1) / ln u, WA = 1 / (1 - u);
- hot and cold blocks, "ideal separation": each kind is in segments of its own, and the free slots
  are divided between them so that WA is least.
"""

import math
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from refmodel.log_structured.disk import create, open_disk
from refmodel.log_structured.geometry import Geometry, plan

SLOTS = 12288  # chunk slots of the capacity leg
SAMPLES = 200  # measurements of the live fraction


@dataclass(frozen=True)
class Workload:
    """Writes to hot and cold blocks."""

    name: str
    hot: float  # share of the blocks that are hot
    hits: float  # share of the writes that go to them


UNIFORM = Workload("uniform", 1, 1)
HOT_COLD = (Workload("80/20", 0.2, 0.8), Workload("95/5", 0.05, 0.95))


@dataclass(frozen=True)
class CleaningCost:
    """The measured write amplification of a victim policy, and what theory says."""

    workload: Workload
    policy: str
    blocks: int  # per segment
    live: float  # live fraction of the segments in use: the mean over time
    amplification: float
    theory: float  # amplification at that live fraction

    @property
    def ratio(self) -> float:
        """The measured amplification, divided by that of theory."""
        return self.amplification / self.theory


def measure(
    workload: Workload,
    policy: str,
    live: float,
    segment_blocks: int,
    *,
    slots: int = SLOTS,
    seed: int = 1,
) -> CleaningCost:
    """Fill a disk, overwrite it until cleaning is steady, then measure for as long again."""
    segments = slots // segment_blocks

    def shape(blocks: int) -> Geometry:
        return plan(
            blocks,
            segments=segments,
            segment_blocks=segment_blocks,
            block_bytes=512,
            cleaner=policy,
        )

    smallest = shape(1)
    # Segments that are free or dead, on average.
    idle = smallest.cleaning_batch + 6 if smallest.separates_streams else 1.5
    blocks = round(live * segment_blocks * (segments - idle))
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder) / "disk"
        create(path, shape(blocks), sync=False)
        disk = open_disk(path, sync=False)
        data = os.urandom(512)
        for lba in range(blocks):
            disk.write(lba, data)
        hot = round(workload.hot * blocks)
        writes = round(blocks * (4 if workload is UNIFORM else 8))
        chunks, table = disk.state.chunks, disk.state.segments
        for _ in range(writes):
            disk.write(_lba(choose, blocks, hot, workload.hits), data)
        new, filled = chunks.destaged, table.fillings
        fractions = []
        for number in range(writes):
            disk.write(_lba(choose, blocks, hot, workload.hits), data)
            if number % (writes // SAMPLES) == 0:
                fractions.append(table.live / (len(table.sealed) * segment_blocks))
        written = (table.fillings - filled) * segment_blocks / (chunks.destaged - new)
        disk.abandon()
    mean = sum(fractions) / len(fractions)
    theory = (
        bound(policy, mean, segment_blocks)
        if workload is UNIFORM
        else separated(workload, mean, segment_blocks)
    )
    return CleaningCost(workload, policy, segment_blocks, mean, written, theory)


def table(
    live: tuple[float, ...] = (0.5, 0.7, 0.8, 0.9), segment_blocks: tuple[int, ...] = (16, 64)
) -> Iterator[CleaningCost]:
    """Yield the rows of `refmodel bench --profile cleaning`."""
    for blocks in segment_blocks:
        for fraction in live:
            yield measure(UNIFORM, "greedy", fraction, blocks)
    for policy in ("fifo", "random"):
        yield measure(UNIFORM, policy, 0.8, 16)
    for workload in HOT_COLD:
        for policy in ("greedy", "cost-benefit"):
            yield measure(workload, policy, 0.8, 64, slots=2 * SLOTS)


HEADER = (
    f"{'':<8} {'':<13} {'blocks per':>10} {'live':>8} {'write':>14} "
    f"{'':>7} {'':<16} {'measured':>9}\n"
    f"{'workload':<8} {'policy':<13} {'segment':>10} {'fraction':>8} {'amplification':>14} "
    f"{'theory':>7} {'by':<16} {'to theory':>9}"
)


def describe(row: CleaningCost) -> str:
    """Return a row of the table under HEADER."""
    theory = "one write stream" if row.workload is UNIFORM else "ideal separation"
    return (
        f"{row.workload.name:<8} {row.policy:<13} {row.blocks:>10} {row.live:>8.4f} "
        f"{row.amplification:>14.3f} {row.theory:>7.3f} {theory:<16} {row.ratio:>9.3f}"
    )


# Theory.


def bound(policy: str, live: float, blocks: int) -> float:
    """Write amplification of a policy for uniformly random writes, by theory."""
    if policy == "greedy":
        return greedy(live, blocks)
    return fifo(live) if policy == "fifo" else 1 / (1 - live)


def fifo(live: float) -> float:
    """Write amplification of FIFO. The live fraction u of a victim solves live = (u - 1) / ln u."""
    u = _root(lambda u: (u - 1) / math.log(u) - live, 1e-12, 1 - 1e-12)
    return 1 / (1 - u)


def greedy(live: float, blocks: int) -> float:
    """Write amplification of greedy cleaning, by Desnoyers.

    WA = b / (b - X0 + 1), X0 = 1/2 - (b / alpha) W(-kappa e^-kappa), kappa = (1 + 1 / 2b) alpha,
    alpha = 1 / live, with b blocks per segment and Lambert's function W.
    """
    alpha = 1 / live
    kappa = (1 + 1 / (2 * blocks)) * alpha
    lambert = _root(lambda w: w * math.exp(w) + kappa * math.exp(-kappa), -1.0, 0.0)
    return blocks / (blocks - (0.5 - blocks / alpha * lambert) + 1)


def separated(workload: Workload, live: float, blocks: int) -> float:
    """Write amplification with hot and cold blocks in segments of their own (ideal separation)."""

    def cost(hot_slots: float) -> float:
        cold_slots = 1 / live - hot_slots
        return workload.hits * greedy(workload.hot / hot_slots, blocks) + (
            1 - workload.hits
        ) * greedy((1 - workload.hot) / cold_slots, blocks)

    spare = 1 / live - 1
    return min(cost(workload.hot + spare * part / 1000) for part in range(1, 1000))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a function that is negative at exactly one of two ends, by bisection."""
    negative = function(low) < 0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) < 0) == negative else (low, middle)
    return (low + high) / 2


def _lba(choose: random.Random, blocks: int, hot: int, hits: float) -> int:
    if choose.random() < hits:
        return choose.randrange(hot)
    return choose.randrange(hot, blocks)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
