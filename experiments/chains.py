"""C: what chains of snapshots cost (VMware's study), for every engine here and for qcow2, side by side."""

from typing import NamedTuple

from experiments import qcow2
from experiments.chapter import Chapter, Figure, Settings
from experiments.plots import MARKERS, MUTED, colour, panels, svg
from refmodel import bench
from refmodel.engines import DEFAULT, ENGINES
from refmodel.profiles import DISK, PROFILES

LADDER, RANDOM, SEQUENTIAL = "vmware-16k-mix", "vmware-4k-random", "vmware-4k-sequential"
MOST = 12  # snapshots
COUNTS = (0, 1, 2, 4, 8, 12)
QEMU_OPERATIONS = 12_000  # of a rung: fewer are less than the processor time that is counted
BACK = 0.10  # how near to where it was a disk must come
REDO = {"redo-vmfs": "VMFSsparse", "redo-se": "SEsparse", "redo-vsan": "vSANsparse"}


class Climb(NamedTuple):
    """A ladder of snapshots up and down again: a value a rung, 0 to 12 and back to 0."""

    name: str
    rate: list[float]  # operations a second, in proportion to the first rung
    cost: list[float]  # device I/Os of an operation in the foreground; of qcow2 processor time, in proportion to the first rung


def run(settings: Settings) -> Chapter:
    chapter = Chapter(
        "C", "Chains of snapshots cost",
        "VMware's study: fio, libaio, 4 jobs of iodepth 32, 4 KB random and sequential, and a 16 KB half random, half sequential mix, after each of 12 snapshots, which are then deleted one by one. Delta chains on VMFS: performance falls at the first "
        "snapshot and on with each. vSAN sparse: little for sequential I/O, much for random. Array-native snapshots: none. After deletion it is back where it was.",
        f"The same ladder at scale {settings.scale:g} on every engine here (after a deletion, when its consolidation or reclaim is done), and on qcow2 with internal snapshots and with a chain of images, in the same run.",
    )  # fmt: skip
    engines = [name for name, engine in ENGINES.items() if "snapshot" in engine.plan(DISK).capabilities]
    climbs = [_climb(name, settings) for name in engines]
    depth = {name: _depth(name, settings) for name in engines}
    theirs = _qcow2(chapter, settings)
    settings.say(f"{LADDER} on {DEFAULT}, without a snapshot")
    still = bench.run(LADDER, scale=settings.scale, seed=settings.seed, still=True).phases
    _judge_native(chapter, climbs[0], [part.foreground for part in still], depth[DEFAULT])
    for climb in climbs[1:]:
        _judge_chain(chapter, climb, depth[climb.name], settings)
    for climb in theirs:
        _judge_qcow2(chapter, climb)
    chapter.figures += [_ladder_figure(climbs, theirs), _depth_figure(depth), _cost_figure(climbs)]
    return chapter


def _climb(engine: str, settings: Settings) -> Climb:
    settings.say(f"{LADDER} on {engine}")
    parts = bench.run(LADDER, engine=engine, scale=settings.scale, seed=settings.seed).phases
    return Climb(engine, [part.iops / parts[0].iops for part in parts], [part.foreground for part in parts])


def _depth(engine: str, settings: Settings) -> dict[str, list[float]]:
    """Device I/Os of one read and of one write, by the number of snapshots."""
    found = {}
    for kind in ("read", "write"):
        settings.say(f"4k-random-{kind} on {engine} with {', '.join(map(str, COUNTS))} snapshots")
        runs = (
            bench.run(f"4k-random-{kind}", engine=engine, scale=settings.scale, operations=round(3000 * settings.scale), depth=1, snapshots=count, seed=settings.seed)
            for count in COUNTS
        )  # fmt: skip
        found[kind] = [one.devices.ios["foreground"] / one.operations for one in runs]
    return found


