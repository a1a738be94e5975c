"""Calls of functions by snapshot, revert and delete on a disk that was aged as the profile `scale`
does it.

    PYTHONPATH=.:tests python -P -m support.snapshot_calls 16384 16777216

prints them for numbers of blocks, with 0, 12 and 200 snapshots held.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path
from statistics import median_low

from refmodel.bench.scale.table import BETWEEN, REPEATED, SNAPSHOTS, SPARE, Bench
from refmodel.core.errors import BadRequest
from refmodel.log_structured.geometry import plan, with_reserve
from support.arguments import at_least
from support.calls import SEGMENT, calls

OPERATIONS = ("snapshot", "revert", "delete")


def of_snapshots(blocks: int, held: int) -> dict[str, int]:
    """Return the calls of each operation, of Python functions and of built-in ones together: the
    median of several, each with 500 random writes before."""
    segments = with_reserve((blocks + held * BETWEEN) * (SPARE + 1) // SPARE // SEGMENT + 1)
    shm = Path("/dev/shm")
    found: dict[str, list[int]] = {name: [] for name in OPERATIONS}
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        bench = Bench(Path(folder) / "disk", plan(blocks, segments=segments), None)
        bench.age(held, cleaned=True)
        for number in range(REPEATED):
            bench.write(BETWEEN)
            for name, counts in found.items():
                counts.append(sum(calls(partial(getattr(bench.disk, name), f"counted{number}"))))
        bench.disk.close()
    return {name: median_low(counts) for name, counts in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count calls of functions by snapshots.")
    parser.add_argument("blocks", type=at_least(1), nargs="+", help="the size of a disk")
    sizes = parser.parse_args().blocks
    print(f"| blocks | held | {' | '.join(OPERATIONS)} |")
    print("|--:|--:|--:|--:|--:|")
    for held in SNAPSHOTS:
        for blocks in sizes:
            try:
                counts = of_snapshots(blocks, held)
            except BadRequest as refused:
                parser.error(f"a disk of {blocks} blocks: {refused}")
            print(f"| {blocks:,} | {held} | {' | '.join(map(str, counts.values()))} |", flush=True)
