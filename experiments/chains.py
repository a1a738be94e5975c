"""C: what chains of snapshots cost (VMware's study), for every engine here and for qcow2, side by side."""

import subprocess
from typing import NamedTuple

from experiments import qcow2, twins
from experiments.chapter import Chapter, Figure, Settings
from experiments.plots import MARKERS, MUTED, colour, panels, svg
from experiments.qcow2 import Rung
from refmodel import bench
from refmodel.engines import DEFAULT, ENGINES
from refmodel.profiles import DISK
from refmodel.result import Result

LADDER, RANDOM, SEQUENTIAL = "vmware-16k-mix", "vmware-4k-random", "vmware-4k-sequential"
MOST = 12  # snapshots
COUNTS = (0, 1, 2, 4, 8, 12)
QEMU_BLOCKS, QEMU_WRITES, QEMU_READS = 65536, 1000, 5000  # of an image, and of a rung
BACK = 0.10  # how near to where it was a disk must come
REDO = {"redo-vmfs": "VMFSsparse", "redo-se": "SEsparse", "redo-vsan": "vSANsparse"}


class Climb(NamedTuple):
    """A ladder of snapshots up and down again: a value a rung, 0 to 12 and back to 0."""

    name: str
    result: Result
    rate: list[float]  # operations a second, in proportion to the first rung
    cost: list[float]  # device I/Os of an operation in the foreground


class Point(NamedTuple):
    """4 KiB operations with so many snapshots."""

    foreground: float  # device I/Os of one
    iops: float


def run(settings: Settings) -> Chapter:
    chapter = Chapter(
        "C", "Chains of snapshots cost",
        "VMware's study: fio, libaio, 4 jobs of iodepth 32, 4 KB random and sequential, and a 16 KB half random, "
        "half sequential mix, after each of 12 snapshots, which are then deleted one by one. Delta chains on "
        "VMFS: performance falls at the first "
        "snapshot and on with each. vSAN sparse: little for sequential I/O, much for random. Array-native "
        "snapshots: none. After deletion it is back where it was.",
        f"The same ladder at scale {settings.scale:g} on every engine here (after a deletion, when its "
        "consolidation or reclaim is done), and 4 KiB random writes and reads on qcow2 with internal snapshots "
        "and with a chain of images, in the same run.",
    )  # fmt: skip
    engines = [name for name, engine in ENGINES.items() if "snapshot" in engine.plan(DISK).capabilities]
    climbs = [_climb(name, settings) for name in engines]
    depth = {name: _depth(name, settings) for name in engines}
    theirs = _qcow2(chapter, settings)
    settings.say(f"{LADDER} on {DEFAULT}, without a snapshot")
    still = bench.run(LADDER, scale=settings.scale, seed=settings.seed, still=True)
    _judge_native(chapter, climbs[0].result, still, depth[DEFAULT])
    for climb in climbs[1:]:
        _judge_chain(chapter, climb, depth[climb.name], settings)
    for name, rungs in theirs.items():
        _judge_qcow2(chapter, name, rungs)
    chapter.figures += [
        _depth_figure(depth),
        _rate_figure(depth, theirs),
        _cost_figure(climbs),
        _ladder_figure(climbs, theirs),
    ]
    return chapter


def _climb(engine: str, settings: Settings) -> Climb:
    settings.say(f"{LADDER} on {engine}")
    result = bench.run(LADDER, engine=engine, scale=settings.scale, seed=settings.seed)
    parts = result.phases
    return Climb(engine, result, [part.iops / parts[0].iops for part in parts], [part.foreground for part in parts])


def _depth(engine: str, settings: Settings) -> dict[str, list[Point]]:
    """Reads, and writes, for each of COUNTS."""
    found: dict[str, list[Point]] = {}
    for kind in ("read", "write"):
        settings.say(f"4k-random-{kind} on {engine} with {', '.join(map(str, COUNTS))} snapshots")
        runs = (
            bench.run(f"4k-random-{kind}", engine=engine, scale=settings.scale, operations=round(3000 * settings.scale), depth=1, snapshots=count, seed=settings.seed)
            for count in COUNTS
        )  # fmt: skip
        found[kind] = [Point(one.devices.ios["foreground"] / one.operations, one.iops) for one in runs]
    return found


def _qcow2(chapter: Chapter, settings: Settings) -> dict[str, list[Rung]]:
    if lacking := qcow2.missing():
        chapter.not_run(
            "qcow2, internal snapshots and external chains, beside it in the same run",
            f"{', '.join(lacking)} missing: make serve-setup",
        )
        return {}
    found = {}
    for how in ("internal", "external"):
        settings.say(f"qcow2, {how} snapshots: 0 to {MOST}, and back to 0")
        try:
            rungs = qcow2.ladder(how, blocks=QEMU_BLOCKS, writes=QEMU_WRITES, reads=QEMU_READS, most=MOST)
            found[f"qcow2, {how}"] = list(rungs)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            chapter.not_run(f"qcow2, {how} snapshots, beside it in the same run", str(error))
    return found