def _qcow2(chapter: Chapter, settings: Settings) -> list[Climb]:
    if lacking := qcow2.missing():
        chapter.not_run("qcow2, internal snapshots and external chains, beside it in the same run", f"{', '.join(lacking)} missing: make serve-setup")
        return []
    climbs = []
    access = PROFILES[LADDER].access
    for how in ("internal", "external"):
        settings.say(f"{LADDER} on qcow2, {how} snapshots")
        rungs = list(qcow2.ladder(how, access, round(DISK * settings.scale), QEMU_OPERATIONS, MOST))
        first = rungs[0]
        climbs.append(Climb(f"qcow2, {how}", [rung.iops / first.iops for rung in rungs], [rung.processor / first.processor for rung in rungs]))
    return climbs


def _judge_native(chapter: Chapter, climb: Climb, still: list[float], depth: dict[str, list[float]]) -> None:
    for kind, values in depth.items():
        chapter.judge(
            f"Array-native snapshots cost nothing: device I/Os of a {kind}, log-structured",
            f"{values[0]:.3f} without a snapshot, {values[-1]:.3f} with {COUNTS[-1]}: ratio {values[-1] / values[0]:.3f}",
            all(abs(value / values[0] - 1) <= 0.001 for value in values),
        )
    ratios = [cost / without for cost, without in zip(climb.cost, still)]
    chapter.judge(
        "Array-native: no difference on the way up, on the way down and at the end, log-structured",
        f"{min(ratios):.3f} to {max(ratios):.3f} times the device I/Os of the same operations without a snapshot, over all {len(ratios)} runs; when all are deleted {ratios[-1]:.3f}",
        all(abs(ratio - 1) <= 0.02 for ratio in ratios),
        "Up to 2 % is allowed, since a block that a snapshot keeps stays in the bank until it is destaged, and a read of the bank takes no device I/O.",
    )


def _judge_chain(chapter: Chapter, climb: Climb, depth: dict[str, list[float]], settings: Settings) -> None:
    name = f"{REDO.get(climb.name, climb.name)} ({climb.name})"
    reads = depth["read"]
    if climb.name == "redo-vsan":
        random, sequential = (_relative(profile, climb.name, settings) for profile in (RANDOM, SEQUENTIAL))
        chapter.judge(
            f"{name}: little for sequential I/O, much for random",
            f"with {MOST} snapshots {sequential:.2f} times the rate for sequential, {random:.2f} for random; {reads[-1] / reads[0]:.3f} times the device I/Os of a read",
            random < sequential and random < 0.9,
            "Its tables are in memory, so that a chain costs look-ups and no device I/Os: it shows in processor time.",
        )
    else:
        chapter.judge(
            f"{name}: falls at the first snapshot and on with each",
            f"device I/Os of a read with {', '.join(map(str, COUNTS))} snapshots: {', '.join(f'{value:.2f}' for value in reads)}",
            all(low < high for low, high in zip(reads, reads[1:])),
        )
    end = climb.cost[-1] / climb.cost[0]
    chapter.judge(
        f"{name}: after all are deleted it is back where it was",
        f"{end:.3f} times the device I/Os of an operation, {climb.rate[-1]:.2f} times the rate, that it began with; at {MOST} snapshots {climb.cost[MOST] / climb.cost[0]:.2f} times and {climb.rate[MOST]:.2f}",
        end <= 1 + BACK,
        "" if end <= 1 + BACK else "The chain that is left is the base and the layer that live goes on in.",
    )


def _relative(profile: str, engine: str, settings: Settings) -> float:
    """The rate with snapshots, in proportion to that without."""
    settings.say(f"{profile} on {engine} with 0 and {MOST} snapshots")
    none, many = (bench.run(profile, engine=engine, scale=settings.scale, seed=settings.seed, snapshots=count) for count in (0, MOST))
    return many.iops / none.iops


