"""A figure of a run over time: rate, latency and device I/Os per operation, phase by phase."""

from itertools import accumulate, pairwise
from statistics import quantiles
from typing import Any

from matplotlib.axes import Axes

from experiments.chapter import Figure
from experiments.figures.plots import CAUSES, MUTED, bands, colour, logarithmic, panels, svg
from refmodel.bench.clients import Window
from refmodel.bench.results import Result, percentile

CAUSE_ORDER = ["foreground", *(cause for cause in CAUSES if cause != "foreground")]


def timeline(
    result: Result,
    control: Result,
    *,
    name: str,
    title: str,
    caption: str,
    log_latency: bool = False,
) -> Figure:
    """Draw the rate, the latency, and device I/Os per operation by cause.

    The control run, the same operations without actions on the disk, is grey or dashed.
    """
    drawing, (rate, latency, ios) = panels(3, height=1.95, sharex=True)
    ends = [0, *accumulate(window.operations for window in result.windows)]
    middles = [(low + high) / 2000 for low, high in pairwise(ends)]
    edges = [0.0, *(at / 1000 for at in accumulate(part.operations for part in result.phases))]

    rate_styles: list[tuple[Result, dict[str, Any]]] = [
        (control, {"color": "#b5b5b0", "linewidth": 1.4}),
        (result, {"color": colour(result.engine)}),
    ]
    for run, style in rate_styles:
        rate.plot(
            middles, [window.operations / window.seconds / 1000 for window in run.windows], **style
        )
    clock = "wall" if result.wall else "CPU"
    rate.set(ylabel=f"thousand operations\nper {clock} second", ylim=(0, None))
    lines: list[tuple[list[float], str, str]] = [
        ([percentile([window], percent) / 1000 for window in run.windows], line, shade)
        for run, shade in ((control, "#b5b5b0"), (result, colour(result.engine)))
        for percent, line in ((50, "-"), (99, ":"))
    ]
    for values, line, shade in lines:
        latency.plot(middles, values, line, linewidth=1.4, color=shade)
    latency.set(ylabel=f"latency, ms of {clock} time\n(99 % dotted)")
    if log_latency:
        logarithmic(latency)
    else:
        _clip(latency, middles, lines)
    _stack(ios, result.windows, middles)
    without = [window.devices.ios["foreground"] / window.operations for window in control.windows]
    ios.plot(middles, without, "--", color="#f3f3ef", linewidth=1.2, zorder=3)
    ios.set(ylabel="device I/Os\nper operation", xlabel="thousand operations done", ylim=(0, None))
    bands((rate, latency, ios), edges, [part.name for part in result.phases])
    rate.plot([], [], color=colour(result.engine), label=result.engine)
    rate.plot([], [], color="#b5b5b0", label="the same operations,\nno actions on the disk")
    rate.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=8.5, labelcolor=MUTED)
    dashed = " Dashed: foreground I/Os of the same operations without actions on the disk."
    return Figure(name, title, caption + dashed, svg(drawing, name))


def _clip(axis: Axes, at: list[float], lines: list[tuple[list[float], str, str]]) -> None:
    """End the axis where few values are higher; say at the top how high each of those is."""
    top = 1.5 * max(quantiles(values, n=20)[-1] for values, *_ in lines)
    axis.set_ylim(0, top)
    for values, _, shade in lines:
        for x, value in zip(at, values, strict=True):
            if value > top:
                axis.annotate(
                    f"\u2191{value:,.0f}",
                    (x, top),
                    ha="center",
                    va="top",
                    fontsize=7.5,
                    color=shade,
                )


def _stack(axis: Axes, windows: list[Window], at: list[float]) -> None:
    causes = [
        cause for cause in CAUSE_ORDER if any(window.devices.ios[cause] for window in windows)
    ]
    series = [
        [window.devices.ios[cause] / window.operations for window in windows] for cause in causes
    ]
    axis.stackplot(
        at,
        series,
        labels=causes,
        colors=[colour(cause) for cause in causes],
        step=None,
        linewidth=0,
    )
    axis.legend(
        loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=8.5, reverse=True, labelcolor=MUTED
    )
