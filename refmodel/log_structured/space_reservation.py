"""Space reservation: what must be free before an operation is logged, and how it is made free.

Everything that an operation may need is found before it is logged, so once it is durable nothing
can stop it. What the cleaner, checkpoints and reclaim need is never given to users: a full disk can
still delete, clean and recover.
"""

from refmodel.core.errors import BadRequest, NoSpace
from refmodel.journal.record import Record
from refmodel.log_structured.checkpointing import Checkpointer, Earned
from refmodel.log_structured.cleaning import WRITES, Cleaning
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.snapshots.space_report import pinned
from refmodel.log_structured.state import DiskState

SERVICE_MAPS = (
    MapKind.MIDDLE,
    MapKind.SEGMENT_OWNERS,
    MapKind.SEGMENT_USAGE,
    MapKind.VIEWS,
    MapKind.FINGERPRINTS,
    MapKind.REFERENCES,
)
PLENTY = 256  # pages


class SpaceReservation:
    """Makes space for operations, by cleaning, reclaim and checkpoints."""

    def __init__(self, state: DiskState, cleaning: Cleaning, checkpoints: Checkpointer) -> None:
        self._state = state
        self._checkpoints = checkpoints
        self._cleaning = cleaning
        self._refused_at = -1  # the disk's clock at the last refusal,
        self._pinned = ""  # and what it said about snapshots

    def reserve(self, record: Record, refusable: bool = True) -> None:
        """Make sure that there is space for an operation.

        Raises BadRequest if it can never fit the log, NoSpace if there is no space and the
        operation is refusable, DataLost.
        """
        state = self._state
        logged = record.stored_bytes
        fits = state.log.fits(logged)
        if not fits and not state.log.could_ever_fit(logged):
            raise BadRequest(
                f"{logged} bytes do not fit the log of {state.geometry.log_bytes} bytes at once"
            )
        blocks = record.count if record.kind in WRITES else 0
        if blocks and not self._has_space(blocks):
            self._reserve_chunks(record, blocks)
        if not fits:  # before segments are counted: a checkpoint takes some
            self._checkpoints.finish()
            if not state.log.fits(logged):
                self._checkpoints.run(whole=False)
        if refusable:
            if self._pages_left(record.count)[0] < 0:
                self._reserve_pages(record.count)
            if state.segments.free_count() < self._segments_for(blocks):
                self._reserve_segments(blocks)
        state.log.allocate(logged)

    def has_room(self, record: Record, refusable: bool = True) -> bool:
        """Return whether there is space for an operation besides those in flight, as it is now.

        Raises DataLost.
        """
        state = self._state
        coming = [record, *state.in_flight]
        blocks = sum([other.count for other in coming if other.kind in WRITES])
        if not state.log.fits(record.stored_bytes) or not self._has_space(blocks):
            return False
        return not refusable or (
            self._pages_left(sum([other.count for other in coming]))[0] >= 0
            and state.segments.free_count() >= self._segments_for(blocks)
        )

    def _reserve_chunks(self, record: Record, blocks: int) -> None:
        """Make sure that views hold no more chunks than the cleaner can work with."""
        state = self._state
        size = state.geometry.block_bytes
        extents = [(lba, len(data) // size) for lba, data in record.writes] or [
            (record.lba, record.count)
        ]
        lbas = [at for lba, count in extents for at in range(lba, lba + count)]
        mapped = zip(lbas, state.views.live_map.get_many(lbas), strict=True)
        held = {at: mba for at, mba in mapped if mba is not None}
        replaced = state.space_usage.freed_by(
            [mba for at, mba in held.items() if state.views.owns_alone(at, mba)]
        )
        if self._has_space(blocks, replaced):
            return
        while state.reclaimer.reclaim():  # only as far as is needed
            if self._has_space(blocks, replaced):
                return
        if self._refused_at != state.clock.now:  # nothing has changed since: no need to walk again
            self._refused_at, self._pinned = state.clock.now, pinned(state.views)
        limit = state.geometry.usable_chunks
        raise NoSpace(
            f"{state.space_usage.live} of {limit} chunks are held, {self._pinned};"
            " delete snapshots or unmap blocks"
        )

    def _has_space(self, blocks: int, replaced: int = 0) -> bool:
        """Return whether `blocks` more chunks fit, none compressed, if `replaced` units go.

        If an estimate says no, dropped chunks are removed from the maps first.
        """
        geometry, usage = self._state.geometry, self._state.space_usage
        limit = (geometry.usable_chunks - blocks) * geometry.chunk_units + replaced
        if usage.occupied_at_most() <= limit:
            return True
        if usage.is_estimate:
            self._state.chunks.remove_dropped()
        return usage.occupied_at_most() <= limit

    def _reserve_segments(self, blocks: int) -> None:
        """Free segments for what will be destaged, and one that the cleaner can move to."""
        segments, needed = self._state.segments, self._segments_for(blocks)
        self._cleaning.forced += 1
        for _ in range(4 * segments.count):
            if not self._cleaning.run() and not self._reclaim_segment():
                break
            needed = self._segments_for(blocks)
            if segments.free_count() >= needed + self._cleaning.spare:
                return
        if segments.free_count() >= needed:
            return
        raise NoSpace(
            f"{segments.free_count()} segments are free, {needed} are needed,"
            " and cleaning gains nothing"
        )

    def _reclaim_segment(self) -> bool:
        """Reclaim as many chunks as fill a segment, if there are. Returns False if nothing was."""
        state = self._state
        reclaimed, dropped = False, len(state.chunks.dropped)
        while len(state.chunks.dropped) < dropped + state.segments.blocks:
            if not state.reclaimer.reclaim():
                break
            reclaimed = True
        return reclaimed

    def _segments_for(self, blocks: int) -> int:
        """Return how many free segments the bank, what is moving and `blocks` blocks need, and the
        cleaner.
        """
        queued, chunk = self._state.space_usage.queued_units(), self._state.geometry.chunk_units
        # less than one chunk of a segment may stay empty
        return -(-(queued + blocks * chunk + chunk - 1) // self._state.segments.units) + 1

    def _reserve_pages(self, blocks: int) -> None:
        """Free pages for the maps that the operation changes, beyond those that are kept back."""
        pages, reclaimer = self._state.pages, self._state.reclaimer
        self._state.survey.finish()
        if lacking := self._lacking_pages(blocks):
            while len(pages.pending) < lacking and reclaimer.reclaim():
                pass  # the checkpoint makes usable what cleaning frees
            self._checkpoints.run()
            if self._lacking_pages(blocks) and reclaimer.reclaim_all():
                self._checkpoints.run()
            if self._lacking_pages(blocks):
                raise NoSpace(
                    f"the maps have only {pages.free_count()} pages left; delete snapshots"
                )

    def soon_lacking(self, record: Record) -> Earned | None:
        """Return which of the free pages the operation takes, and how many are left, if a
        checkpoint has to begin so that none has to be taken at once; else None.

        It begins when what is left is little beside what the changes that wait may need.
        """
        pages = self._state.pages
        if pages.unused.count() >= 2 * pages.in_use.total + PLENTY:
            return None  # a shorter calculation, for most writes
        left, copies = self._pages_left(record.count)
        return Earned(record.count * self._levels, left) if 0 < left < copies // 4 else None

    def _lacking_pages(self, blocks: int) -> int:
        """Return how many free pages too few there are for the operation and what follows it."""
        left, _ = self._pages_left(blocks)
        return max(0, -left)

    def _pages_left(self, blocks: int) -> tuple[int, int]:
        """Return how many free pages are left besides those for the operation and what follows it,
        and how many of these are for changes that wait to be merged.

        A checkpoint after cleaning and reclaim may follow.
        """
        state, pages = self._state, self._state.pages
        changes = state.views.waiting_count() + blocks  # which are merged into the trees by then
        room = state.geometry.fanout or 128  # entries that certainly fit a node
        growth = (16 if state.geometry.deduplication else 8) * (
            len(state.chunks.bank) + 2 * changes + state.segments.units
        ) // room + 32
        free = pages.unused.count()
        if free >= pages.in_use.total + growth:  # even if every node is copied
            return free - growth, 0
        waiting, logical = state.views.waiting_changes(), pages.used[MapKind.LOGICAL]
        waiting[-1] += blocks
        # each map that waits may copy what the one before has copied
        copies = sum(min((some + 1) * self._levels, logical) for some in waiting)
        # each page of these may be copied once until the next checkpoint
        service = sum(pages.used[kind] for kind in SERVICE_MAPS)
        return free - copies - service - growth, copies

    @property
    def _levels(self) -> int:
        """Number of nodes that a change of the live map may copy."""
        return self._state.views.live_map.height() + 1
