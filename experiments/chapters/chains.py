"""C: the cost of chains of snapshots (VMware's study), for every engine here and for qcow2, side by
side.
"""

import subprocess
from itertools import pairwise

from experiments.chapter import Chapter, Settings
from experiments.figures.chain_figures import cost_figure, depth_figure, ladder_figure, rate_figure
from experiments.measure import ladder, qcow2, twins
from experiments.measure.ladder import COUNTS, LADDER, MOST, RANDOM, SEQUENTIAL, Climb, Point
from experiments.measure.qcow2 import Rung
from refmodel.bench import runner
from refmodel.bench.results import Result
from refmodel.bench.workloads.workload import DISK
from refmodel.registry import DEFAULT, ENGINES

QEMU_BLOCKS = 65536  # per image
QEMU_WRITES, QEMU_READS = 1000, 5000  # operations for each number of snapshots
LARGE = 0.25  # from this scale on, the tables of one layer do not fit into a chain's memory
BACK = 0.10  # allowed difference of the device I/Os after all deletions
REDO = {"redo-vmfs": "VMFSsparse", "redo-se": "SEsparse", "redo-vsan": "vSANsparse"}


def run(settings: Settings) -> Chapter:
    """Measure chains of snapshots on every engine and on qcow2, as in VMware's study."""
    chapter = Chapter(
        "C",
        "Chains of snapshots have a cost",
        "VMware's study: fio, libaio, 4 jobs of iodepth 32, 4 KB random and sequential, and a 16 "
        "KB half random, half sequential mix, after each of 12 snapshots, which are then deleted "
        "one by one. Delta chains on VMFS: performance falls with the first snapshot, and "
        "further with each. vSAN sparse: it falls a little for sequential I/O, much for random. "
        "Array-native snapshots: it does not fall. After the deletions it is as before.",
        f"The same test at scale {settings.scale:g} on every engine here. After a deletion, its "
        "consolidation or reclaim is finished first. In the same run: 4 KiB random writes and "
        "reads on qcow2 with internal snapshots, and with a chain of images.",
    )
    engines = [
        name for name, engine in ENGINES.items() if "snapshot" in engine.plan(DISK).capabilities
    ]
    climbs = [ladder.up_and_down(name, settings) for name in engines]
    depth = {name: ladder.depths(name, settings) for name in engines}
    theirs = _qcow2(chapter, settings)
    settings.say(f"{LADDER} on {DEFAULT}, without a snapshot")
    still = runner.run(LADDER, scale=settings.scale, seed=settings.seed, still=True)
    _judge_native(chapter, climbs[0].result, still, depth[DEFAULT])
    for climb in climbs[1:]:
        _judge_chain(chapter, climb, depth[climb.name], settings)
    for name, rungs in theirs.items():
        _judge_qcow2(chapter, name, rungs)
    chapter.figures += [
        depth_figure(depth),
        rate_figure(depth, theirs),
        cost_figure(climbs),
        ladder_figure(climbs, theirs),
    ]
    return chapter


def _qcow2(chapter: Chapter, settings: Settings) -> dict[str, list[Rung]]:
    if lacking := qcow2.missing():
        chapter.not_run(
            "qcow2 in the same run, internal snapshots and external chains",
            f"{', '.join(lacking)} missing: make serve-setup",
        )
        return {}
    found = {}
    for how in ("internal", "external"):
        settings.say(f"qcow2, {how} snapshots: 0 to {MOST}, and back to 0")
        try:
            rungs = qcow2.ladder(
                how, blocks=QEMU_BLOCKS, writes=QEMU_WRITES, reads=QEMU_READS, most=MOST
            )
            found[f"qcow2, {how}"] = list(rungs)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            chapter.not_run(f"qcow2 in the same run, {how} snapshots", str(error))
    return found


