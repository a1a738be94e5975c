"""Room: what has to be free before an operation is logged, and how it is made.

Everything that an operation may need is found before it is logged, so that once it is durable nothing can stop it. What the cleaner,
checkpoints and reclaim need is never given to users: a full disk can still delete, clean and recover.
"""

from refmodel.core.errors import BadRequest, NoSpace
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.chunks.cleaner import Cleaner
from refmodel.log_structured.maps.node import Kind as Map
from refmodel.log_structured.space_report import pinned
from refmodel.log_structured.state import State

SERVICE_MAPS = (
    Map.MIDDLE,
    Map.SEGMENT_OWNERS,
    Map.SEGMENT_USAGE,
    Map.VIEWS,
    Map.FINGERPRINTS,
    Map.REFERENCES,
)
WRITES = (RecordKind.WRITE, RecordKind.WRITES, RecordKind.PLACE)
AHEAD = 3  # free segments more than are needed, at which to clean as soon as that mixes little


class Room:
    def __init__(self, state: State, cleaner: Cleaner) -> None:
        self._state = state
        self._cleaner = cleaner
        self._refused_at = -1
        self._pinned = ""

    def make(self, record: Record, refusable: bool = True) -> None:
        """Make room for an operation, or for writes that are logged together. Raises NoSpace if there is none, unless they may not be refused."""
        state = self._state
        logged = record.stored_bytes
        if not state.log.could_ever_fit(logged):
            raise BadRequest(
                f"{logged} bytes do not fit the log of {state.geometry.log_bytes} at once"
            )
        blocks = record.count if record.kind in WRITES else 0
        if blocks:
            self._chunks(record, blocks)
        if refusable:
            self._pages(record.count)
            self._segments(blocks)
        if not state.log.fits(logged):
            state.checkpoint()

    def clean(self) -> bool:
        """Clean until some segments have died, and free them. Says whether there was anything to gain.

        The gain may be no more than that dead slots have come together; so the next call may gain a segment.
        """
        state, segments = self._state, self._state.segments
        state.chunks.settle()
        while len(segments.dead) <= state.geometry.cleaning_batch:
            if segments.dead and segments.free_count <= state.chunks.streams.count:
                break
            if not self._cleaner.clean():
                break
        if not segments.dead:
            return False
        self._cleaner.top_up()
        state.checkpoint()
        return True

    def _chunks(self, record: Record, blocks: int) -> None:
        """All views together must not hold more chunks than the cleaner can work with."""
        state = self._state
        if not self._too_many(blocks):
            return
        size = state.geometry.block_bytes
        extents = [(lba, len(data) // size) for lba, data in record.writes] or [
            (record.lba, record.count)
        ]
        lbas = [at for lba, count in extents for at in range(lba, lba + count)]
        held = {
            at: mba for at, mba in zip(lbas, state.views.live.map.get_many(lbas)) if mba is not None
        }
        replaced = state.chunks.freed_by(
            [mba for at, mba in held.items() if state.views.owns_alone(at, mba)]
        )
        if not self._too_many(blocks, replaced):
            return
        state.reclaim.finish()
        if not self._too_many(blocks, replaced):
            return
        if (
            self._refused_at != state.clock.now
        ):  # a refusal changes nothing, so the next one need not walk all maps again
            self._refused_at, self._pinned = state.clock.now, pinned(state.views)
        limit = state.geometry.usable_chunks
        raise NoSpace(
            f"{state.chunks.live} of {limit} chunks are held, {self._pinned}; delete snapshots or unmap blocks"
        )

    def _too_many(self, blocks: int, replaced: int = 0) -> bool:
        """Whether there is no space for so many more chunks, none of which may compress, when so many units go."""
        chunks, geometry = self._state.chunks, self._state.geometry
        limit = (geometry.usable_chunks - blocks) * geometry.chunk_units + replaced
        if chunks.occupied > limit:
            chunks.settle_if_estimated()
        return chunks.occupied > limit

    def _segments(self, blocks: int) -> None:
        """Free segments for what will be destaged, and one that the cleaner can move to."""
        segments, chunks = self._state.segments, self._state.chunks
        if segments.free_count <= chunks.streams.count + AHEAD and chunks.mixes_little():
            self.clean()
        chunk = self._state.geometry.chunk_units
        units = chunks.bank_units + blocks * chunk + chunk - 1  # less than a chunk's may stay empty
        needed = -(-units // segments.units) + chunks.streams.count
        for _ in range(4 * segments.count):
            if segments.free_count >= needed:
                return
            if not self.clean():
                break
        raise NoSpace(
            f"{segments.free_count} segments are free, {needed} are needed, and cleaning gains nothing"
        )

    def _pages(self, blocks: int) -> None:
        """Free pages for the maps that the operation changes, beyond those that are kept back."""
        if self._pages_short(blocks):
            self._state.reclaim.finish()
            self._state.checkpoint()
            if self._pages_short(blocks):
                raise NoSpace(
                    f"the maps have only {self._state.pages.free_count} pages left; delete snapshots"
                )

    def _pages_short(self, blocks: int) -> bool:
        """Whether the operation, and then a checkpoint after cleaning and reclaim, could run out of pages."""
        state, pages = self._state, self._state.pages
        blocks += len(state.views.live.map.recent)  # which go into the tree by then
        room = state.geometry.fanout or 128  # entries that a node certainly has room for
        growth = (16 if state.geometry.deduplication else 8) * (
            len(state.chunks.bank) + 2 * blocks + state.segments.units
        ) // room + 32
        if pages.free_count >= len(pages.in_use) + growth:  # though every node be copied
            return False
        copies = min((blocks + 1) * (state.views.live.map.height() + 1), pages.used[Map.LOGICAL])
        service = sum(
            pages.used[kind] for kind in SERVICE_MAPS
        )  # each may be copied once until the next checkpoint
        return pages.free_count < copies + service + growth
