"""Geometry: the sizes that a disk is created with, and the regions that follow from them.

On the devices: what any array has (refmodel.array.layout). In the performance leg: two checkpoint
slots, the ring of the durable log, the pages. In the capacity leg: the segments, one after another.
docs/formats.md has the whole picture.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from refmodel.array.label import DEFAULT_ENGINE
from refmodel.array.layout import LAYOUTS, PAGE, ArrayGeometry, require_repairable
from refmodel.core.validation import require, require_block_bytes
from refmodel.journal.record import RECORD_UNIT

MANY_SEGMENTS = 64  # from here on there is space to separate short-lived chunks from others
RESERVE = 4  # segments kept from users where chunks are not separated
BATCH = 64  # one in so many segments is freed at a time, beyond the first
CLEANERS = ("cost-benefit", "greedy", "fifo", "random")
UNITS = 8  # parts of a block in which space is counted where chunks are compressed
MOST_REDUCED = 4  # by default there are pages for so many times the chunks that fit unreduced
REDUCTIONS = ("compression", "deduplication")


@dataclass(frozen=True, kw_only=True)
class Geometry(ArrayGeometry):
    """The parameters of the disk, fixed by `create`. The name of a size ends with its unit."""

    engine: str = DEFAULT_ENGINE
    segments: int
    segment_blocks: int
    log_bytes: int
    pages: int
    fanout: int  # most entries of a tree node; 0: as many as a page holds
    write_back: bool
    cleaner: str = "cost-benefit"
    compression: bool = False  # compress chunks to whole eighths of a block
    deduplication: bool = False  # deduplicate chunks when they are destaged

    capabilities = (
        "unmap",
        "flush",
        "snapshot",
        "delete",
        "revert",
        "crash",
        "restart",
        "device",
        "clean",
    )

    @cached_property
    def crash_profile(self) -> str:
        """The crash profile, which says what survives a power cut: "ack" or "prefix" of the
        contract.
        """
        return "prefix" if self.write_back else "ack"

    @cached_property
    def segment_bytes(self) -> int:
        """Bytes of a segment, parity left out."""
        return self.segment_blocks * self.block_bytes

    @cached_property
    def reduces(self) -> bool:
        """True if data may be stored in less space than its blocks."""
        return any(getattr(self, name) for name in REDUCTIONS)

    @cached_property
    def chunk_units(self) -> int:
        """Units of space that an uncompressed chunk takes."""
        return UNITS if self.compression else 1

    @cached_property
    def segment_units(self) -> int:
        """Units of space of a segment."""
        return self.segment_blocks * self.chunk_units

    @cached_property
    def usable_chunks(self) -> int:
        """Number of chunks that all views together may hold, without data reduction."""
        return (self.segments - self.reserve_segments) * self.segment_blocks

    @cached_property
    def separates_streams(self) -> bool:
        """True if chunks are destaged in streams. The other policies have one log, as in theory."""
        return self.segments >= MANY_SEGMENTS and self.cleaner == "cost-benefit"

    @cached_property
    def cleaning_batch(self) -> int:
        """Number of segments that are freed at a time, beyond the first."""
        return self.segments // BATCH

    @cached_property
    def reserve_segments(self) -> int:
        """Segments kept from users, so that the cleaner and checkpoints always have space."""
        return reserve(self.segments) if self.separates_streams else RESERVE

    @cached_property
    def pages_base(self) -> int:
        """Byte offset of page 0 in the performance leg."""
        end = self.log_base + self.log_bytes
        return end + -end % PAGE

    @cached_property
    def performance_bytes(self) -> int:
        """Bytes of the performance leg."""
        return self.pages_base + self.pages * PAGE

    @cached_property
    def device_bytes(self) -> int:
        """Bytes of each device."""
        return self.capacity_base + self.segments * self.segment_bytes // self.k

    def as_dict(self) -> dict[str, Any]:
        """Return what the label holds: no engine, and reductions only if they are on."""
        return {
            name: value
            for name, value in super().as_dict().items()
            if name != "engine" and (value or name not in REDUCTIONS)
        }


def plan(
    blocks: int,
    *,
    layout: str = "mirror",
    block_bytes: int = 4096,
    segment_blocks: int = 128,
    segments: int | None = None,
    log_bytes: int | None = None,
    pages: int | None = None,
    fanout: int = 0,
    write_back: bool = False,
    spares: int = 0,
    repair_timer: float = 3600.0,
    cleaner: str = "cost-benefit",
    repair_share: int = 30,
    compression: bool = False,
    deduplication: bool = False,
) -> Geometry:
    """Return the geometry of a disk of `blocks` blocks, with defaults for what is not given.

    Raises BadRequest if such a disk cannot work. By default the capacity leg holds twice the blocks
    of the disk, so that snapshots have space. The log has three times the bytes of a small disk: it
    takes one write of the whole disk, beside records that no checkpoint has freed yet. It has at
    most 64 MiB. Files are sparse: what is not used takes no space.
    """
    require(blocks >= 1, "a disk has at least 1 block")
    require(layout in LAYOUTS, f"layout {layout!r} is not one of: {', '.join(LAYOUTS)}")
    require_block_bytes(block_bytes)
    k = LAYOUTS[layout][0]
    require(
        1 <= segment_blocks <= 65536 and segment_blocks % k == 0,
        "a segment has 1 to 65536 blocks" + (f", a multiple of {k}" if k > 1 else ""),
    )
    require_repairable(spares, repair_timer, repair_share)
    require(
        fanout == 0 or 3 <= fanout <= 128,
        "the fanout is 3 to 128, or 0 for as many entries as a page has room for",
    )
    if segments is None:
        segments = with_reserve(-(-2 * blocks // segment_blocks) + 1)
    require(
        segments > reserve(segments),
        f"at least {reserve(segments) + 1} segments, of which {reserve(segments)} are a reserve",
    )
    require(cleaner in CLEANERS, f"cleaner {cleaner!r} is not one of: {', '.join(CLEANERS)}")
    smallest_log = 2 * (RECORD_UNIT + block_bytes) + 4 * RECORD_UNIT
    if log_bytes is None:
        log_bytes = max(smallest_log, min(3 * blocks * block_bytes + (1 << 16), 1 << 26))
        log_bytes += -log_bytes % PAGE
    require(
        log_bytes >= smallest_log and log_bytes % RECORD_UNIT == 0,
        f"the log has at least {smallest_log} bytes, a multiple of {RECORD_UNIT}",
    )
    needed = "a disk has at least 64 pages for tree nodes"
    if pages is None:
        fill = max(1, (fanout or 128) // 3)  # entries of a leaf that has seen random removals
        chunks = segments * segment_blocks * (MOST_REDUCED if compression or deduplication else 1)
        pages = 256 + 2 * ((5 if deduplication else 3) * chunks + 2 * blocks) // fill
        needed = (
            f"a disk of {blocks} blocks and {segments} segments needs {pages} pages for tree nodes"
        )
    require(64 <= pages < 1 << 32, f"{needed}, and there are fewer than 2^32")
    return Geometry(
        blocks=blocks,
        block_bytes=block_bytes,
        layout=layout,
        segments=segments,
        segment_blocks=segment_blocks,
        log_bytes=log_bytes,
        pages=pages,
        fanout=fanout,
        write_back=write_back,
        spares=spares,
        repair_timer=repair_timer,
        cleaner=cleaner,
        repair_share=repair_share,
        compression=compression,
        deduplication=deduplication,
    )


def reserve(segments: int) -> int:
    """Return how many of `segments` segments are kept from users, at most.

    With many segments each stream needs some, and cleaning should be cheap.
    """
    return RESERVE if segments < MANY_SEGMENTS else 12 + segments // 16


def with_reserve(segments: int) -> int:
    """Return how many segments there must be so that users get `segments`."""
    total = segments
    while total < (needed := segments + reserve(total)):
        total = needed
    return total
