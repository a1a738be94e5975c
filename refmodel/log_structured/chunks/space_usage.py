"""The space that chunks take and that is left, in units. Nothing here changes the disk.

A unit is a block, or an eighth of a block where chunks are compressed.
"""

from collections import Counter

from refmodel.log_structured.chunks.chunk_store import ChunkStore
from refmodel.log_structured.chunks.deduplication import ALIAS, target_of
from refmodel.log_structured.chunks.streams import Stream
from refmodel.log_structured.geometry import Geometry


class SpaceUsage:
    """The space that the chunks of one disk take."""

    def __init__(self, chunks: ChunkStore, geometry: Geometry) -> None:
        self._chunks = chunks
        self._segments = chunks.segments
        self._addressing = chunks.segments.addressing
        self._compresses = geometry.compression
        self._deduplicates = geometry.deduplication
        self.is_estimate = geometry.reduces  # whether `occupied_at_most` may be too high

    def occupied_at_most(self) -> int:
        """Units that chunks take which some view holds. It costs no walk of a map.

        Where data is reduced, dropped chunks count until `remove_dropped` has dealt with them.
        """
        dropped = 0 if self.is_estimate else len(self._chunks.dropped)
        return self.bank_units() + self._segments.live - dropped

    @property
    def occupied(self) -> int:
        """Units that chunks take which some view holds, exactly. Raises DataLost."""
        if not self.is_estimate:
            return self.occupied_at_most()
        return self.occupied_at_most() - self._dropped_units()

    @property
    def live(self) -> int:
        """Number of chunks that views hold; with data reduction, their space in whole blocks.

        Raises DataLost.
        """
        return -(-self.occupied * self._segments.blocks // self._segments.units)

    def bank_units(self) -> int:
        """Units that the chunks of the bank would take."""
        if not self._compresses:
            return len(self._chunks.bank)
        return sum(map(len, self._chunks.bank.values())) // self._addressing.unit_bytes

    @property
    def units_to_destage(self) -> int:
        """Units that destaging the bank takes, but for duplicates that are found by now."""
        if not self._deduplicates:
            return self.bank_units()
        return sum(units for _, units in self._chunks.lengths(self._chunks.bank))

    def queued_units(self) -> int:
        """Units that the chunks of the bank, and those that move, would take."""
        moving = self._chunks.moving
        if not self._compresses:
            return len(self._chunks.bank) + len(moving)
        return self.bank_units() + sum(map(len, moving.values())) // self._addressing.unit_bytes

    def left_in_last_segment(self, coming: int) -> int:
        """Return the units left in the last segment that destaging the bank and `moving` writes.

        So many units are `coming` into the bank before. New chunks must have been deduplicated.
        """
        moving = self.queued_units() - self.bank_units()
        return max(0, -(self.units_to_destage + coming) % self._segments.units - moving)

    @property
    def left_in_free_segments(self) -> int:
        """Units that the free segments take, beyond what is queued to be destaged."""
        queued = sum([queue.units for queue in self._chunks.queues])
        return max(0, self._segments.free_count() * self._segments.units - queued)

    @property
    def mixes_little(self) -> bool:
        """True if destaging the bank now would put few short-lived chunks among others."""
        queues = self._chunks.queues
        return len(queues) > 1 and 8 * queues[Stream.SHORT].units <= self._segments.units

    def freed_by(self, mbas: list[int]) -> int:
        """Return how many units dropping the chunks frees; at least, where chunks are shared."""
        if not self.is_estimate:
            return len(mbas)
        chunks, deduplication = self._chunks, self._chunks.deduplication
        banked = [mba for mba in mbas if mba in chunks.bank]
        stored = [
            (mba, entry[0])
            for mba, entry in zip(mbas, chunks.middle.get_many(mbas), strict=True)
            if entry is not None and not entry[0] & ALIAS
        ]
        if self._deduplicates:
            banked = [mba for mba in banked if not deduplication.has_duplicate(mba)]
            stored = [(mba, pba) for mba, pba in stored if not deduplication.is_shared(mba)]
        return sum(self._addressing.units_of(chunks.bank[mba]) for mba in banked) + sum(
            self._addressing.units(pba) for _, pba in stored
        )

    def _dropped_units(self) -> int:
        """Return how many units `remove_dropped` would free."""
        chunks, deduplication = self._chunks, self._chunks.deduplication
        dropped = Counter(
            target_of(entry[0]) if entry[0] & ALIAS else mba
            for mba, entry in zip(
                chunks.dropped, chunks.middle.get_many(chunks.dropped), strict=True
            )
            if entry is not None
        )
        freed = [
            mba for mba, count in dropped.items() if count >= deduplication.reference_count(mba)
        ]
        return sum(
            self._addressing.units(entry[0])
            for entry in chunks.middle.get_many(freed)
            if entry is not None
        )
