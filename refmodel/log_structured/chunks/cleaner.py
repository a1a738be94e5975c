"""The cleaner: moves what still lives out of sealed segments, so that they can be freed.

A policy says which segment is cleaned first. Greedy takes the one with the fewest live chunks; this
is best where all blocks are written alike. Cost-benefit weighs live chunks with age (Rosenblum and
Ousterhout, "The design and implementation of a log-structured file system", 1992).
"""

import random
from collections.abc import Callable

from refmodel.core.errors import DataLost
from refmodel.log_structured.chunks.chunk_store import ChunkStore, Emit
from refmodel.log_structured.chunks.segments import SegmentUsage
from refmodel.log_structured.chunks.space_usage import SpaceUsage


def _greedy(live: int, filled: int, units: int, now: int) -> float:
    return live


def _cost_benefit(live: int, filled: int, units: int, now: int) -> float:
    """Return the negative of (1 - u) * age / (1 + u), where u is the live share of the segment."""
    return (live - units) * (now - filled) / (live + units)


def _fifo(live: int, filled: int, units: int, now: int) -> float:
    return filled


# Of segments in which as much lives, each finds the oldest at least as good. The least is cleaned
# first. "random" has no cost.
POLICIES: dict[str, Callable[[int, int, int, int], float] | None] = {
    "greedy": _greedy,
    "cost-benefit": _cost_benefit,
    "fifo": _fifo,
    "random": None,
}


class Cleaner:
    """Moves chunks out of victims. They are destaged when they fill a segment together with others.

    Only when all its chunks are destaged is a victim dead.
    """

    def __init__(self, chunks: ChunkStore, usage: SpaceUsage, policy: str, emit: Emit) -> None:
        self._chunks = chunks
        self._segments = chunks.segments
        self._usage = usage
        self._cost = POLICIES[policy]
        self._emit = emit
        self._leaving: dict[int, SegmentUsage] = {}  # victims, all of whose live chunks are moving
        self.compared = 0  # candidates, since the disk was opened

    def clean(self) -> bool:
        """Move what lives in one victim; the action Clean of the specs. Raises NoSpace, DataLost.

        Returns False if cleaning has nothing to gain.
        """
        self._chunks.remove_dropped()
        sealed = self._segments.sealed
        self._leaving = {
            segment: usage
            for segment, usage in self._leaving.items()
            if sealed.get(segment) is usage
        }
        victim = self.victim()
        if victim is not None and self.empty(victim):
            self._chunks.destage_full()
            return True
        if len(self._leaving) > 1 or victim is not None and self._chunks.moving:
            self._chunks.destage_moving()
            return True
        return False

    def top_up(self) -> None:
        """Move as much as fills the last segment that the next checkpoint writes.

        Raises NoSpace, DataLost.
        """
        self._chunks.deduplicate()
        while (room := self._usage.left_in_last_segment) and (victim := self.victim()) is not None:
            if not self._move(victim, room):
                return

    def victim(self) -> int | None:
        """Return the segment that costs least to clean, or None if all are full or leaving.

        It compares one segment of each bucket, however many segments there are.
        """
        units, now = self._segments.units, self._segments.clock.now
        if self._cost is None:
            return self._segments.victims.any(random.Random(now))
        best = None
        for live, filled, segment in self._segments.victims.oldest():
            self.compared += 1
            candidate = self._cost(live, filled, units, now), filled, segment
            if best is None or candidate < best:
                best = candidate
        return None if best is None else best[2]

    def empty(self, segment: int) -> bool:
        """Move what lives in a segment, as far as the free segments have room. Raises DataLost.

        Returns False if they had room for nothing.
        """
        usage = self._segments.sealed[segment]
        room = self._usage.left_in_free_segments
        whole = usage.live <= room
        moved = self._move(segment, room)
        if whole:
            self._chunks.streams.cleaned(usage.stream, self._segments.clock.now - usage.filled)
            if segment in self._segments.victims:
                self._leaving[segment] = usage
                self._segments.victims.discard(segment)
        return whole or moved > 0

    def _move(self, segment: int, most: int) -> int:
        """Move chunks that do not move yet, at most so many units. Returns how many chunks."""
        moved, unreadable, left = [], [], most
        for pba, mba in self._segments.living(segment):
            if not left:
                break
            if (units := self._segments.addressing.units(pba)) > left:
                continue
            try:
                if self._chunks.move(mba):
                    moved.append(mba)
                    left -= units
            except DataLost:
                unreadable.append(mba)
                self._segments.victims.discard(segment)  # it can never be dead
        self._emit("clean", segment=segment, mbas=moved, unreadable=unreadable, most=most)
        return len(moved)