def _judge_native(
    chapter: Chapter, result: Result, still: Result, depth: dict[str, list[Point]]
) -> None:
    for kind, points in depth.items():
        values = [point.foreground for point in points]
        chapter.judge(
            f"Array-native snapshots cost nothing: device I/Os of a {kind}, log-structured",
            f"{values[0]:.3f} without a snapshot, {values[-1]:.3f} with {COUNTS[-1]}: ratio "
            f"{values[-1] / values[0]:.3f}",
            all(abs(value / values[0] - 1) <= 0.001 for value in values),
        )
    chapter.judge(
        "Array-native: no difference on the way up, on the way down and at the end, log-structured",
        f"with snapshots to without, in all {len(result.requests)} runs: "
        f"{twins.ratios(result, still)}",
        all(twins.alike(part, still.part(part.name)) for part in result.phases),
        "Exact: the same device writes, to the byte, and nothing is read but what clients asked "
        "for. Device I/Os differ by the blocks that were read from the bank, or together with "
        "their neighbours: which those are depends on what snapshots keep, and is chance.",
    )


def _judge_chain(
    chapter: Chapter, climb: Climb, depth: dict[str, list[Point]], settings: Settings
) -> None:
    name = f"{REDO.get(climb.name, climb.name)} ({climb.name})"
    reads = [point.foreground for point in depth["read"]]
    large = settings.scale >= LARGE
    if climb.name == "redo-vsan":
        random, sequential = (
            ladder.relative_rate(profile, climb.name, settings) for profile in (RANDOM, SEQUENTIAL)
        )
        chapter.judge(
            f"{name}: the rate falls a little for sequential I/O, much for random",
            f"with {MOST} snapshots {sequential:.2f} times the rate for sequential I/O, "
            f"{random:.2f} for random; {reads[-1] / reads[0]:.3f} times the device I/Os per read",
            random < sequential and random < 0.9,
            "Its tables are in memory, so a chain needs look-ups but no device I/Os: its cost is "
            "CPU time. This engine looks up every block in every layer, also for sequential I/O.",
            must=False,
        )
    else:
        chapter.judge(
            f"{name}: performance falls with the first snapshot, and further with each",
            f"device I/Os per read with {', '.join(map(str, COUNTS))} snapshots: "
            f"{', '.join(f'{value:.2f}' for value in reads)}",
            all(low < high for low, high in pairwise(reads)),
            "" if large else "On so small a disk, memory has room for the tables of a short chain.",
            must=large,
        )
    end = climb.cost[-1] / climb.cost[0]
    chapter.judge(
        f"{name}: after all snapshots are deleted, performance is as before",
        f"{end:.3f} times the device I/Os per operation and {climb.rate[-1]:.2f} times the rate "
        f"at the start; at {MOST} snapshots {climb.cost[MOST] / climb.cost[0]:.2f} times and "
        f"{climb.rate[MOST]:.2f}",
        end <= 1 + BACK,
        "" if end <= 1 + BACK else "Two layers are left: the base, and the layer of the live view.",
    )


def _judge_qcow2(chapter: Chapter, name: str, rungs: list[Rung]) -> None:
    """Judge the figures of qcow2, measured over NBD."""
    first, top, last = rungs[0], rungs[MOST], rungs[-1]
    up = rungs[1 : MOST + 1]
    deep = up[MOST // 2 :]
    write = sum(rung.write.processor for rung in up) / len(up) / first.write.processor
    read = sum(rung.read.processor for rung in deep) / len(deep) / first.read.processor
    rate = (
        sum(rung.write.iops for rung in up) / len(up) / first.write.iops,
        sum(rung.read.iops for rung in deep) / len(deep) / first.read.iops,
    )
    measured = (
        f"the first 4K writes after each of {MOST} snapshots: {write:.2f} times the CPU time of "
        f"the server, {rate[0]:.2f} times the IOPS; 4K random reads with {MOST - len(deep) + 1} "
        f"to {MOST}: {read:.2f} and {rate[1]:.2f} times. With {MOST} a read takes "
        f"{top.read.processor / first.read.processor:.2f} times; when all are deleted "
        f"{last.read.processor / first.read.processor:.2f}, a write "
        f"{last.write.processor / first.write.processor:.2f}"
    )
    noise = "Judged by CPU time: IOPS are by wall-clock time."
    if "internal" in name:
        chapter.judge(
            "qcow2, internal: reads are as fast as before, but the first writes after a snapshot "
            "are slow, because clusters and references are copied",
            measured,
            write > 1.5 and read < 1.3,
            noise,
            must=False,
        )
    else:
        chapter.judge(
            "qcow2, external: the longer the chain, the slower the reads; and the first writes "
            "after a snapshot are slow",
            measured,
            write > 1.5 and read > 1.1,
            noise,
            must=False,
        )
