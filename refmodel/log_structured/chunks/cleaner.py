"""The cleaner: moves what still lives out of sealed segments, so that they can be freed.

Which segment is cleaned first is a policy. Greedy takes the one with the fewest live chunks, which is best where all blocks are written alike; cost-benefit
weighs that with age (Rosenblum and Ousterhout, "The design and implementation of a log-structured file system", 1992).
"""

import random
from collections.abc import Callable

from refmodel.core.errors import DataLost
from refmodel.log_structured.chunks.chunk_store import Chunks, Emit
from refmodel.log_structured.chunks.segments import Usage


def _greedy(usage: Usage, units: int, now: int) -> float:
    return usage.live


def _cost_benefit(usage: Usage, units: int, now: int) -> float:
    """The negative of (1 - u) * age / (1 + u)."""
    return (usage.live - units) * (now - usage.filled) / (usage.live + units)


def _fifo(usage: Usage, units: int, now: int) -> float:
    return usage.filled


def _random(usage: Usage, units: int, now: int) -> float:
    return random.Random(now << 64 | usage.filled).random()


POLICIES: dict[str, Callable[[Usage, int, int], float]] = {  # the least is cleaned first
    "greedy": _greedy,
    "cost-benefit": _cost_benefit,
    "fifo": _fifo,
    "random": _random,
}


class Cleaner:
    """A victim's chunks are destaged when they fill a segment together with others; only then is it dead."""

    def __init__(self, chunks: Chunks, policy: str, emit: Emit) -> None:
        self._chunks = chunks
        self._segments = chunks.segments
        self._cost = POLICIES[policy]
        self._emit = emit
        self._leaving: dict[int, Usage] = {}  # victims, all of whose live chunks are moving
        self.unreadable: set[int] = set()  # segments with a chunk that no copy is left of

    def clean(self) -> bool:
        """Move what lives in one victim. Says whether cleaning had anything to gain."""
        self._chunks.settle()
        sealed = self._segments.sealed
        self._leaving = {
            segment: usage
            for segment, usage in self._leaving.items()
            if sealed.get(segment) is usage
        }
        victim = self.victim()
        if victim is not None and self._empty(victim):
            self._chunks.destage_full()
            return True
        if len(self._leaving) > 1 or victim is not None and self._chunks.moving:
            self._chunks.destage_moving()
            return True
        return False

    def top_up(self) -> None:
        """Move just so much that the checkpoint that follows fills the last segment it writes."""
        while (room := self._chunks.room_at_checkpoint()) and (victim := self.victim()) is not None:
            moved = self._move(victim, room)
            if not moved:
                return

    def victim(self) -> int | None:
        """The segment that costs least to clean; None if every segment is full or leaving."""
        units, now = self._segments.units, self._segments.clock.now
        candidates = (
            (self._cost(usage, units, now), usage.filled, segment)
            for segment, usage in self._segments.sealed.items()
            if usage.live < units
            and segment not in self._leaving
            and segment not in self.unreadable
        )
        best = min(candidates, default=None)
        return None if best is None else best[2]

    def _empty(self, segment: int) -> bool:
        """Move what lives in a segment, or as much of it as the free segments have room for. Says whether they had any."""
        usage = self._segments.sealed[segment]
        room = self._chunks.room_in_free()
        whole = usage.live <= room
        moved = self._move(segment, room)
        if whole:
            self._chunks.streams.cleaned(usage.stream, self._segments.clock.now - usage.filled)
            if segment not in self.unreadable:
                self._leaving[segment] = usage
        return whole or moved > 0

    def _move(self, segment: int, most: int) -> int:
        """Move chunks that are not moving yet, at most so many units. Says how many chunks."""
        moved, unreadable, left = [], [], most
        for pba, mba in self._segments.living(segment):
            if not left:
                break
            if (units := self._segments.places.units(pba)) > left:
                continue
            try:
                if self._chunks.move(mba):
                    moved.append(mba)
                    left -= units
            except DataLost:
                unreadable.append(mba)
                self.unreadable.add(segment)
        self._emit("clean", segment=segment, mbas=moved, unreadable=unreadable, most=most)
        return len(moved)
