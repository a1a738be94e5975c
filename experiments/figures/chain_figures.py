"""The figures of chapter C."""

from experiments.chapter import Figure
from experiments.figures.plots import MARKERS, MUTED, colour, panels, svg
from experiments.measure.ladder import COUNTS, MOST, Climb, Point
from experiments.measure.qcow2 import Rung


def rate_figure(depth: dict[str, dict[str, list[Point]]], theirs: dict[str, list[Rung]]) -> Figure:
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
    return Figure(
        "rates",
        "What is left of the rate, by the number of snapshots",
        caption,
        svg(drawing, "rates"),
    )


def ladder_figure(climbs: list[Climb], theirs: dict[str, list[Rung]]) -> Figure:
    drawing, (rate, reads) = panels(1, 2, width=9.5, height=3.4, sharey=True)
    for climb, marker in zip(climbs, MARKERS):
        rate.plot(
            climb.rate, color=colour(climb.name), marker=marker, markersize=4, label=climb.name
        )
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
        reads.text(
            0.5, 0.5, "NOT RUN: no qemu", transform=reads.transAxes, ha="center", color=MUTED
        )
    caption = (
        "A run after each of twelve snapshots, and after each deletion, when what it left to do is done: in the "
        "middle there are twelve."
    )
    return Figure(
        "ladder", "Twelve snapshots up, and down again: the rate", caption, svg(drawing, "ladder")
    )


def cost_figure(climbs: list[Climb]) -> Figure:
    drawing, (axis,) = panels(1, width=7.5, height=3.2)
    for climb, marker in zip(climbs, MARKERS):
        axis.plot(
            climb.cost, color=colour(climb.name), marker=marker, markersize=4, label=climb.name
        )
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


def depth_figure(depth: dict[str, dict[str, list[Point]]]) -> Figure:
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
    return Figure(
        "depth",
        "Device I/Os of one operation, by the number of snapshots",
        caption,
        svg(drawing, "depth"),
    )
