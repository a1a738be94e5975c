"""Bugs of cleaning, allocation and space."""

from collections.abc import Iterable, Sequence

from refmodel.bugs.registry import after, bug, override
from refmodel.core.errors import NoSpace
from refmodel.journal.record import Record
from refmodel.log_structured.chunks.chunk_store import Located
from refmodel.log_structured.chunks.streams import Stream
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.node import MiddleEntry, Node


@bug(
    1,
    "nilfs2 70f2fe3a2624",
    "a victim is free as soon as its chunks are moving, before they are written elsewhere",
)
def victim_freed_early(disk: LogStructuredDisk) -> None:
    segments = disk.state.segments
    after(disk.cleaner, "emptied", lambda _, segment: segments.add_free(segment))


@bug(2, "nilfs2 fbb24a3a915f", "the cleaner moves a cached copy of what was at the address before")
def cleaner_moves_stale_copy(disk: LogStructuredDisk) -> None:
    chunks = disk.state.chunks
    read_many = chunks.read_many
    cache: dict[int, bytes] = {}

    def read_cached(mbas: Sequence[int | None], cause: str = "foreground") -> list[bytes]:
        entries = chunks.middle.get_many([mba for mba in mbas if mba is not None])
        if cause != "clean" or None in entries:
            return read_many(mbas, cause)
        found = zip(entries, read_many(mbas, cause), strict=True)
        return [cache.setdefault(entry[0], data) for entry, data in found if entry is not None]

    override(chunks, "read_many", read_cached)


@bug(3, "nilfs2 143511046765", "a reader uses the address from before the move")
def reader_keeps_old_address(disk: LogStructuredDisk) -> None:
    chunks = disk.state.chunks
    locate, lookup = chunks.locate, chunks.middle.get_many
    known: dict[int, MiddleEntry | None] = {}

    def remembered(mbas: Sequence[int]) -> list[MiddleEntry | None]:
        return [known.setdefault(mba, entry) for mba, entry in zip(mbas, lookup(mbas), strict=True)]

    def locate_where_it_was(mbas: Sequence[int | None], cause: str = "foreground") -> Located:
        override(chunks.middle, "get_many", remembered if cause == "foreground" else lookup)
        try:
            return locate(mbas, cause)
        finally:
            override(chunks.middle, "get_many", lookup)

    override(chunks, "locate", locate_where_it_was)


@bug(5, "f2fs 1dc0f8991d4d", "a checkpoint counts before what it refers to is durable")
def checkpoint_before_data(disk: LogStructuredDisk) -> None:
    override(disk.state, "flush_for_checkpoint", lambda: None)


@bug(7, "WiredTiger PR 227", "a dead segment is reused before a checkpoint without it is durable")
def dead_segment_reused_early(disk: LogStructuredDisk) -> None:
    segments = disk.state.segments

    def free(_: None, pbas: list[int]) -> None:
        segments.freeze()
        segments.free()

    after(segments, "remove_chunks", free)


@bug(
    8,
    "the rule itself: nothing that the durable checkpoint refers to is overwritten",
    "a freed page is reused at once",
)
def freed_page_reused_early(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages

    def free_at_once(_: None, node: Node) -> None:
        pages.free_pending(len(pages.pending))

    after(pages, "free", free_at_once)


@bug(
    9,
    "WiredTiger 237",
    "an operation that is refused for want of space keeps the segment that it had taken",
)
def refusal_leaks_segment(disk: LogStructuredDisk) -> None:
    reserve, segments = disk.space.reserve, disk.state.segments

    def reserve_and_leak(record: Record, refusable: bool = True) -> None:
        try:
            reserve(record, refusable=refusable)
        except NoSpace:
            if segments.free_count():
                segments.open()
            raise

    override(disk.space, "reserve", reserve_and_leak)


@bug(
    10,
    "the rule itself: a move changes a place only where nothing is newer",
    "a chunk that was moved takes the place of a newer write",
)
def move_overwrites_newer(disk: LogStructuredDisk) -> None:
    state, chunks = disk.state, disk.state.chunks
    move, drop, destage = chunks.move, chunks.drop, chunks.destage
    blocks: dict[int, int] = {}  # chunk -> LBA, of those that are moving

    def move_and_remember(mbas: list[int]) -> list[int]:
        blocks.update((mba, lba) for lba, mba in state.views.live.map.items() if mba in mbas)
        return move(mbas)

    def drop_unless_moving(mbas: list[int]) -> None:
        drop([mba for mba in mbas if mba not in chunks.moving])

    def destage_and_map(*groups: Iterable[tuple[int, int]], stream: int = Stream.LONG) -> list[int]:
        mbas = destage(*groups, stream=stream)
        live = state.views.live_map
        for mba in mbas:
            lba = blocks.pop(mba, None)
            if lba is not None and live.get(lba) not in (None, mba):
                live.replace([lba], [mba])
        return mbas

    override(chunks, "move", move_and_remember)
    override(chunks, "drop", drop_unless_moving)
    override(chunks, "destage", destage_and_map)
