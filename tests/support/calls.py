"""Calls of functions per operation: a cost in Python that is the same on any machine.

    PYTHONPATH=.:tests python -P -m support.calls

prints one line per workload, on a disk of 64 MiB on RAID-6 that was filled. The first path may be
that of another revision. With a workload it counts nothing, so that another tool can:

    valgrind --tool=callgrind python -P -m support.calls "random writes" 32 60000

counts instructions. With 0 requests it only makes the disk.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from refmodel.log_structured.disk import LogStructuredDisk, create, open_disk
from refmodel.log_structured.geometry import plan, with_reserve
from support.arguments import at_least

BLOCKS, SEGMENT, FILL = 16384, 128, 64  # blocks
DATA = bytes(range(256)) * 16
# What is asked, how many requests are in flight together, and how many requests there are.
WORKLOADS = (
    ("random writes", 1, 10_000),
    ("random reads", 1, 10_000),
    ("random writes", 32, 10_000),
    ("random writes", 32, 60_000),
    ("sequential writes", 32, 20_000),
    ("random reads", 32, 30_000),
)


def calls(work: Callable[[], object]) -> tuple[int, int]:
    """Return how many functions of Python some work calls, and how many built-in ones."""
    python = built_in = 0

    def count(frame: Any, event: str, function: Any) -> None:
        nonlocal python, built_in
        python += event == "call"  # also where a generator goes on
        built_in += event == "c_call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return python, built_in


def filled(folder: Path) -> LogStructuredDisk:
    """Return a new disk, every block of which was written."""
    segments = with_reserve(2 * BLOCKS // SEGMENT + 1)
    create(folder / "disk", plan(BLOCKS, segments=segments, layout="raid6-4+2"), sync=False)
    disk = open_disk(folder / "disk", sync=False)
    for lba in range(0, BLOCKS, FILL):
        disk.write(lba, FILL * DATA)
    disk.settle()
    disk.checkpoint()
    return disk


def requests(
    disk: LogStructuredDisk, what: str, together: int, count: int
) -> Iterator[Callable[[], object]]:
    """Yield the requests of a workload, those that are in flight together as one."""
    choose = random.Random(7)
    for first in range(0, count, together):
        lbas = [
            (first + at) % BLOCKS if what.startswith("sequential") else choose.randrange(BLOCKS)
            for at in range(together)
        ]
        if what.endswith("reads"):
            yield partial(disk.read_many, [(lba, 1) for lba in lbas])
        elif together == 1:
            yield partial(disk.write, lbas[0], DATA)
        else:
            yield partial(disk.write_many, [(lba, DATA) for lba in lbas])


def workload(what: str, together: int, count: int) -> Iterator[Callable[[], object]]:
    """Yield the requests of a workload to a new disk that was filled."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        disk = filled(Path(folder))
        yield from requests(disk, what, together, count)
        disk.abandon()


def measure(what: str, together: int, count: int) -> tuple[float, float]:
    """Return the calls per request of a workload: of Python's functions, and of built-in ones."""
    python, built_in = map(sum, zip(*map(calls, workload(what, together, count)), strict=True))
    return python / count, built_in / count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count calls of functions per request.")
    asked = parser.add_argument_group("only send the requests of one workload, and count nothing")
    whats = list(dict.fromkeys(what for what, _, _ in WORKLOADS))
    asked.add_argument("what", nargs="?", choices=whats)
    asked.add_argument("together", nargs="?", type=at_least(1), help="requests in flight")
    asked.add_argument("count", nargs="?", type=at_least(0), help="number of requests")
    arguments = parser.parse_args()
    if arguments.what:
        if arguments.count is None:
            parser.error("a workload needs its requests in flight and their number")
        for request in workload(arguments.what, arguments.together, arguments.count):
            request()
        sys.exit()
    print("| requests | in flight | number | calls of Python functions | of built-in functions |")
    print("|---|--:|--:|--:|--:|")
    for what, together, count in WORKLOADS:
        python, built_in = measure(what, together, count)
        print(f"| {what} | {together} | {count:,} | {python:.1f} | {built_in:.1f} |")
