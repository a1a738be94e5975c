"""Describes the inside of a disk in words: its shape, log, views, maps and segments."""

from collections.abc import Iterator

from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.geometry import REDUCTIONS
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.snapshots.views import View

SEGMENTS_SHOWN = 64


def describe(disk: LogStructuredDisk) -> str:
    """Return a description of a few dozen lines. Raises DataLost."""
    disk.state.survey.finish()
    parts = (_shape(disk), _log(disk), _views(disk), _maps(disk), _segments(disk))
    return "\n\n".join("\n".join(part) for part in parts)


def _shape(disk: LogStructuredDisk) -> Iterator[str]:
    shape = disk.geometry
    whole = size(shape.blocks * shape.block_bytes)
    yield f"disk      {counted(shape.blocks, 'block')} of {size(shape.block_bytes)}: {whole}"
    yield f"layout    {shape.layout} on {shape.devices} devices of {size(shape.device_bytes)}"
    if shape.reduces:
        names = ", ".join(name for name in REDUCTIONS if getattr(shape, name))
        unit = size(shape.block_bytes // shape.chunk_units)
        yield f"reduction {names}; space is counted in units of {unit}"
    if shape.write_back:
        yield "profile   prefix: write-back is on, a flush makes operations durable"
    else:
        yield "profile   ack: acknowledged operations are durable"


def _log(disk: LogStructuredDisk) -> Iterator[str]:
    log = disk.state.log
    number = disk.state.checkpoint_number
    used, whole = size(log.used()), size(disk.geometry.log_bytes)
    yield f"durable log   {used} of {whole} used, from position {log.tail} to {log.head}"
    yield f"              next record {log.sequence}, generation {log.generation}"
    rewritten = copies(log.remirrored)
    yield f"              recovery rewrote {rewritten} of records that were wrong or absent"
    increments = disk.state.increments.page_count
    kind = f"an increment, with {counted(increments, 'page')} of changes" if increments else "whole"
    yield f"checkpoint    number {number}, in slot {number % 2}, {kind}"
    yield f"bank          {counted(len(disk.state.chunks.bank), 'chunk')} to be destaged"


def _views(disk: LogStructuredDisk) -> Iterator[str]:
    views = disk.state.views
    yield "views"

    def below(parent: int, depth: int) -> Iterator[str]:
        for view in sorted(
            views.children(parent), key=lambda view: (view.taken or 1 << 64, view.id)
        ):
            yield f"  {'   ' * depth}{_view(view)}"
            yield from below(view.id, depth + 1)

    yield from below(0, 0)


def _view(view: View) -> str:
    mapped = sum(1 for _ in view.map.items())
    what = f"{counted(mapped, 'block')} mapped, root page {view.map.root or 'none'}"
    if view.name:
        return f"{view.name}: {what}, taken at {view.taken}"
    if view.taken:
        return f"(deleted): reclaim has reached block {view.cursor}"
    return f"live: {what}"


def _maps(disk: LogStructuredDisk) -> Iterator[str]:
    pages = disk.state.pages
    names = {
        MapKind.LOGICAL: "logical maps (LBA to MBA)",
        MapKind.MIDDLE: "middle map (MBA to PBA)",
        MapKind.SEGMENT_OWNERS: "segment owners (PBA to MBA)",
        MapKind.SEGMENT_USAGE: "segment usage table",
        MapKind.VIEWS: "view table",
    }
    if disk.geometry.deduplication:
        names |= {MapKind.FINGERPRINTS: "index of fingerprints", MapKind.REFERENCES: "references"}
    yield f"pages     {pages.used_count} in use, {pages.free_count()} free"
    yield f"          {len(pages.pending)} become free at the next whole checkpoint"
    yield f"          {len(pages.of_changes)} have changes since the last whole checkpoint"
    for kind, name in names.items():
        yield f"  {name:<28} {pages.used[kind]:>6} {'node' if pages.used[kind] == 1 else 'nodes'}"
    if pages.damaged:
        yield f"  pages without a good copy: {', '.join(map(str, pages.damaged))}"


def _segments(disk: LogStructuredDisk) -> Iterator[str]:
    segments, shape = disk.state.segments, disk.geometry
    yield (
        f"segments  {len(segments.sealed)} sealed, {len(segments.dead)} dead, "
        f"{segments.free_count()} free ({shape.reserve_segments} reserved for the cleaner)"
    )
    yield f"          {disk.state.space_usage.live} of {shape.usable_chunks} usable chunks are live"
    for segment, usage in sorted(segments.sealed.items())[:SEGMENTS_SHOWN]:
        bar = ("#" * round(32 * usage.live / segments.units)).ljust(32, ".")
        yield f"  {segment:>6}  {bar}  {usage.live}/{segments.units} live, filled at {usage.filled}"
    if len(segments.sealed) > SEGMENTS_SHOWN:
        yield f"  and {len(segments.sealed) - SEGMENTS_SHOWN} more"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 block` or `8 blocks`."""
    return f"{number} {noun}" + "s" * (number != 1)


def copies(number: int) -> str:
    """Return a number of copies, such as `1 copy` or `2 copies`."""
    return "1 copy" if number == 1 else f"{number} copies"


def size(count: float) -> str:
    """Return a number of bytes with a unit, as in `4 KiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.4g} {unit}"
        count = count / 1024
    raise AssertionError