def _judge_qcow2(chapter: Chapter, climb: Climb) -> None:
    rate, cost = climb.rate[: MOST + 1], climb.cost[: MOST + 1]
    measured = (
        f"with 1, 6 and {MOST} snapshots {rate[1]:.2f}, {rate[6]:.2f} and {rate[MOST]:.2f} times the rate, {cost[1]:.2f}, {cost[6]:.2f} and {cost[MOST]:.2f} times the processor time of an operation; "
        f"when all are deleted {climb.rate[-1]:.2f} and {climb.cost[-1]:.2f}"
    )
    noise = "Real software over NBD, by the wall: noise where the machine is busy, so means are judged."
    if "internal" in climb.name:
        slower = sum(rate[1:]) / MOST
        chapter.judge("qcow2, internal: what is written first after a snapshot is slow, since clusters and their references are copied", measured, slower < 0.9, f"{noise} Mean rate on the way up {slower:.2f}.")
    else:
        dearer = sum(cost[7:]) / sum(cost[1:7])
        chapter.judge("qcow2, external: a chain costs processor time, the more the longer it is", measured, dearer > 1.05, f"{noise} With 7 to 12 snapshots {dearer:.2f} times what it takes with 1 to 6.")


def _ladder_figure(climbs: list[Climb], theirs: list[Climb]) -> Figure:
    drawing, (rate, theirs_rate) = panels(1, 2, width=9.5, height=3.6, sharey=True)
    for axis, shown, title in ((rate, climbs, "Engines of this project"), (theirs_rate, theirs, "qcow2")):
        for climb, marker in zip(shown, MARKERS):
            axis.plot(climb.rate, color=colour(climb.name), marker=marker, markersize=4, label=climb.name)
        axis.set_title(title)
        _rungs(axis)
    rate.set(ylabel="IOPS, in proportion to no snapshot", ylim=(0, None))
    for axis, shown in ((rate, climbs), (theirs_rate, theirs)):
        if shown:
            axis.legend(fontsize=8.5, loc="best")
        else:
            axis.text(0.5, 0.5, "NOT RUN: no qemu", transform=axis.transAxes, ha="center", color=MUTED)
    caption = "The 16 KiB mix, a run after each of twelve snapshots, and a run after each deletion. In the middle there are twelve. Engines here by processor time, qcow2 by the wall: compare shapes, not curves."
    return Figure("ladder", "Twelve snapshots up, and down again", caption, svg(drawing, "ladder"))


def _cost_figure(climbs: list[Climb]) -> Figure:
    drawing, (axis,) = panels(1, width=7.5, height=3.2)
    for climb, marker in zip(climbs, MARKERS):
        axis.plot(climb.cost, color=colour(climb.name), marker=marker, markersize=4, label=climb.name)
    axis.set(ylabel="device I/Os of an operation,\nin the foreground", ylim=(0, None))
    _rungs(axis)
    axis.legend(fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
    return Figure("ladder-ios", "The same ladder in device I/Os", "What an operation of the 16 KiB mix waits for. Recovery after deletion is the right half.", svg(drawing, "ladder-ios"))


def _rungs(axis) -> None:
    rungs = [*range(MOST + 1), *reversed(range(MOST))]
    ticks = range(0, len(rungs), 3)
    axis.set_xticks(list(ticks), [str(rungs[tick]) for tick in ticks])
    axis.axvline(MOST, color="#c9c9c5", linewidth=1, zorder=0)
    axis.set_xlabel("snapshots")


def _depth_figure(depth: dict[str, dict[str, list[float]]]) -> Figure:
    drawing, axes = panels(1, 2, width=9.5, height=3.3)
    for axis, kind in zip(axes, ("read", "write")):
        for (engine, found), marker in zip(depth.items(), MARKERS):
            axis.plot(COUNTS, found[kind], color=colour(engine), marker=marker, markersize=5, label=engine)
        axis.set(xlabel="snapshots", ylim=(0, None), title=f"4 KiB {kind}")
    axes[0].set_ylabel("device I/Os in the foreground")
    axes[0].legend(fontsize=8.5, loc="upper left")
    caption = "Exact counts, the same operations at every point. The log-structured disk has a mirrored log: a write is two device I/Os, with or without snapshots, and a read is one."
    return Figure("depth", "Device I/Os of one operation, by the number of snapshots", caption, svg(drawing, "depth"))
