"""Calls of functions by single writes to a disk that was aged as the profile `scale` does it.

    PYTHONPATH=.:tests python -P -m support.write_calls 1048576

prints how they spread, for a number of blocks.
"""

import argparse
import random
import tempfile
from functools import partial
from pathlib import Path

from refmodel.bench.scale.dataless import DATA
from refmodel.bench.scale.table import Bench
from refmodel.core.errors import BadRequest
from refmodel.log_structured.geometry import plan, with_reserve
from support.arguments import at_least
from support.calls import SEGMENT, calls


def of_writes(blocks: int, count: int = 20_000) -> list[int]:
    """Return the calls of each of so many random writes to an aged disk, the fewest first."""
    segments = with_reserve((blocks + blocks // 8) // SEGMENT + 1)
    choose, shm = random.Random(7), Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        bench = Bench(Path(folder) / "disk", plan(blocks, segments=segments), None)
        bench.age(0, cleaned=True)
        disk = bench.disk
        found = [
            sum(calls(partial(disk.write, choose.randrange(blocks), DATA))) for _ in range(count)
        ]
        disk.close()
    return sorted(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count calls of functions by single writes.")
    parser.add_argument("blocks", type=at_least(1), help="the size of the disk")
    blocks = parser.parse_args().blocks
    try:
        found = of_writes(blocks)
    except BadRequest as refused:
        parser.error(f"a disk of {blocks} blocks: {refused}")
    some = [found[len(found) * share // 1000] for share in (500, 990, 999)]
    print("| calls per write: mean | p50 | p99 | p99.9 | most |")
    print("|--:|--:|--:|--:|--:|")
    print(f"| {sum(found) / len(found):.0f} | {' | '.join(map(str, some))} | {found[-1]} |")
