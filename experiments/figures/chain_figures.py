"""The figures of chapter C: cost and rate by the number of snapshots."""

from matplotlib.axes import Axes

from experiments.chapter import Figure
from experiments.figures.plots import MARKERS, MUTED, colour, panels, svg
from experiments.measure.ladder import COUNTS, MOST, Climb, Point
from experiments.measure.qcow2 import Rung


def rate_figure(depth: dict[str, dict[str, list[Point]]], theirs: dict[str, list[Rung]]) -> Figure:
    """Return the rate of reads and writes by number of snapshots, relative to no snapshot."""
    drawing, axes = panels(1, 2, width=9.5, height=3.5, sharey=True)
    for axis, kind in zip(axes, ("read", "write"), strict=True):
        for (engine, found), marker in zip(depth.items(), MARKERS, strict=False):
            axis.plot(
                COUNTS,
                [point.iops / found[kind][0].iops for point in found[kind]],
                color=colour(engine),
                marker=marker,
                markersize=5,
                label=engine,
            )
        for (name, rungs), marker in zip(theirs.items(), "v^", strict=False):
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
    axes[0].set_ylabel("operations per CPU second,\nin proportion to no snapshot")
    axes[1].legend(fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
    if not theirs:
        axes[1].text(0.02, 0.02, "qcow2 NOT RUN: no qemu", transform=axes[1].transAxes, color=MUTED)
    caption = (
        "Each engine is compared with itself without snapshots, in memory, where a device "
        "I/O takes almost no time. qcow2: CPU time of qemu-nbd; its writes are the first "
        "thousand after each snapshot."
    )
    return Figure(
        "rates",
        "The rate in proportion to no snapshot, by the number of snapshots",
        caption,
        svg(drawing, "rates"),
    )


def ladder_figure(climbs: list[Climb], theirs: dict[str, list[Rung]]) -> Figure:
    """Return the rate while snapshots are taken and deleted one by one."""
    drawing, (rate, reads) = panels(1, 2, width=9.5, height=3.4, sharey=True)
    for climb, marker in zip(climbs, MARKERS, strict=False):
        rate.plot(
            climb.rate, color=colour(climb.name), marker=marker, markersize=4, label=climb.name
        )
    for (name, rungs), marker in zip(theirs.items(), "v^", strict=False):
        reads.plot(
            [rungs[0].read.processor / rung.read.processor for rung in rungs],
            color=colour(name),
            marker=marker,
            markersize=4,
            label=name,
        )
    rate.set(
        title="Engines here: 16 KiB mix",
        ylabel="operations per CPU second,\nin proportion to no snapshot",
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
        "A run after each of twelve snapshots, and one after each deletion, when its "
        "background work is finished. In the middle there are twelve."
    )
    return Figure(
        "ladder", "Twelve snapshots up, and down again: the rate", caption, svg(drawing, "ladder")
    )


def cost_figure(climbs: list[Climb]) -> Figure:
    """Device I/Os per operation while snapshots are taken and deleted one by one."""
    drawing, (axis,) = panels(1, width=7.5, height=3.2)
    for climb, marker in zip(climbs, MARKERS, strict=False):
        axis.plot(
            climb.cost, color=colour(climb.name), marker=marker, markersize=4, label=climb.name
        )
    axis.set(ylabel="foreground device I/Os\nper operation", ylim=(0, None))
    _rungs(axis)
    axis.legend(fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
    return Figure(
        "ladder-ios",
        "Twelve snapshots up, and down again: device I/Os",
        "The 16 KiB mix: a run after each of twelve snapshots, and one after each deletion, when "
        "its background work is finished.",
        svg(drawing, "ladder-ios"),
    )


def _rungs(axis: Axes) -> None:
    """Label the horizontal axis: 0 snapshots up to MOST, and down to 0 again."""
    rungs = [*range(MOST + 1), *reversed(range(MOST))]
    ticks = range(0, len(rungs), 3)
    axis.set_xticks(list(ticks), [str(rungs[tick]) for tick in ticks])
    axis.axvline(MOST, color="#c9c9c5", linewidth=1, zorder=0)
    axis.set_xlabel("snapshots")


def depth_figure(depth: dict[str, dict[str, list[Point]]]) -> Figure:
    """Device I/Os per read and per write by the number of snapshots."""
    drawing, axes = panels(1, 2, width=9.5, height=3.3)
    for axis, kind in zip(axes, ("read", "write"), strict=True):
        for (engine, found), marker in zip(depth.items(), MARKERS, strict=False):
            axis.plot(
                COUNTS,
                [point.foreground for point in found[kind]],
                color=colour(engine),
                marker=marker,
                markersize=5,
                label=engine,
            )
        axis.set(xlabel="snapshots", ylim=(0, None), title=f"4 KiB {kind}")
    axes[0].set_ylabel("foreground device I/Os")
    axes[0].legend(fontsize=8.5, loc="upper left")
    caption = (
        "Exact counts, the same operations at every point. The log-structured disk has a "
        "mirrored log: a write is two device I/Os, with or without snapshots, and a read "
        "is one."
    )
    return Figure(
        "depth",
        "Device I/Os per operation, by the number of snapshots",
        caption,
        svg(drawing, "depth"),
    )
