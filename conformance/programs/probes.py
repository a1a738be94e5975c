"""What is asked where a program goes on from what another one showed, and how work in the
background is looked at.

A state that luck seldom makes tells nothing until somebody asks: is it durable, is it on every
device, who shares what the views hold? So a program that goes on from such a state puts it to one
of these tests at once. In any program the disk may dwell: small writes come one at a time, and
every view is read after each. Engines that merge, copy or free in steps take the smallest steps
then, and no state between two of them goes by unseen.
"""

from conformance.programs.writer import Writer

PROBES = ("crash", "restart", "away", "drop", "dwell", "dwell")
DWELT = (4, 8, 16, 32, 64)  # writes in a row
MOST_READ = 4096  # blocks that are read back meanwhile


class ProbingWriter(Writer):
    """As Writer."""

    def _prepare(self) -> None:
        if len(self._requests) == 1:
            super()._prepare()
        else:
            self._probe()

    def _play(self, scene: str) -> None:
        if scene == "dwell":
            self._dwell()
        else:
            super()._play(scene)

    def _probe(self) -> None:
        """Put what another program left to one of the tests that the target can take."""
        match self._one_of(PROBES):
            case "away":
                self._take_away()
            case "drop":
                self._drop_views()
            case "dwell":
                self._dwell()
            case opening if opening in self._capabilities:
                self._add(opening)
                self._read_back()

    def _drop_views(self) -> None:
        """Live goes back to a snapshot, mostly; then some snapshots are deleted in any order."""
        if "revert" in self._capabilities and self._upto(3):
            self._add("revert")
        for _ in range(self._upto(len(self._now.views)) if "delete" in self._capabilities else 0):
            self._add("delete")
            self._read_back()

    def _dwell(self) -> None:
        """Single blocks are written; every view is read after each."""
        read = self._blocks * (1 + len(self._now.views))
        for _ in range(min(self._one_of(DWELT), MOST_READ // read)):
            if len(self._now.failed) > self._array.tolerates:
                return
            self._write_at(self._upto(self._blocks - 1))
            self._read_back()

    def _write_at(self, lba: int) -> None:
        """A write of one block."""
        self._requests.append({"op": "write", "lba": lba, "tags": self._tags.next(1)})
        self._now.note("write", lbas=[lba], written=1)