def _judge_native(chapter: Chapter, result: Result, still: Result, depth: dict[str, list[Point]]) -> None:
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
        f"in all {len(result.requests)} runs {twins.ratios(result, still)}",
        all(twins.alike(part, still.part(part.name)) for part in result.phases),
        "Exact: the same device writes, to the byte, and nothing is read but what clients asked for. Device I/Os differ by "
        "the blocks that were read from the bank, or together with their neighbours: which those are depends on what "
        "snapshots keep, and is chance.",
    )


def _judge_chain(chapter: Chapter, climb: Climb, depth: dict[str, list[Point]], settings: Settings) -> None:
    name = f"{REDO.get(climb.name, climb.name)} ({climb.name})"
    reads = [point.foreground for point in depth["read"]]
    if climb.name == "redo-vsan":
        random, sequential = (_relative(profile, climb.name, settings) for profile in (RANDOM, SEQUENTIAL))
        chapter.judge(
            f"{name}: little for sequential I/O, much for random",
            f"with {MOST} snapshots {sequential:.2f} times the rate for sequential, {random:.2f} for random; "
            f"{reads[-1] / reads[0]:.3f} times the device I/Os of a read",
            random < sequential and random < 0.9,
            "Its tables are in memory, so that a chain costs look-ups and no device I/Os: it shows in processor "
            "time. This engine looks every block up in every layer, also where blocks follow each other.",
            must=False,
        )
    else:
        chapter.judge(
            f"{name}: falls at the first snapshot and on with each",
            f"device I/Os of a read with {', '.join(map(str, COUNTS))} snapshots: "
            f"{', '.join(f'{value:.2f}' for value in reads)}",
            all(low < high for low, high in zip(reads, reads[1:])),
        )
    end = climb.cost[-1] / climb.cost[0]
    chapter.judge(
        f"{name}: after all are deleted it is back where it was",
        f"{end:.3f} times the device I/Os of an operation, {climb.rate[-1]:.2f} times the rate, that it began "
        f"with; at {MOST} snapshots {climb.cost[MOST] / climb.cost[0]:.2f} times and {climb.rate[MOST]:.2f}",
        end <= 1 + BACK,
        "" if end <= 1 + BACK else "The chain that is left is the base and the layer that live goes on in.",
    )


def _relative(profile: str, engine: str, settings: Settings) -> float:
    """The rate with snapshots, in proportion to that without."""
    settings.say(f"{profile} on {engine} with 0 and {MOST} snapshots")
    none, many = (
        bench.run(profile, engine=engine, scale=settings.scale, seed=settings.seed, snapshots=count)
        for count in (0, MOST)
    )
    return many.iops / none.iops


def _judge_qcow2(chapter: Chapter, name: str, rungs: list[Rung]) -> None:
    """Real software, over NBD."""
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
        f"the first 4K writes after each of {MOST} snapshots: {write:.2f} times the processor time of the server, "
        f"{rate[0]:.2f} times the IOPS; 4K random reads with {MOST - len(deep) + 1} to {MOST}: {read:.2f} and "
        f"{rate[1]:.2f} times. "
        f"With {MOST} a read takes {top.read.processor / first.read.processor:.2f} times; when all are deleted "
        f"{last.read.processor / first.read.processor:.2f}, a write "
        f"{last.write.processor / first.write.processor:.2f}"
    )
    noise = "Judged by processor time: IOPS are by the wall."
    if "internal" in name:
        chapter.judge(
            "qcow2, internal: reads as before, but what is written first after a snapshot is slow, since "
            "clusters and references are copied",
            measured,
            write > 1.5 and read < 1.3,
            noise,
            must=False,
        )
    else:
        chapter.judge(
            "qcow2, external: reads cost more the longer the chain is, and what is written first after a "
            "snapshot is slow",
            measured,
            write > 1.5 and read > 1.1,
            noise,
            must=False,
        )


