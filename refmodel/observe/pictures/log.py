"""The way of a write: the durable log, the bank that its data waits in, and the checkpoints that let the log forget."""

from collections.abc import Iterator
from typing import Any

from refmodel.journal import checkpoint
from refmodel.journal.record import RECORD_UNIT, Record, RecordKind, decode, stored_bytes
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.observe.describe import size

COLOURS = {
    RecordKind.OPEN: "#999999", RecordKind.WRITE: "#1f4e8c", RecordKind.WRITES: "#4a86cf", RecordKind.PLACE: "#6b4fa0", RecordKind.UNMAP: "#946200",
    RecordKind.SNAPSHOT: "#2c7a3f", RecordKind.DELETE: "#b3261e", RecordKind.REVERT: "#a23b72",
}  # fmt: skip
LEFT, WIDTH = 16, 1068
SHOWN = 48  # records at most, the newest
BANK_ROW = 64


def picture(disk: LogStructuredDisk) -> dict[str, Any]:
    """What log.svg.j2 draws."""
    log, shape = disk.state.log, disk.geometry
    records = list(_records(disk))
    newest = records[-SHOWN:]
    bank, room = len(disk.state.chunks.bank), disk.state.segments.blocks
    cells = max(room, bank)
    return {
        "width": WIDTH + 2 * LEFT, "left": LEFT, "across": WIDTH, "size": size(shape.log_bytes), "used": size(log.used),
        "ring": list(_ring(log.tail, log.head, shape.log_bytes)), "head": _x(log.head, shape.log_bytes), "tail": _x(log.tail, shape.log_bytes),
        "mirrors": [component.member.index for component in disk.state.performance.components],
        "records": [_box(record, at) for at, record in enumerate(newest)], "kinds": [(kind.name.lower(), COLOURS[kind]) for kind in COLOURS],
        "count": len(records), "left_out": len(records) - len(newest), "generation": log.generation,
        "bank": bank, "room": room, "bank_cells": [_cell(at, at < bank) for at in range(min(cells, 4 * BANK_ROW))],
        "bank_height": -(-min(cells, 4 * BANK_ROW) // BANK_ROW) * 14,
        "slots": [{"number": slot.number, "newest": slot.number == disk.state.checkpoint_number}
                  for slot in checkpoint.slots(disk.state.performance)],
        "write_back": shape.write_back,
    }  # fmt: skip


def _records(disk: LogStructuredDisk) -> Iterator[Record]:
    """What would be replayed after a crash now, as the first component that has it says."""
    log, shape, leg = disk.state.log, disk.geometry, disk.state.performance
    at = log.tail
    while at < log.head:
        for component in leg.active():
            header = _ring_read(leg, component, shape, at, RECORD_UNIT)
            length = stored_bytes(header)
            record = (
                decode(_ring_read(leg, component, shape, at, length))
                if length and at + length <= log.head
                else None
            )
            if record is not None:
                break
        else:
            return
        yield record
        at += length


def _ring_read(leg, component, shape, position: int, length: int) -> bytes:
    at = position % shape.log_bytes
    first = min(length, shape.log_bytes - at)
    part = leg.read_component(component, shape.log_base + at, first, "scrub") or bytes(first)
    if first == length:
        return part
    rest = length - first
    return part + (leg.read_component(component, shape.log_base, rest, "scrub") or bytes(rest))


def _x(position: int, size: int) -> float:
    return round(LEFT + WIDTH * (position % size) / size, 1)


def _ring(tail: int, head: int, size: int) -> Iterator[dict[str, float]]:
    """The used part of the ring, which may go over its end."""
    if head == tail:
        return
    start, end = tail % size, tail % size + (head - tail)
    for low, high in ((start, min(end, size)), (0, end - size)):
        if high > low:
            yield {"x": LEFT + WIDTH * low / size, "width": max(1.5, WIDTH * (high - low) / size)}


def _box(record: Record, at: int) -> dict[str, Any]:
    what = record.kind.name.lower()
    where = (
        f" {record.lba}"
        if record.kind in (RecordKind.WRITE, RecordKind.PLACE, RecordKind.UNMAP)
        else f" {record.name}"
        if record.name
        else ""
    )
    blocks = f", {record.count} blocks" if record.count > 1 else ""
    return {"x": LEFT + at * WIDTH / SHOWN, "width": WIDTH / SHOWN - 2, "colour": COLOURS[record.kind], "label": f"{what}{where}",
            "title": f"record {record.sequence}, generation {record.generation}: {what}{where}{blocks}"}  # fmt: skip


def _cell(at: int, full: bool) -> dict[str, Any]:
    return {"x": LEFT + at % BANK_ROW * 12, "y": at // BANK_ROW * 14, "full": full}
