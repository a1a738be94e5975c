"""The cost of a write while the cleaner works, compared with a disk that needs no cleaning.

Two disks on RAID-6 get the same kind of writes, in turns: 4 KiB at random, 32 together. One has as
many segments as its live share asks for; its cleaner is in the steady state. The other has room for
all writes of the run. CPU time is noise if the machine does other work, but the ratio of two disks
that take turns is not. Bytes are counts.
"""

import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from refmodel.engine.disk import closed_at_end
from refmodel.log_structured.disk import LogStructuredDisk, create, open_disk
from refmodel.log_structured.geometry import BATCH, plan
from refmodel.observe.families.common import device_bytes_written

BLOCKS = 16384  # 64 MiB
BLOCK_BYTES, SEGMENT_BLOCKS = 4096, 128
DEPTH = 32  # writes together
LIVE = (0.5, 0.7, 0.8, 0.9)
IDLE = 6  # segments that are free or dead on average, beside a batch of the cleaner
TURNS = 3  # writes per block until cleaning is steady
ROUNDS = 40  # each disk gets a tenth of its blocks in a round


class Cost(NamedTuple):
    """The cost of a write."""

    processor: float  # seconds of CPU time
    device_bytes: float  # written to all devices, per byte of the user


@dataclass(frozen=True)
class Row:
    """Both disks, at one live share."""

    live: float  # share of the segments in use that is live, as asked for
    snapshots: int  # held, each with what was overwritten since
    before: Cost
    steady: Cost

    @property
    def ratio(self) -> float:
        """CPU time of a write in the steady state, to that where nothing is cleaned."""
        return self.steady.processor / self.before.processor


def measure(live: float, snapshots: int, *, blocks: int = BLOCKS, rounds: int = ROUNDS) -> Row:
    """Measure both disks in turns, once the cleaner of one is in the steady state."""
    choose = random.Random(1)
    # The last snapshot comes to hold every block, each one before it a tenth of them.
    held = blocks + blocks // 10 * (snapshots - 1) if snapshots else 0
    in_use = round((blocks + held) / live / SEGMENT_BLOCKS)
    tight = in_use + in_use // BATCH + IDLE
    roomy = tight + (1 + rounds // 10) * blocks // SEGMENT_BLOCKS
    shm = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder,
        closed_at_end(_disk(Path(folder) / "roomy", blocks, roomy)) as before,
        closed_at_end(_disk(Path(folder) / "tight", blocks, tight)) as steady,
    ):
        for disk in (before, steady):
            for number in range(snapshots):
                disk.snapshot(f"s{number}")
                _write(disk, choose, range(blocks // 10))
        for _ in range(TURNS):
            _write(steady, choose, [choose.randrange(blocks) for _ in range(blocks)])
        costs: dict[int, list[Cost]] = {id(before): [], id(steady): []}
        for _ in range(rounds):
            for disk in (before, steady):
                lbas = [choose.randrange(blocks) for _ in range(blocks // 10)]
                costs[id(disk)].append(_write(disk, choose, lbas))
        return Row(live, snapshots, _median(costs[id(before)]), _median(costs[id(steady)]))


def table() -> Iterator[Row]:
    """Yield a row for each live share, without a snapshot and with three."""
    for snapshots in (0, 3):
        for live in LIVE:
            yield measure(live, snapshots)


def describe(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "4 KiB random writes, 32 together, RAID-6, 64 MiB: CPU us and device bytes per write"
    yield "live  snapshots | no cleaning: CPU us, bytes per byte | steady state | ratio of CPU time"
    for row in rows:
        both = " | ".join(
            f"{1e6 * cost.processor:6.1f} {cost.device_bytes:6.2f}"
            for cost in (row.before, row.steady)
        )
        yield f"{row.live:.2f}  {row.snapshots:9} | {both} | {row.ratio:.2f}"


def _disk(path: Path, blocks: int, segments: int) -> LogStructuredDisk:
    """Return a new disk in which every block is written."""
    shape = plan(blocks, layout="raid6-4+2", segments=segments, segment_blocks=SEGMENT_BLOCKS)
    create(path, shape, sync=False)
    disk = open_disk(path, sync=False)
    for lba in range(0, blocks, SEGMENT_BLOCKS):
        disk.write(lba, os.urandom(min(SEGMENT_BLOCKS, blocks - lba) * BLOCK_BYTES))
    return disk


def _write(disk: LogStructuredDisk, choose: random.Random, lbas: Iterable[int]) -> Cost:
    """Write these blocks, and return what it cost."""
    data = choose.randbytes(BLOCK_BYTES)
    writes = [(lba, data) for lba in lbas]
    written, start = device_bytes_written(disk), time.process_time()
    for at in range(0, len(writes), DEPTH):
        disk.write_many(writes[at : at + DEPTH])
    processor = time.process_time() - start
    bytes_written = device_bytes_written(disk) - written
    return Cost(processor / len(writes), bytes_written / (len(writes) * BLOCK_BYTES))


def _median(costs: list[Cost]) -> Cost:
    """Return the median of CPU time, and the mean of what was written."""
    return Cost(
        median(cost.processor for cost in costs),
        sum(cost.device_bytes for cost in costs) / len(costs),
    )