def _rate_figure(depth: dict[str, dict[str, list[Point]]], theirs: dict[str, list[Rung]]) -> Figure:
    drawing, axes = panels(1, 2, width=9.5, height=3.5, sharey=True)
    for axis, kind in zip(axes, ("read", "write")):
        for (engine, found), marker in zip(depth.items(), MARKERS):
            axis.plot(
                COUNTS,
                [point.iops / found[kind][0].iops for point in found[kind]],
                color=colour(engine),
                marker=marker,
                markersize=5,
                label=engine,
            )
        for (name, rungs), marker in zip(theirs.items(), "v^"):
            costs = [getattr(rung, kind).processor for rung in rungs[: MOST + 1]]
            axis.plot(
                [costs[0] / cost for cost in costs],
                color=colour(name),
                marker=marker,
                markersize=4,
                linestyle="--",
                linewidth=1.3,
                label=name,
            )
        axis.set(xlabel="snapshots", ylim=(0, None), title=f"4 KiB random {kind}s")
    axes[0].set_ylabel("operations a second of processor time,\nin proportion to no snapshot")
    axes[1].legend(fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
    if not theirs:
        axes[1].text(0.02, 0.02, "qcow2 NOT RUN: no qemu", transform=axes[1].transAxes, color=MUTED)
    caption = (
        "Each engine against itself without snapshots, on memory, where a device I/O costs next to nothing. "
        "qcow2: the processor time of qemu-nbd; its writes are the first thousand after each snapshot."
    )
    return Figure("rates", "What is left of the rate, by the number of snapshots", caption, svg(drawing, "rates"))


def _ladder_figure(climbs: list[Climb], theirs: dict[str, list[Rung]]) -> Figure:
    drawing, (rate, reads) = panels(1, 2, width=9.5, height=3.4, sharey=True)
    for climb, marker in zip(climbs, MARKERS):
        rate.plot(climb.rate, color=colour(climb.name), marker=marker, markersize=4, label=climb.name)
    for (name, rungs), marker in zip(theirs.items(), "v^"):
        reads.plot(
            [rungs[0].read.processor / rung.read.processor for rung in rungs],
            color=colour(name),
            marker=marker,
            markersize=4,
            label=name,
        )
    rate.set(
        title="Engines here: 16 KiB mix",
        ylabel="operations a second of processor time,\nin proportion to no snapshot",
        ylim=(0, None),
    )
    reads.set(title="qcow2: 4 KiB random reads")
    for axis in (rate, reads):
        _rungs(axis)
    rate.legend(fontsize=8.5)
    if theirs:
        reads.legend(fontsize=8.5)
    else:
        reads.text(0.5, 0.5, "NOT RUN: no qemu", transform=reads.transAxes, ha="center", color=MUTED)
    caption = (
        "A run after each of twelve snapshots, and after each deletion, when what it left to do is done: in the "
        "middle there are twelve."
    )
    return Figure("ladder", "Twelve snapshots up, and down again: the rate", caption, svg(drawing, "ladder"))


def _cost_figure(climbs: list[Climb]) -> Figure:
    drawing, (axis,) = panels(1, width=7.5, height=3.2)
    for climb, marker in zip(climbs, MARKERS):
        axis.plot(climb.cost, color=colour(climb.name), marker=marker, markersize=4, label=climb.name)
    axis.set(ylabel="device I/Os of an operation,\nin the foreground", ylim=(0, None))
    _rungs(axis)
    axis.legend(fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
    return Figure(
        "ladder-ios",
        "Twelve snapshots up, and down again: device I/Os",
        "The 16 KiB mix, a run after each of twelve snapshots and after each deletion, when what it left to do "
        "is done. What an operation waits for.",
        svg(drawing, "ladder-ios"),
    )


def _rungs(axis) -> None:
    rungs = [*range(MOST + 1), *reversed(range(MOST))]
    ticks = range(0, len(rungs), 3)
    axis.set_xticks(list(ticks), [str(rungs[tick]) for tick in ticks])
    axis.axvline(MOST, color="#c9c9c5", linewidth=1, zorder=0)
    axis.set_xlabel("snapshots")


def _depth_figure(depth: dict[str, dict[str, list[Point]]]) -> Figure:
    drawing, axes = panels(1, 2, width=9.5, height=3.3)
    for axis, kind in zip(axes, ("read", "write")):
        for (engine, found), marker in zip(depth.items(), MARKERS):
            axis.plot(
                COUNTS,
                [point.foreground for point in found[kind]],
                color=colour(engine),
                marker=marker,
                markersize=5,
                label=engine,
            )
        axis.set(xlabel="snapshots", ylim=(0, None), title=f"4 KiB {kind}")
    axes[0].set_ylabel("device I/Os in the foreground")
    axes[0].legend(fontsize=8.5, loc="upper left")
    caption = (
        "Exact counts, the same operations at every point. The log-structured disk has a mirrored log: a write "
        "is two device I/Os, with or without snapshots, and a read is one."
    )
    return Figure("depth", "Device I/Os of one operation, by the number of snapshots", caption, svg(drawing, "depth"))
