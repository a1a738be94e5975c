"""The guest's disk as its power is cut: at random, or at a chosen point."""

from pathlib import Path
from random import Random
from typing import NamedTuple

from conformance.media.logwrites import FLUSH, FUA, Write
from conformance.media.recorded import Recorded
from conformance.media.subsets import Masks
from conformance.targets.engines.kernel.faults import Fault


class Point(NamedTuple):
    """A moment at which the power may fail, after a number of writes of an operation."""

    writes: int
    stable: bytes
    pending: list[Write]  # no flush has covered them
    atom: int  # bytes that are written whole

    @property
    def sizes(self) -> list[int]:
        """Atoms of each pending write."""
        return [len(write.atoms(self.atom)) for write in self.pending]

    def left(self, masks: Masks) -> bytes:
        """Return the content of the disk if these atoms of the pending writes survive."""
        content = bytearray(self.stable)
        for write, mask in zip(self.pending, masks, strict=True):
            end = write.offset + len(write.data)
            content.extend(bytes(max(0, end - len(content))))
            for number, part in enumerate(write.atoms(self.atom)):
                if mask >> number & 1:
                    content[part.offset : part.offset + len(part.data)] = part.data
        return bytes(content)


class Power(Recorded):
    """A Recorded with a fault between the log and what a power cut leaves. With `through`,
    the disk has no volatile cache: a write is durable when it has completed."""

    def __init__(
        self, disk: Path, log: Path, room: int, atom: int, fault: Fault, through: bool = False
    ):
        super().__init__(disk, log, room, atom)
        self._fault, self._through = fault, through
        self._next: bytes | None = None
        self.left = b""  # what the last power cut left, before the fault

    def points(self) -> list[Point]:
        """Take the writes.

        Return the moments since: before each flush, and now, which is the last.
        """
        points, writes = [], 0
        entries, self._unread = self._unread + self._new(), []
        for entry in entries:
            if entry.flags & FLUSH and self._media.pending:
                points.append(self._point(writes))
            self._media.take([entry])
            writes += entry.moves
        return [*points, self._point(writes)]

    def _point(self, writes: int) -> Point:
        return Point(writes, bytes(self._media.stable), list(self._media.pending), self._atom)

    def leave(self, content: bytes) -> None:
        """Have the next power cut leave this."""
        self._next = content

    def survives(self, choose: Random) -> bytes:
        content, self._next = self._next, None
        self.left = super().survives(choose) if content is None else content
        return self._fault.left(self.left)

    def _new(self, until: int | None = None) -> list[Write]:
        entries = super()._new(until)
        if self._through:
            entries = [entry._replace(flags=entry.flags | FUA) for entry in entries]
        return self._fault.logged(entries)
