"""Programs on disks that are full, or nearly full, for a long time.

Snapshots keep what is written over until nothing fits any more, and most of them stay. The
program goes on like any other: with overwrites, reads, reverts, power cuts, devices that come and
go. Now and then a little room is made, and written up again.
"""

from conformance.contract.source import rarely
from conformance.programs.swarm import BETWEEN, NEEDS, ROOM
from conformance.programs.writer import Writer

FULL_ONE_IN = 6  # programs
ROUNDS = (1, 2, 3, 5)  # times that the disk is written anew, a snapshot before each
SMALL = (0, 0, 1, 4)  # snapshots and single blocks at the end
BRIM_ONE_IN = 16  # steps of such a program


class FullWriter(Writer):
    """Writes programs, of which one in FULL_ONE_IN begins with a disk that is full."""

    def _prepare(self) -> None:
        super()._prepare()
        if not rarely(self._choose, FULL_ONE_IN):
            return
        self._kinds += ["brim"] * (1 + len(self._kinds) // BRIM_ONE_IN)
        for _ in range(self._one_of(ROUNDS)):
            if "snapshot" in self._capabilities:
                self._add("snapshot")
            self._write_to_the_brim()
        self._kept = max(0, min(len(self._now.views), len(self._names)) - 1)  # rarely fewer
        self._uncounted = len(self._requests)  # the program goes on for as long as any other

    def _play(self, scene: str) -> None:
        if scene == "brim":
            self._brim()
        super()._play(scene)

    def _brim(self) -> None:
        """Make some room, if that is possible, and fill it. A power cut often follows."""
        for kind in (self._one_of(ROOM), *self._one_of(BETWEEN)):
            if NEEDS[kind] in {None, *self._capabilities}:
                self._add(kind)
        self._write_to_the_brim()
        if "crash" in self._capabilities and self._upto(1):
            self._add("crash")

    def _write_to_the_brim(self) -> None:
        """Write the whole disk at once, then a half, then a half of the rest, and so on, so that
        some write fits where little is free. Often snapshots and single blocks follow, which take
        what a target needs to keep account of them."""
        lba, count = 0, self._blocks
        while count:
            self._write_at(lba, count)
            lba = lba + count if count < self._blocks else 0
            count = -(-(self._blocks - lba) // 2) if self._blocks > 1 else 0
        for _ in range(self._one_of(SMALL) if "snapshot" in self._capabilities else 0):
            self._add("snapshot")
            self._write_at(self._upto(self._blocks - 1))
