"""The shape of the disks that the adapter creates, from the options that the kit chooses."""

from typing import Any

from refmodel.array.layout import LAYOUTS
from refmodel.engine.shape import Shape
from refmodel.inplace.geometry import InPlaceGeometry
from refmodel.journal.record import RECORD_UNIT, record_bytes
from refmodel.log_structured.chunks.large_writes import payload_bytes
from refmodel.log_structured.geometry import Geometry, with_reserve
from refmodel.redolog.geometry import RedoLogGeometry
from refmodel.registry import DEFAULT, plan


def plan_disk(
    engine: str, blocks: int, capacity_percent: int | None, options: dict[str, Any]
) -> Shape:
    """Return the shape of a disk of `blocks` blocks.

    For the log-structured engine, the segment size is rounded up to whole stripes, and
    `capacity_percent` sizes the capacity leg, in percent of the blocks, without the reserve. The
    log is made large enough for a write of the whole disk. Raises BadRequest if there is no such
    shape.
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
    planned = plan(DEFAULT, blocks, **shape)
    assert isinstance(planned, Geometry)
    needed = longest_record(planned)
    if planned.log_bytes >= needed:
        return planned
    return plan(DEFAULT, blocks, **shape | {"log_bytes": needed})


def longest_record(shape: Geometry) -> int:
    """Return how many bytes of the log a write may take, with the record of an opening before it.

    The log has the data of what fills no segment, and the table of the segments that are full.
    """
    most_data = min(shape.blocks, shape.segment_blocks - 1) * shape.block_bytes
    most_table = payload_bytes(shape, shape.blocks // shape.segment_blocks * shape.segment_bytes)
    return RECORD_UNIT + record_bytes(most_table + most_data)


def holding(shape: Shape, *, few_pages: bool) -> dict[str, int]:
    """Return what the answer to `create` says of space: `holds`, in blocks, and `snapshots`.

    `few_pages` says that the maps may run out of pages first: then what fits is not known.
    """
    if isinstance(shape, RedoLogGeometry):  # each layer has room for every block
        # Of n snapshots and live each may have a layer, and so may each point where they part.
        # One layer more is kept for revert.
        return {"holds": shape.layers * shape.blocks, "snapshots": (shape.layers - 1) // 2}
    if isinstance(shape, InPlaceGeometry):  # a write that is too large for the journal is refused
        return {"holds": min(shape.longest_write // shape.block_bytes, 2 * shape.blocks)}
    assert isinstance(shape, Geometry)
    if few_pages or shape.cleaner not in ("cost-benefit", "greedy"):  # others may gain nothing
        return {}
    return {"holds": shape.usable_chunks}


def repairing(shape: Shape) -> dict[str, float]:
    """Return what `hello` says of spares: how many, and after how many seconds one takes the place
    of an absent device.
    """
    if isinstance(shape, RedoLogGeometry) or not (spares := getattr(shape, "spares", 0)):
        return {}
    return {"spares": spares, "repair_seconds": getattr(shape, "repair_timer", 0)}


def created(shape: Geometry) -> dict[str, Any]:
    """Return the inner event `create`, which begins the events of a log-structured disk."""
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
