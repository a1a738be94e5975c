"""Measures what a snapshot costs: creating it, deleting it, reclaiming and holding its space.

The cost is measured by the size of the disk, and by the number of snapshots.
"""

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from experiments.chapter import Chapter, Figure, Settings
from experiments.figures.plots import colour, panels, svg
from refmodel.bench.clients import Stopwatch, Tally, tally
from refmodel.bench.workloads.workload import BLOCK
from refmodel.log_structured.disk import LogStructuredDisk, create, open_disk
from refmodel.log_structured.geometry import plan

MIB = 2**20 // BLOCK  # blocks
SIZES = (64 * MIB, 1024 * MIB, 16 * 1024 * MIB, 256 * 1024 * MIB, 1024 * 1024 * MIB)
SNAPSHOTS = (1, 12, 50, 100, 200)
FREED = (500, 1000, 2000, 4000, 8000)  # blocks
WRITES = 2000  # blocks on the disk, at random, before anything is measured
FANOUT = 16  # entries per node of the tree that reclaim is measured on
STRAIGHT = 0.05  # allowed distance from a straight line, as a share


class Cost(NamedTuple):
    """The foreground cost of one operation."""

    ios: int
    bytes: int
    microseconds: float

    @property
    def counts(self) -> tuple[int, int]:
        """The counts, which do not depend on the machine."""
        return self.ios, self.bytes


class Freed(NamedTuple):
    """The cost of freeing the space of a deleted snapshot."""

    blocks: int  # blocks that only the snapshot held
    steps: int  # steps of reclaim
    ios: int  # device I/Os of reclaim and of the checkpoint that follows


def snapshots(chapter: Chapter, settings: Settings) -> None:
    """Measure creation and the foreground of deletion, by disk size and number of snapshots."""
    settings.say("snapshots of disks from 64 MiB to 1 TiB, and up to 200 of them")
    by_size, by_count = [], []
    for blocks in SIZES:
        with _disk(blocks, settings.seed) as disk:
            by_size.append(_create_and_delete(disk, settings.seed, "s"))
    with _disk(SIZES[0], settings.seed, segments=4096) as disk:
        taken = 0
        for count in SNAPSHOTS:
            while taken < count - 1:
                disk.snapshot(f"held{taken}")
                taken += 1
                _scribble(disk, 16, settings.seed + taken)
            disk.checkpoint()
            by_count.append(_create_and_delete(disk, settings.seed, f"s{count}"))
    for number, what in enumerate(("Creating a snapshot", "The foreground part of deleting one")):
        for costs, range_ in (
            (by_size, "from 64 MiB to 1 TiB"),
            (by_count, "from 1 to 200 snapshots"),
        ):
            found = [cost[number] for cost in costs]
            chapter.judge(
                f"{what} is constant {range_}",
                f"{found[0].ios} device writes, {found[0].bytes} bytes in all, at every one of "
                f"{len(found)} points; CPU time in us: "
                f"{', '.join(f'{cost.microseconds:.0f}' for cost in found)}",
                len({cost.counts for cost in found}) == 1,
            )
    chapter.figures.append(_cost_figure(by_size, by_count))


def _create_and_delete(disk: LogStructuredDisk, seed: int, name: str) -> tuple[Cost, Cost]:
    """Create a snapshot, write, and delete it; five times. Return the least cost of each."""
    found = []
    for again in range(5):
        create_cost = _cost(disk, lambda: disk.snapshot(name))
        _scribble(disk, 64, seed + again)
        found.append((create_cost, _cost(disk, lambda: disk.delete(name))))
        disk.settle()
        disk.checkpoint()
    return min(cost[0] for cost in found), min(cost[1] for cost in found)


def _cost(disk: LogStructuredDisk, operation: Callable[[], None]) -> Cost:
    watch, before = Stopwatch(wall=False), tally(disk)
    started = watch.now()
    operation()
    took = watch.now() - started
    spent: Tally = tally(disk) - before
    return Cost(spent.ios["foreground"], spent.bytes["foreground"], 1e6 * took)


