"""The cost of cleaning in bounded steps: its write amplification, and that of cleaning at once.

To clean in steps is to begin early: more segments are free or dead, so those in use are fuller, and
some chunks move that would have died before they had to. Two disks get the same writes. The cleaner
of one goes in steps, that of the other works only when a write needs the space. For uniform writes
the second cost is shown apart from the first: theory says what the measured share of live chunks
costs. Every figure is a count, the same on any machine.
"""

import random
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from refmodel.bench.cleaning_theory import greedy
from refmodel.log_structured.disk import create, open_disk
from refmodel.log_structured.geometry import Geometry, plan

SEGMENTS, SEGMENT_BLOCKS, BLOCK_BYTES = 256, 64, 512
LIVE = (0.5, 0.7, 0.8, 0.9)
SKEWS = (0.0, 0.99)  # exponents of Zipf's law; 0: all blocks alike
TURNS = 3  # writes per block until cleaning is steady, and as many again that are measured
IDLE = 6  # segments that are free or dead on average, beside a batch of the cleaner
SAMPLES = 200  # measurements of the live fraction


@dataclass(frozen=True)
class Amplification:
    """Chunks written to segments per chunk that users wrote, and how full the segments were."""

    written: float
    live: float  # live share of the segments in use
    waited: int  # cleanings that a write had to wait for
    nodes: float  # written per chunk that users wrote: a checkpoint frees what was cleaned


@dataclass(frozen=True)
class Row:
    """Both ways to clean one disk under one workload."""

    skew: float
    live: float  # live share of the segments in use, as asked for
    in_steps: Amplification
    at_once: Amplification

    @property
    def ratio(self) -> float:
        """The amplification of cleaning in steps, divided by that of cleaning at once."""
        return self.in_steps.written / self.at_once.written

    @property
    def ratio_with_nodes(self) -> float:
        """The same ratio of all that is written, where a chunk is as large as a node."""
        steps, once = self.in_steps, self.at_once
        return (steps.written + steps.nodes) / (once.written + once.nodes)

    @property
    def ratio_at_same_share(self) -> float | None:
        """The same if the segments in use were as full, by theory; None if it has no formula."""
        if self.skew:
            return None
        steps, once = (greedy(way.live, SEGMENT_BLOCKS) for way in (self.in_steps, self.at_once))
        return self.ratio * once / steps


def measure(live: float, skew: float, *, stepwise: bool) -> Amplification:
    """Fill a disk, overwrite it until cleaning is steady, then measure for as long again."""
    blocks = round(live * SEGMENT_BLOCKS * (SEGMENTS - _shape(1).cleaning_batch - IDLE))
    writes = TURNS * blocks
    data = random.Random(2).randbytes(BLOCK_BYTES)
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        create(Path(folder) / "disk", _shape(blocks), sync=False)
        disk = open_disk(Path(folder) / "disk", sync=False)
        if not stepwise:
            disk.cleaning.stepwise, disk.cleaning.spare = False, 0
        for lba in range(blocks):
            disk.write(lba, data)
        places = _places(blocks, skew)
        for _ in range(writes):
            disk.write(next(places), data)
        chunks, sealed = disk.state.chunks, disk.state.segments
        new, filled, forced = chunks.destaged, sealed.fillings, disk.cleaning.forced
        pages = disk.state.pages
        nodes, fractions = pages.written, []
        for number in range(writes):
            disk.write(next(places), data)
            if number % (writes // SAMPLES) == 0:
                fractions.append(sealed.live / (len(sealed.sealed) * SEGMENT_BLOCKS))
        found = Amplification(
            (sealed.fillings - filled) * SEGMENT_BLOCKS / (chunks.destaged - new),
            sum(fractions) / len(fractions),
            disk.cleaning.forced - forced,
            (pages.written - nodes) / (chunks.destaged - new),
        )
        disk.abandon()
    return found


def table() -> Iterator[Row]:
    """Yield a row for each workload and each live fraction."""
    for skew in SKEWS:
        for live in LIVE:
            in_steps, at_once = (measure(live, skew, stepwise=way) for way in (True, False))
            yield Row(skew, live, in_steps, at_once)


def describe(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        "write amplification: workload, live share of the segments in use |"
        " in steps: measured share, amplification, waits, nodes per chunk | at once: the same |"
        " ratio, and at the same share | ratio with nodes"
    )
    for row in rows:
        workload = f"zipf {row.skew:g}" if row.skew else "uniform"
        both = " | ".join(
            f"{way.live:.4f} {way.written:6.3f} {way.waited:5} {way.nodes:6.3f}"
            for way in (row.in_steps, row.at_once)
        )
        same = row.ratio_at_same_share
        ratios = f"{row.ratio:.3f}" + (f" {same:.3f}" if same is not None else "")
        yield f"{workload:<10} {row.live:.2f} | {both} | {ratios} | {row.ratio_with_nodes:.3f}"


def _shape(blocks: int) -> Geometry:
    return plan(blocks, segments=SEGMENTS, segment_blocks=SEGMENT_BLOCKS, block_bytes=BLOCK_BYTES)


def _places(blocks: int, skew: float) -> Iterator[int]:
    """Yield the blocks that are written, by chance, always the same."""
    choose = random.Random(1)
    by_rank = [*range(blocks)]
    choose.shuffle(by_rank)
    weights = [*accumulate((rank + 1) ** -skew for rank in range(blocks))]
    while True:
        yield from choose.choices(by_rank, cum_weights=weights, k=1000)
