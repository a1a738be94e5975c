"""The capacity leg: a column a segment, a row a device, a cell the piece that the device holds."""

from typing import Any

from refmodel.array.member import ComponentState
from refmodel.log_structured.disk import LogStructuredDisk

SHOWN = 64  # segments at most
CELL = 13  # pixels
LEFT, TOP, BAR = 250, 64, 60


def picture(disk: LogStructuredDisk) -> dict[str, Any]:
    """What segments.svg.j2 draws."""
    leg, table = disk.state.capacity, disk.state.segments
    shown = _shown(disk)
    oldest = min((usage.filled for usage in table.sealed.values()), default=0)
    span = max(1, max((usage.filled for usage in table.sealed.values()), default=0) - oldest)
    columns = []
    for at, segment in enumerate(shown):
        usage = table.sealed.get(segment)
        columns.append({
            "x": LEFT + at * CELL, "segment": segment,
            "state": "sealed" if usage else "dead" if segment in table.dead else "free",
            "live": usage.live / table.units if usage else 0.0, "title": _title(disk, segment),
            "colour": _shade((usage.filled - oldest) / span) if usage else "",
        })  # fmt: skip
    rows = []
    for number, component in enumerate(leg.components):
        member = component.member
        cells = [{
            "column": column, "parity": leg.striping.piece(number, column["segment"]) >= leg.k,
            "missing": column["state"] == "sealed" and not leg.readable(component, column["segment"] * leg.stripe_bytes, leg.stripe_bytes),
        } for column in columns]  # fmt: skip
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
        "columns": columns, "rows": rows, "k": leg.k, "m": leg.m, "cell": CELL, "left": LEFT, "bar_top": TOP, "bar": BAR, "bottom": bottom,
        "width": LEFT + SHOWN * CELL + 20, "height": bottom + 80, "spares": spares,
        "counts": {"free": table.free_count, "sealed": len(table.sealed), "dead": len(table.dead)},
        "left_out": disk.geometry.segments - len(shown), "layout": disk.geometry.layout, "shades": [_shade(part / 7) for part in range(8)],
        "absent": any(component.member.state is not ComponentState.ACTIVE for component in leg.components),
    }  # fmt: skip


def _shown(disk: LogStructuredDisk) -> list[int]:
    """The segments in use, and free ones beside them as far as there is room."""
    table = disk.state.segments
    used = sorted([*table.sealed, *table.dead])[:SHOWN]
    free = (
        segment
        for segment in range(disk.geometry.segments)
        if segment not in table.sealed and segment not in table.dead
    )
    return sorted(used + [segment for segment, _ in zip(free, range(SHOWN - len(used)))])


def _title(disk: LogStructuredDisk, segment: int) -> str:
    table = disk.state.segments
    if (usage := table.sealed.get(segment)) is not None:
        return f"segment {segment}: {usage.live} of {table.units} {'units' if table.addressing.bits else 'chunks'} live, filled at {usage.filled}"
    return f"segment {segment}: " + (
        "dead, free after the next checkpoint" if segment in table.dead else "free"
    )


def _shade(age: float) -> str:
    """From the oldest, 0, to the youngest, 1: dark blue to light orange, by way of grey."""
    old, young = (31, 78, 140), (250, 176, 84)
    return "#" + "".join(f"{round(a + (b - a) * age):02x}" for a, b in zip(old, young))
