"""Bugs of cleaning, allocation and space."""

from collections.abc import Iterable

from refmodel.bugs.registry import after, bug
from refmodel.core.errors import NoSpace
from refmodel.journal.record import Record
from refmodel.log_structured.chunks.streams import Stream
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.node import Node


@bug(
    1,
    "nilfs2 70f2fe3a2624",
    "a victim is free as soon as its chunks are on the move, before they are written elsewhere",
)
def victim_freed_early(disk: LogStructuredDisk) -> None:
    after(disk.cleaner, "_empty", lambda moved, segment: disk.state.segments._free.append(segment))


@bug(2, "nilfs2 fbb24a3a915f", "the cleaner moves a cached copy of what was at the address before")
def cleaner_moves_stale_copy(disk: LogStructuredDisk) -> None:
    chunks = disk.state.chunks
    read = chunks.read
    cache: dict[int, bytes] = {}

    def read_cached(mba: int, cause: str = "foreground") -> bytes:
        if cause != "clean":
            return read(mba, cause)
        return cache.setdefault(chunks.middle.get(mba)[0], read(mba, cause))

    chunks.read = read_cached


@bug(3, "nilfs2 143511046765", "a reader uses the address from before the move")
def reader_keeps_old_address(disk: LogStructuredDisk) -> None:
    chunks = disk.state.chunks
    read_many, lookup, known = chunks.read_many, chunks.middle.get_many, {}

    def remembered(mbas: list[int]) -> list[tuple[int, int]]:
        return [known.setdefault(mba, place) for mba, place in zip(mbas, lookup(mbas))]

    def read_where_it_was(mbas: list[int | None], cause: str = "foreground") -> list[bytes]:
        chunks.middle.get_many = remembered if cause == "foreground" else lookup
        try:
            return read_many(mbas, cause)
        finally:
            chunks.middle.get_many = lookup

    chunks.read_many = read_where_it_was


@bug(5, "f2fs 1dc0f8991d4d", "a checkpoint counts before what it refers to is durable")
def checkpoint_before_data(disk: LogStructuredDisk) -> None:
    state = disk.state

    def write_maps() -> None:
        state.segments.store()
        state.views.store()
        state.pages.write_dirty()

    state.write_maps = write_maps


@bug(7, "WiredTiger PR 227", "a dead segment is reused before a checkpoint without it is durable")
def dead_segment_reused_early(disk: LogStructuredDisk) -> None:
    segments = disk.state.segments
    after(segments, "drop", lambda _, pbas: segments.checkpointed())


@bug(
    8,
    "the rule itself: nothing that the durable checkpoint refers to is overwritten",
    "a freed page is reused at once",
)
def freed_page_reused_early(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages

    def release(_, node: Node) -> None:
        pages._released += pages.pending
        pages.pending.clear()

    after(pages, "free", release)


@bug(
    9,
    "WiredTiger 237",
    "an operation that is refused for want of space keeps the segment that it had taken",
)
def refusal_leaks_segment(disk: LogStructuredDisk) -> None:
    make, segments = disk._room.make, disk.state.segments

    def make_and_leak(record: Record, refusable: bool = True) -> None:
        try:
            make(record, refusable=refusable)
        except NoSpace:
            if segments.free_count:
                segments.open()
            raise

    disk._room.make = make_and_leak


@bug(
    10,
    "the rule itself: a move lands only where nothing is newer",
    "a chunk that was moved takes the place of a newer write",
)
def move_overwrites_newer(disk: LogStructuredDisk) -> None:
    state, chunks = disk.state, disk.state.chunks
    move, drop, destage = chunks.move, chunks.drop, chunks._destage
    blocks: dict[int, int] = {}  # of the chunks that are moving

    def move_and_remember(mba: int) -> bool:
        blocks.update((mba, lba) for lba, held in state.views.live.map.items() if held == mba)
        return move(mba)

    def drop_unless_moving(mbas: list[int]) -> None:
        drop([mba for mba in mbas if mba not in chunks.moving])

    def destage_and_land(
        *groups: Iterable[tuple[int, int]], stream: int = Stream.LONG
    ) -> list[int]:
        mbas = destage(*groups, stream=stream)
        live = state.views.live.map
        for mba in mbas:
            lba = blocks.pop(mba, None)
            if lba is not None and live.get(lba) not in (None, mba):
                live.replace([lba], [mba])
        return mbas

    chunks.move, chunks.drop, chunks._destage = (
        move_and_remember,
        drop_unless_moving,
        destage_and_land,
    )
