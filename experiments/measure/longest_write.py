"""The longest write over time, while snapshots are taken and deleted, and checkpoints are written.

Two disks get the same writes. One does its background work in steps between them. The other cleans
when a write needs the space, at once, with the checkpoint that frees what was cleaned.
"""

import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes

from experiments.chapter import Figure, Settings
from experiments.figures.plots import MUTED, colour, logarithmic, panels, svg
from refmodel.bench.scale.table import SPARE, Bench
from refmodel.log_structured.geometry import plan, with_reserve
from refmodel.runtime.collector import full_collections_in_idle_moments

BLOCKS = 1 << 18  # size of the disk at scale 1
SNAPSHOTS = 12
PARTS = 3 * SNAPSHOTS  # snapshots are taken in the first third, held, deleted in the last one
WINDOW = 100  # writes
WINDOWS = 5  # in each part
MARKS = {"snapshot": ("^", "#009e73"), "deletion": ("v", "#d55e00")}


@dataclass
class Run:
    """The measurements of one disk; moments are counted in writes."""

    longest: list[float] = field(default_factory=list)  # ms of CPU time, of each window
    medians: list[float] = field(default_factory=list)
    actions: list[tuple[str, int, float]] = field(default_factory=list)  # what, when, ms
    checkpoints: list[int] = field(default_factory=list)


def longest_write(settings: Settings) -> Figure:
    """Measure both disks, and draw the longest and the median write of every hundred."""
    settings.say("the longest write over time, in steps and at once")
    runs = {
        "background work in steps": measure(settings, stepwise=True),
        "cleaning at once, with its checkpoints": measure(settings, stepwise=False),
    }
    drawing, axes = panels(2, height=2.4, sharex=True, sharey=True)
    for axis, (title, run) in zip(axes, runs.items(), strict=True):
        axis.set_title(title)
        _draw(axis, run)
    axes[1].set(xlabel="thousand writes")
    axes[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=8.5, labelcolor=MUTED)
    steps, once = runs.values()
    name = "longest-write"
    return Figure(
        name,
        "The longest write, while snapshots are taken, held and deleted",
        f"Single blocks are written at random places of a disk of "
        f"{settings.scale * BLOCKS / 256:,.0f} MiB whose cleaner is at work. Every point is the "
        f"longest of {WINDOW} writes, in CPU time: at most {max(steps.longest):.1f} ms in steps, "
        f"{max(once.longest):.1f} ms at once. A triangle is the time of a snapshot or a deletion "
        "itself. Grey ticks are checkpoints.",
        svg(drawing, name),
    )


def measure(settings: Settings, *, stepwise: bool) -> Run:
    """Write to a disk whose cleaner is at work, take snapshots, hold and delete them."""
    blocks, run = round(settings.scale * BLOCKS), Run()
    held = blocks + PARTS * WINDOWS * WINDOW
    geometry = plan(blocks, segments=with_reserve((held + held // SPARE) // 128 + 1))
    with full_collections_in_idle_moments(), tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "disk", geometry, None)
        if not stepwise:
            bench.disk.cleaning.stepwise, bench.disk.cleaning.spare = False, 0
        bench.age(0, cleaned=True)
        for part in range(PARTS):
            now = part * WINDOWS * WINDOW
            if part < SNAPSHOTS:
                cost = bench.cost(partial(bench.disk.snapshot, f"s{part}"))
                run.actions.append(("snapshot", now, cost.milliseconds))
            elif part >= PARTS - SNAPSHOTS:
                cost = bench.cost(partial(bench.disk.delete, bench.disk.snapshots()[0]))
                run.actions.append(("deletion", now, cost.milliseconds))
            for window in range(WINDOWS):
                number = bench.disk.state.checkpoint_number
                times = sorted(bench.write(WINDOW))
                run.longest.append(1000 * times[-1])
                run.medians.append(1000 * times[WINDOW // 2])
                done = bench.disk.state.checkpoint_number - number
                run.checkpoints += [now + window * WINDOW] * bool(done)
        bench.disk.abandon()
    return run


def _draw(axis: Axes, run: Run) -> None:
    at = [number * WINDOW / 1000 for number in range(len(run.longest))]
    axis.plot(at, run.longest, color=colour("log-structured"), label="longest of 100 writes")
    axis.plot(at, run.medians, color=colour("destage"), label="median")
    for what, (marker, shade) in MARKS.items():
        found = [(when / 1000, cost) for action, when, cost in run.actions if action == what]
        axis.plot(*zip(*found, strict=True), marker, color=shade, markersize=5, label=what)
    bottom = axis.get_xaxis_transform()
    ticks = [when / 1000 for when in run.checkpoints]
    axis.plot(ticks, [0.02] * len(ticks), "|", color=MUTED, transform=bottom, label="checkpoint")
    axis.set(ylabel="CPU time, ms")
    logarithmic(axis)
