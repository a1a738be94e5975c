"""The cleaner: moves what still lives out of sealed segments, so that they can be freed.

Greedy: the victim is the segment with the fewest live chunks (Rosenblum and Ousterhout, "The design and implementation of a log-structured
file system", 1992, discuss it against cost-benefit).
"""

from refmodel.chunks import Chunks, Emit
from refmodel.errors import DataLost
from refmodel.segments import Usage


class Cleaner:
    """A victim's chunks are destaged when they fill a segment together with others; only then is it dead."""

    def __init__(self, chunks: Chunks, emit: Emit) -> None:
        self._chunks = chunks
        self._segments = chunks.segments
        self._emit = emit
        self._leaving: dict[int, Usage] = {}  # victims, all of whose live chunks are moving
        self.unreadable: set[int] = set()  # segments with a chunk that no copy is left of

    def clean(self) -> bool:
        """Move what lives in one victim. Says whether cleaning had anything to gain."""
        sealed = self._segments.sealed
        self._leaving = {segment: usage for segment, usage in self._leaving.items() if sealed.get(segment) is usage}
        victim = self.victim()
        if victim is not None:
            self._empty(victim)
            self._chunks.destage_full()
        elif len(self._leaving) > 1:
            self._chunks.destage_moving()
        return victim is not None or len(self._leaving) > 1

    def victim(self) -> int | None:
        """The segment that costs least to clean; None if every segment is full or leaving."""
        candidates = (
            (usage.live, usage.filled, segment)
            for segment, usage in self._segments.sealed.items()
            if usage.live < self._segments.blocks and segment not in self._leaving and segment not in self.unreadable
        )
        best = min(candidates, default=None)
        return None if best is None else best[2]

    def _empty(self, segment: int) -> None:
        moved = 0
        for _, mba in self._segments.living(segment):
            try:
                self._chunks.move(mba)
                moved += 1
            except DataLost:
                self.unreadable.add(segment)
        if segment not in self.unreadable:
            self._leaving[segment] = self._segments.sealed[segment]
        self._emit("clean", segment=segment, moved=moved)