def reclaim(chapter: Chapter, settings: Settings) -> None:
    """Measure the work of reclaim by the number of blocks, and check that just those are freed."""
    settings.say("deleting snapshots that hold 500 to 8,000 blocks")
    found, exact = [], True
    for blocks in FREED:
        with _disk(64 * MIB, settings.seed, fill=True, fanout=FANOUT) as disk:
            live = disk.state.space_usage.live
            disk.snapshot("s")
            disk.write_many([(lba, bytes(BLOCK)) for lba in range(blocks)])
            disk.checkpoint()
            held = disk.state.space_usage.live
            disk.delete("s")
            before, steps = tally(disk), 0
            while disk.background():
                steps += 1
            spent = tally(disk) - before
            exact = exact and (held - live, held - disk.state.space_usage.live) == (blocks, blocks)
            found.append(Freed(blocks, steps, spent.ios.total()))
    chapter.judge(
        "Deletion frees exactly what only the deleted snapshot held",
        f"{', '.join(f'{freed.blocks:,}' for freed in found)} blocks held, and as many freed"
        if exact
        else "other numbers were freed than held",
        exact,
    )
    slope = (found[-1].steps - found[0].steps) / (found[-1].blocks - found[0].blocks)
    rest = found[0].steps - slope * found[0].blocks
    straight = max(abs(freed.steps - rest - slope * freed.blocks) / freed.steps for freed in found)
    chapter.judge(
        "Reclaim is proportional to what is freed",
        f"{', '.join(str(freed.steps) for freed in found)} steps for "
        f"{', '.join(f'{freed.blocks:,}' for freed in found)} blocks: {slope:.4f} per block and "
        f"{rest:.1f}; greatest distance from that line {straight:.0%}. Device I/Os: "
        f"{', '.join(str(freed.ios) for freed in found)}",
        straight <= STRAIGHT and slope > 0.5 / FANOUT and rest < 4 * FANOUT,
        f"Nodes have {FANOUT} entries, so the tree is deep. A step frees a leaf, or skips a "
        "subtree that other views hold; the number of skipped subtrees does not grow.",
    )


def pinning(chapter: Chapter, settings: Settings) -> None:
    """Measure the space that a snapshot holds, and that comes back when it is deleted."""
    settings.say("space that snapshots hold")
    with _disk(64 * MIB, settings.seed, fill=True) as disk:
        before = disk.state.space_usage.live
        disk.snapshot("s")
        disk.write_many([(lba, bytes(BLOCK)) for lba in range(4096)])
        pinned = disk.state.space_usage.live
        disk.delete("s")
        disk.settle()
        after = disk.state.space_usage.live
    chapter.judge(
        "Snapshots hold capacity; after deletion the space returns like any unmapped space",
        f"{before:,} chunks live; {pinned:,} with a snapshot after 4,096 blocks were overwritten; "
        f"{after:,} after it was deleted",
        (pinned - before, after) == (4096, before),
    )


@contextmanager
def _disk(
    blocks: int, seed: int, *, fill: bool = False, **shape: Any
) -> Iterator[LogStructuredDisk]:
    """Yield a new disk with some random blocks, or all blocks, written, after a checkpoint."""
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        path = Path(folder) / "disk"
        create(path, plan(blocks, **shape), sync=False)
        with closing(open_disk(path, sync=False)) as disk:
            if fill:
                for lba in range(0, blocks, 64):
                    disk.write(lba, bytes(64 * BLOCK))
            _scribble(disk, WRITES, seed)
            disk.checkpoint()
            yield disk


def _scribble(disk: LogStructuredDisk, count: int, seed: int) -> None:
    choose = random.Random(seed)
    lbas = [choose.randrange(disk.geometry.blocks) for _ in range(count)]
    for at in range(0, count, 16):
        disk.write_many([(lba, bytes(BLOCK)) for lba in lbas[at : at + 16]])


def _cost_figure(by_size: list[tuple[Cost, Cost]], by_count: list[tuple[Cost, Cost]]) -> Figure:
    drawing, axes = panels(1, 2, width=9.5, height=3.0, sharey=True)
    names = [_size(blocks) for blocks in SIZES]
    for axis, costs, labels, title in (
        (axes[0], by_size, names, "by the size of the disk"),
        (axes[1], by_count, [str(count) for count in SNAPSHOTS], "by the number of snapshots"),
    ):
        for number, (label, marker, line) in enumerate(
            (
                ("create", "o", colour("log-structured")),
                ("delete, foreground", "s", colour("redo-vmfs")),
            )
        ):
            axis.plot(
                labels,
                [cost[number].bytes for cost in costs],
                marker=marker,
                color=line,
                label=label,
                linewidth=1.6,
                markersize=9 - 4 * number,
                linestyle=("-", "--")[number],
            )
        axis.set(title=title, ylim=(0, None))
    axes[0].set_ylabel("bytes to devices,\non both mirrors of the log")
    axes[0].legend(fontsize=8.5, loc="lower right")
    caption = (
        "A snapshot is a record of 512 bytes in the durable log, on two mirrors, and so is "
        "its deletion, for any size of the disk and any number of snapshots."
    )
    return Figure("constant", "Creating and deleting a snapshot", caption, svg(drawing, "constant"))


def _size(blocks: int) -> str:
    mib = blocks // MIB
    return (
        f"{mib} MiB" if mib < 1024 else f"{mib >> 10} GiB" if mib < 1 << 20 else f"{mib >> 20} TiB"
    )
