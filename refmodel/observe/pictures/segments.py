"""Draws the capacity leg: a column per segment, a row per device.

A cell is the piece of the segment that the device holds: data or parity.
"""

from itertools import islice
from typing import Any

from refmodel.log_structured.disk import LogStructuredDisk

SHOWN = 64  # segments that are drawn at most
CELL = 13  # pixels
LEFT, TOP = 250, 64  # pixels around the cells
BAR = 60  # pixels: height of the bar that shows how much of a segment is live


def picture(disk: LogStructuredDisk) -> dict[str, Any]:
    """Return what segments.svg.j2 draws. Raises DataLost."""
    leg, table = disk.state.capacity, disk.state.segments
    table.learn_all()
    shown = _shown(disk)
    oldest = min((usage.filled for usage in table.sealed.values()), default=0)
    span = max(1, max((usage.filled for usage in table.sealed.values()), default=0) - oldest)
    columns = []
    for at, segment in enumerate(shown):
        usage = table.sealed.get(segment)
        columns.append(
            {
                "x": LEFT + at * CELL,
                "segment": segment,
                "state": "sealed" if usage else "dead" if segment in table.dead else "free",
                "live": usage.live / table.units if usage else 0.0,
                "title": _title(disk, segment),
                "colour": _shade((usage.filled - oldest) / span) if usage else "",
            }
        )
    rows = []
    for number, component in enumerate(leg.components):
        member = component.member
        cells = [
            {
                "column": column,
                "parity": leg.striping.piece(number, segment) >= leg.k,
                "missing": segment in table.sealed
                and not leg.readable(component, segment * leg.stripe_bytes, leg.stripe_bytes),
            }
            for segment, column in zip(shown, columns, strict=True)
        ]
        rows.append(
            {
                "y": TOP + BAR + 14 + number * (CELL + 4),
                "device": member.index,
                "state": str(member.state),
                "cells": cells,
            }
        )
    bottom = TOP + BAR + 14 + len(rows) * (CELL + 4)
    spares = ", ".join(str(device) for device, _ in disk.array.spares)
    return {
        "columns": columns,
        "rows": rows,
        "k": leg.k,
        "m": leg.m,
        "cell": CELL,
        "left": LEFT,
        "bar_top": TOP,
        "bar": BAR,
        "bottom": bottom,
        "width": LEFT + SHOWN * CELL + 20,
        "height": bottom + 80,
        "spares": spares,
        "counts": {
            "free": table.free_count(),
            "sealed": len(table.sealed),
            "dead": len(table.dead),
        },
        "left_out": disk.geometry.segments - len(shown),
        "layout": disk.geometry.layout,
        "shades": [_shade(part / 7) for part in range(8)],
    }


def _shown(disk: LogStructuredDisk) -> list[int]:
    """Return the segments in use, and free ones up to SHOWN in all."""
    table = disk.state.segments
    used = sorted([*table.sealed, *table.dead])[:SHOWN]
    free = (
        segment
        for segment in range(disk.geometry.segments)
        if segment not in table.sealed and segment not in table.dead
    )
    return sorted([*used, *islice(free, SHOWN - len(used))])


def _title(disk: LogStructuredDisk, segment: int) -> str:
    table = disk.state.segments
    if (usage := table.sealed.get(segment)) is not None:
        unit = "units" if table.addressing.bits else "chunks"
        live = f"{usage.live} of {table.units} {unit} live"
        return f"segment {segment}: {live}, filled at {usage.filled}"
    state = "dead, free after the next checkpoint" if segment in table.dead else "free"
    return f"segment {segment}: {state}"


def _shade(age: float) -> str:
    """Return the colour of a segment by age: dark blue for the oldest (0) to light orange (1)."""
    old, young = (31, 78, 140), (250, 176, 84)
    return "#" + "".join(f"{round(a + (b - a) * age):02x}" for a, b in zip(old, young, strict=True))
