"""The shape of the disks that the adapter creates, from the options that the kit chooses."""

from typing import Any

from refmodel.array.layout import LAYOUTS
from refmodel.engine.shape import Shape
from refmodel.log_structured.geometry import Geometry, with_reserve
from refmodel.registry import DEFAULT, plan


def plan_disk(
    engine: str, blocks: int, capacity_percent: int | None, options: dict[str, Any]
) -> Shape:
    """The shape of a disk of `blocks` blocks.

    For the log-structured engine, the segment size is rounded up to whole stripes, and
    `capacity_percent` sizes the capacity leg, in percent of the blocks, without the reserve. Raises
    BadRequest if there is no such shape.
    """
    if engine != DEFAULT:
        return plan(engine, blocks, **options)
    shape = dict(options)
    k, _ = LAYOUTS.get(shape.get("layout", "mirror"), (1, 0))  # another layout: plan refuses it
    per_segment = shape.get("segment_blocks", 128)
    shape["segment_blocks"] = per_segment + -per_segment % k
    if capacity_percent is not None:
        whole = -(-blocks * capacity_percent // (100 * shape["segment_blocks"]))
        shape["segments"] = with_reserve(whole)
    return plan(DEFAULT, blocks, **shape)


def created(shape: Geometry) -> dict[str, Any]:
    """The inner event `create`, which begins the events of a log-structured disk."""
    return {
        "event": "create",
        "blocks": shape.blocks,
        "segments": shape.segments,
        "stripe": shape.segment_blocks,
        "k": shape.k,
        "m": shape.m,
        "devices": shape.devices,
        "timer": shape.repair_timer,
        "log": shape.log_bytes,
    }
