"""Draws the path of a write: the durable log, the bank, and the checkpoint slots."""

from collections.abc import Iterator
from typing import Any

from refmodel.array.component import Component
from refmodel.array.leg import Leg
from refmodel.journal import checkpoint
from refmodel.journal.record import RECORD_UNIT, Record, RecordKind, decode, stored_bytes
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.geometry import Geometry
from refmodel.observe.describe import size

COLOURS = {
    RecordKind.OPEN: "#999999",
    RecordKind.WRITE: "#1f4e8c",
    RecordKind.WRITES: "#4a86cf",
    RecordKind.PLACE: "#6b4fa0",
    RecordKind.UNMAP: "#946200",
    RecordKind.SNAPSHOT: "#2c7a3f",
    RecordKind.DELETE: "#b3261e",
    RecordKind.REVERT: "#a23b72",
}
LEFT, WIDTH = 16, 1068  # pixels
SHOWN = 48  # records that are drawn at most: the newest
BANK_ROW = 64  # chunks of the bank per row
BANK_ROWS = 4  # rows of the bank that are drawn at most


def picture(disk: LogStructuredDisk) -> dict[str, Any]:
    """Return what log.svg.j2 draws."""
    log, shape = disk.state.log, disk.geometry
    records = list(_records(disk))
    newest = records[-SHOWN:]
    bank, room = len(disk.state.chunks.bank), disk.state.segments.blocks
    cells = min(max(room, bank), BANK_ROWS * BANK_ROW)
    newest_slot = disk.state.checkpoint_number
    return {
        "width": WIDTH + 2 * LEFT,
        "left": LEFT,
        "across": WIDTH,
        "size": size(shape.log_bytes),
        "used": size(log.used()),
        "ring": list(_ring(log.tail, log.head, shape.log_bytes)),
        "head": _x(log.head, shape.log_bytes),
        "tail": _x(log.tail, shape.log_bytes),
        "mirrors": [component.member.index for component in disk.state.performance.components],
        "records": [_box(record, at) for at, record in enumerate(newest)],
        "kinds": [(kind.name.lower(), COLOURS[kind]) for kind in COLOURS],
        "count": len(records),
        "left_out": len(records) - len(newest),
        "generation": log.generation,
        "bank": bank,
        "room": room,
        "bank_cells": [_cell(at, at < bank) for at in range(cells)],
        "bank_height": -(-cells // BANK_ROW) * 14,
        "slots": [
            {"number": slot.number, "newest": slot.number == newest_slot}
            for slot in checkpoint.slots(disk.state.performance)
        ],
        "write_back": shape.write_back,
    }


def _records(disk: LogStructuredDisk) -> Iterator[Record]:
    """Yield the records that recovery would replay now, each from the first mirror that has it."""
    log, shape, leg = disk.state.log, disk.geometry, disk.state.performance
    at = log.tail
    while at < log.head:
        for component in leg.active():
            length = stored_bytes(_ring_read(leg, component, shape, at, RECORD_UNIT))
            record = None
            if length and at + length <= log.head:
                record = decode(_ring_read(leg, component, shape, at, length))
            if length and record is not None:
                yield record
                at += length
                break
        else:
            return


def _ring_read(
    leg: Leg, component: Component, shape: Geometry, position: int, length: int
) -> bytes:
    """Return bytes of one mirror of the ring, which may wrap around its end."""
    at = position % shape.log_bytes
    first = min(length, shape.log_bytes - at)
    data = leg.read_component(component, shape.log_base + at, first, "scrub") or bytes(first)
    if first == length:
        return data
    rest = length - first
    return data + (leg.read_component(component, shape.log_base, rest, "scrub") or bytes(rest))


def _x(position: int, size: int) -> float:
    return round(LEFT + WIDTH * (position % size) / size, 1)


def _ring(tail: int, head: int, size: int) -> Iterator[dict[str, float]]:
    """Yield the used part of the ring: one box, or two if it wraps around the end."""
    if head == tail:
        return
    start, end = tail % size, tail % size + (head - tail)
    for low, high in ((start, min(end, size)), (0, end - size)):
        if high > low:
            yield {"x": LEFT + WIDTH * low / size, "width": max(1.5, WIDTH * (high - low) / size)}


def _box(record: Record, at: int) -> dict[str, Any]:
    what = record.kind.name.lower()
    if record.kind in (RecordKind.WRITE, RecordKind.PLACE, RecordKind.UNMAP):
        what += f" {record.lba}"
    elif record.name:
        what += f" {record.name}"
    blocks = f", {record.count} blocks" if record.count > 1 else ""
    return {
        "x": LEFT + at * WIDTH / SHOWN,
        "width": WIDTH / SHOWN - 2,
        "colour": COLOURS[record.kind],
        "label": what,
        "title": f"record {record.sequence}, generation {record.generation}: {what}{blocks}",
    }


def _cell(at: int, full: bool) -> dict[str, Any]:
    return {"x": LEFT + at % BANK_ROW * 12, "y": at // BANK_ROW * 14, "full": full}
