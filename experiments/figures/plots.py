"""The style of the figures: SVG by matplotlib, the same bytes for the same data."""

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure as Drawing  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

plt.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "logdisk",
        "font.family": "sans-serif",
        "font.size": 9.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#9a9a9a",
        "axes.linewidth": 0.8,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 8,
        "axes.labelcolor": "#444444",
        "xtick.color": "#666666",
        "ytick.color": "#666666",
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": "#e6e6e3",
        "grid.linewidth": 0.8,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "figure.constrained_layout.use": True,
    }
)

# Colours that stay apart for the colour-blind (after M. Okabe and K. Ito).
COLOURS = {
    "log-structured": "#0072b2",
    "redo-vmfs": "#d55e00",
    "redo-se": "#e69f00",
    "redo-vsan": "#cc79a7",
    "in-place-raid5": "#7f7f7f",
    "in-place-raid6": "#4d4d4d",
    "qcow2, internal": "#009e73",
    "qcow2, external": "#56b4e9",
}
CAUSES = {
    "foreground": "#0072b2",
    "destage": "#8fbcdb",
    "checkpoint": "#c9c9c5",
    "clean": "#f0e442",
    "reclaim": "#009e73",
    "resync": "#e69f00",
    "rebuild": "#d55e00",
    "consolidate": "#cc79a7",
    "journal": "#b2df8a",
    "parity": "#7f7f7f",
    "scrub": "#999999",
    "repair": "#999999",
}
MARKERS = "osD^vPX*"
MUTED = "#666666"


def panels(
    rows: int, columns: int = 1, *, width: float = 9.0, height: float = 2.3, **options: Any
) -> tuple[Drawing, list[Axes]]:
    """Return a figure with panels one below the other, or in a grid; sizes in inches, of the figure
    and of one row.
    """
    drawing, axes = plt.subplots(
        rows, columns, figsize=(width, height * rows), squeeze=False, **options
    )
    return drawing, list(axes.flat)


def logarithmic(axis: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers."""
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.minorticks_off()


def colour(name: str) -> str:
    """Return the colour of an engine, or of a cause of device I/O."""
    return COLOURS.get(name, CAUSES.get(name, "#333333"))


def bands(axes: Sequence[Axes], edges: Sequence[float], names: Sequence[str]) -> None:
    """Mark phases: every other one is shaded in every panel, the names stand above the first,
    aslant where there are many.
    """
    aslant = {"rotation": 28, "ha": "left"} if len(names) > 6 else {"ha": "center"}
    for number, name in enumerate(names):
        low, high = edges[number], edges[number + 1]
        for axis in axes:
            if number % 2:
                axis.axvspan(low, high, color="#f3f3ef", zorder=0, linewidth=0)
        axes[0].text(
            (low + high) / 2,
            1.03,
            name,
            transform=axes[0].get_xaxis_transform(),
            va="bottom",
            fontsize=8.5,
            color="#333333",
            **aslant,
        )
    for axis in axes:
        axis.set_xlim(edges[0], edges[-1])


def svg(drawing: Drawing, name: str) -> str:
    """Return the figure as an SVG element without a prologue; the name keeps its identifiers apart
    from other figures' on a page.
    """
    out = io.StringIO()
    drawing.savefig(
        out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    plt.close(drawing)
    text = out.getvalue()
    text = re.sub(r'\b(id="|href="#)', rf"\g<1>{name}-", text[text.index("<svg") :])
    return text.replace("url(#", f"url(#{name}-")
