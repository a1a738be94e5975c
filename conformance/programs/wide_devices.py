"""The shapes of wide programs (conformance.programs.wide) that are about devices.

- A device is away while the disk is written for long, and little else happens. It comes back, and
  is relied on alone.
- Power cuts while all devices are there and while some are away take turns, with few or many writes
  in between. What one device alone has kept of a change, others have to have by then.
"""

from conformance.programs.power_cuts import CUTTABLE
from conformance.programs.swarm import DEVICE_OPS, NEEDS
from conformance.programs.wide_snapshots import SnapshotsWriter

ABSENCES = (3, 10, 30, 100, 200)  # writes while a device is away
PIECES = (1, 1, 1, 1, 2, 3, 8)  # blocks of one
ROUNDS = (2, 4, 8)
BETWEEN = (0, 0, 1, 2, 5, 20, 60)  # writes between two cuts, returns or failures of a round
# Changes that are cut short; others are, too.
CUT = ("write", "flush", "checkpoint", "checkpoint")


class DevicesWriter(SnapshotsWriter):
    """Writes these shapes, for targets that tolerate the failure of a device."""

    def _may_lose_devices(self) -> bool:
        return "device" in self._capabilities and self._array.tolerates > 0

    def _outlast(self) -> None:
        """Write for long while a device is away, so that much of what goes on in the background
        begins, goes on and ends meanwhile. Then let it catch up, and take others away."""
        self._write_at(0, self._blocks)
        for _ in range(1 + self._upto(1)):
            self._add("fail")
            self._write_some(self._one_of(ABSENCES))
            self._make_whole()
            self._take_away()
            self._open(("crash",))
            self._make_whole()

    def _take_turns(self) -> None:
        """Cut the power in a change while all devices are there. Then take as many away as are
        tolerated, cut it again, and bring them back."""
        self._write_at(0, self._blocks)
        for _ in range(self._one_of(ROUNDS)):
            self._write_some(self._one_of(BETWEEN))
            self._cut_short()
            self._write_some(self._one_of(BETWEEN))
            for _ in range(self._array.tolerates):
                self._add("fail")
            self._write_some(self._one_of(BETWEEN))
            self._open(("crash",))
            self._make_whole()

    def _cut_short(self) -> None:
        """Let the power fail in the middle of a change, or next to the last one."""
        kinds = [kind for kind in CUT if NEEDS[kind] in {None, *self._capabilities}]
        others = [kind for kind in self._kinds if kind in CUTTABLE.difference(DEVICE_OPS)]
        if self._cuts.wanted:
            self._add(self._one_of((*kinds, *others[:1])), cut=True)
        else:
            self._open(("crash",))

    def _write_some(self, times: int) -> None:
        for _ in range(times):
            count = min(self._one_of(PIECES), self._blocks)
            self._write_at(self._upto(self._blocks - count), count)
