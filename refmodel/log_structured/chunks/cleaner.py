"""The cleaner: moves what still lives out of sealed segments, so that they can be freed.

A policy says which segment is cleaned first. Greedy takes the one with the fewest live chunks; this
is best where all blocks are written alike. Cost-benefit weighs live chunks with age (Rosenblum and
Ousterhout, "The design and implementation of a log-structured file system", 1992).
"""

import random
from collections.abc import Callable

from refmodel.log_structured.chunks.chunk_store import ChunkStore, Emit
from refmodel.log_structured.chunks.sealed_segments import SegmentUsage
from refmodel.log_structured.chunks.space_usage import SpaceUsage
from refmodel.log_structured.chunks.victims import Cost


def _greedy(units: int, now: int) -> Cost:
    return lambda live, filled: live


def _cost_benefit(units: int, now: int) -> Cost:
    """Return the negative of (1 - u) * age / (1 + u), where u is the live share of the segment."""
    return lambda live, filled: (live - units) * (now - filled) / (live + units)


def _fifo(units: int, now: int) -> Cost:
    return lambda live, filled: filled


# Of segments in which as much lives, each finds the oldest at least as good. The least is cleaned
# first. "random" has no cost.
POLICIES: dict[str, Callable[[int, int], Cost] | None] = {  # units of a segment, the time
    "greedy": _greedy,
    "cost-benefit": _cost_benefit,
    "fifo": _fifo,
    "random": None,
}


class Cleaner:
    """Moves chunks out of victims. They are destaged when they fill a segment together with others.

    A victim may be left in parts, with operations in between: what dies meanwhile need not move.
    Only when all its chunks are destaged is a victim dead.
    """

    def __init__(self, chunks: ChunkStore, usage: SpaceUsage, policy: str, emit: Emit) -> None:
        self._chunks = chunks
        self._segments = chunks.segments
        self._usage = usage
        self._cost = POLICIES[policy]
        self._emit = emit
        # A victim as it was chosen; what is left of it: chunks.leaving
        self._victim: tuple[int, SegmentUsage] | None = None
        self._unreadable: list[int] = []  # chunks of the victim whose data is lost
        # Victims, all of whose live chunks are moving, and when they were filled
        self._emptied: dict[int, int] = {}
        self.compared = 0  # candidates, since the disk was opened

    def clean(self) -> bool:
        """Move what lives in one victim; raises NoSpace, DataLost.

        Returns False if cleaning has nothing to gain.
        """
        room = self._usage.left_in_free_segments
        if self.move(room):
            self._chunks.destage_full()
            return True
        self._forget_dead()
        if self._chunks.moving and (len(self._emptied) > 1 or self._victim is not None):
            self._chunks.destage_moving()
            return True
        return False

    def top_up(self, coming: int = 0) -> None:
        """Move as much as fills the last segment that the next checkpoint writes.

        So many units are left for what is `coming` before. Raises NoSpace, DataLost.
        """
        while self.top_up_some(self._segments.units, coming):
            pass

    def top_up_some(self, most: int, coming: int = 0) -> bool:
        """Move at most `most` units of that, out of one victim. Returns False if there is nothing
        to move, or no place for it."""
        self._chunks.deduplicate()
        room = min(most, self._usage.left_in_last_segment(coming))
        return room > 0 and self.move(room)

    def move(self, most: int) -> bool:
        """Move at most `most` units out of a victim; the action Clean of the specs.

        The last victim goes on, until nothing is left of it. Returns False if there is no victim,
        or `most` is less than one of its chunks. Raises DataLost, NoSpace.
        """
        if not self._choose():
            return False
        assert self._victim is not None
        segment, leaving = self._victim[0], self._chunks.leaving
        chosen = self._segments.addressing.fitting(leaving, most)
        for mba in chosen:
            del leaving[mba]
        if lost := self._chunks.move(chosen):
            self._unreadable += lost
            chosen = [mba for mba in chosen if mba not in lost]
            self._segments.victims.discard(segment)  # it can never be dead
        whole = not leaving
        self._emit(
            "clean",
            segment=segment,
            mbas=chosen,
            unreadable=self._unreadable,
            most=most if whole else len(chosen),
        )
        if whole:
            self.emptied(segment)
        return whole or bool(chosen)

    @property
    def has_victim(self) -> bool:
        """True if a victim is being cleaned."""
        if self._victim is None:
            return False
        segment, usage = self._victim
        return self._is_sealed(segment, usage.filled)

    @property
    def live(self) -> int:
        """Live units of the victim; 0 if there is none. Raises DataLost."""
        if not self._choose() or self._victim is None:
            return 0
        return self._segments.sealed[self._victim[0]].live

    @property
    def emptied_count(self) -> int:
        """Number of victims that are not dead, although all their live chunks are moving."""
        self._forget_dead()
        return len(self._emptied)

    def emptied(self, segment: int) -> None:
        """Note that everything that lives in the victim is moving."""
        assert self._victim is not None
        usage, self._victim = self._victim[1], None
        self._chunks.streams.cleaned(usage.stream, self._segments.clock.now - usage.filled)
        if segment in self._segments.victims:
            self._forget_dead()
            self._emptied[segment] = usage.filled
            self._segments.victims.discard(segment)

    def victim(self) -> int | None:
        """Return the segment that costs least to clean, or None if all are full or leaving.

        It compares one segment of each bucket, however many segments there are.
        """
        units, now = self._segments.units, self._segments.clock.now
        while not self._segments.victims and self._segments.learn():
            pass
        if self._cost is None:
            return self._segments.victims.any(random.Random(now))
        self.compared += self._segments.victims.bucket_count
        return self._segments.victims.cheapest(self._cost(units, now))

    def _choose(self) -> bool:
        """Choose a victim, unless one is being left. Returns False if there is none."""
        if self.has_victim:
            return True
        self._victim = None
        self._chunks.remove_dropped()
        if (segment := self.victim()) is None:
            self._chunks.leaving = {}
            return False
        self._victim, self._unreadable = (segment, self._segments.sealed[segment]), []
        moving = self._chunks.moving
        self._chunks.leaving = {
            mba: pba for mba, (pba, _) in self._chunks.living(segment).items() if mba not in moving
        }
        return True

    def _forget_dead(self) -> None:
        self._emptied = {
            segment: filled
            for segment, filled in self._emptied.items()
            if self._is_sealed(segment, filled)
        }

    def _is_sealed(self, segment: int, filled: int) -> bool:
        """Return whether a segment is sealed that was filled at this time."""
        usage = self._segments.sealed.get(segment)
        return usage is not None and usage.filled == filled
