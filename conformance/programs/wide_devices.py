"""The shapes of wide programs (conformance.programs.wide) that are about devices.

- A device is away while the disk is written for long, and little else happens. It comes back, and
  is relied on alone.
- Power cuts while all devices are there and while some are away take turns, with few or many writes
  in between. What one device alone has kept of a change, others have to have by then.
- Devices that missed a little come back and catch up, and the power fails while they do. Now and
  then they go away once more before they have caught up.
- Devices that are back go away again while the disk cannot be opened, since others are away, too.
  So an opening lacks devices that the one before had.
- Devices fail and come back in steps that are drawn one by one: so power cuts, changes, checkpoints
  and other failures come while some are away, catch up or are rebuilt.
"""

from conformance.contract.source import rarely
from conformance.programs.power_cuts import CUTTABLE
from conformance.programs.situation import ABSENT, BACK, DEGRADED
from conformance.programs.swarm import DEVICE_OPS, NEEDS, OPENINGS
from conformance.programs.wide_snapshots import SnapshotsWriter

ABSENCES = (3, 10, 30, 100, 200)  # writes while a device is away
PIECES = (1, 1, 1, 1, 2, 3, 8)  # blocks of one
ROUNDS = (2, 4, 8)
BETWEEN = (0, 0, 1, 2, 5, 20, 60)  # writes between two cuts, returns or failures of a round,
NEXT_TO = (0, 0, 0, 1)  # or in every second program
SHORT_ONE_IN = 3  # outages of ordinary programs: devices miss little, and catch up
FEW = (0, 1, 1, 2, 5)  # writes that devices miss which then catch up
RELAPSE_ONE_IN = 2  # one in so many times they go away again before they have caught up
STORED_ONE_IN = 2  # outages: what was written is stored before the devices are back
GROWN_ONE_IN = 3  # outages: a snapshot is taken just before, so that many nodes are to be stored
OUTAGES = (2, 4, 6)  # of a walk
STEPS = (4, 8, 16)  # of one of them, before all devices are let come back
# What is drawn next, while all devices are sound, while some are away, while some are back and have
# not caught up, and while more failed than is tolerated. `other` is one of OTHER.
WHOLE = (*("fail",) * 4, "write", "crash", "other")
AWAY = (*("come back",) * 3, *("fail",) * 2, *("write",) * 3, "crash", "checkpoint", "other")
CATCHING_UP = (
    *("fail",) * 5,
    *("come back",) * 2,
    *("write",) * 3,
    *("crash", "checkpoint", "settle", "other"),
)
BEYOND = (*("come back",) * 3, "fail", "crash", "crash", "settle", "look")
OTHER = ("long write", "restart", "tick", "clean", "snapshot", "delete", "revert")
ROAMED = (1, 1, 2, 5, 20)  # writes of one such step
CUT_ONE_IN = 4  # such steps
OVER_ONE_IN = 2  # failures that would be one more than is tolerated: it is sent
# Changes that are cut short; others are, too.
CUT = ("write", "flush", "checkpoint", "checkpoint")


class DevicesWriter(SnapshotsWriter):
    """Writes these shapes, for targets that tolerate the failure of a device."""

    def _may_lose_devices(self) -> bool:
        return "device" in self._capabilities and self._array.tolerates > 0

    def _play(self, scene: str) -> None:
        if scene == "outage" and self._may_lose_devices() and rarely(self._choose, SHORT_ONE_IN):
            self._catch_up_once()
        else:
            super()._play(scene)

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
        between = self._one_of((BETWEEN, NEXT_TO))
        for _ in range(self._one_of(ROUNDS)):
            self._write_some(self._one_of(between))
            self._cut_short()
            self._write_some(self._one_of(between))
            for _ in range(self._array.tolerates):
                self._add("fail")
            self._write_some(self._one_of(between))
            self._open(("crash",))
            self._make_whole()

    def _catch_up(self) -> None:
        """Let devices miss a little, come back and catch up, and let the power fail meanwhile,
        often at one of the last device writes. Then take others away."""
        self._write_at(0, self._blocks)
        for _ in range(self._one_of(ROUNDS)):
            self._catch_up_once()

    def _catch_up_once(self) -> None:
        if "snapshot" in self._capabilities and rarely(self._choose, GROWN_ONE_IN):
            self._add("snapshot")
            self._write_some(self._one_of(FEW))
        for _ in range(1 + self._upto(self._array.tolerates - 1)):
            self._add("fail")
        self._miss_some()
        for _ in range(len(self._now.failed)):
            self._add(self._comes_back(), cut=self._cuts.wanted and self._upto(3) == 0)
        self._write_some(self._one_of(FEW))
        relapse = rarely(self._choose, RELAPSE_ONE_IN)
        if relapse:
            self._relapse()
        self._add("settle", cut=self._cuts.wanted and not relapse and self._upto(3) > 0)
        opened = self._upto(3)  # 0 and 1: not at all
        if opened == 2:
            self._open(("crash",))
        self._take_away()
        if opened == 3:
            self._open(("crash",))
        self._make_whole()

    def _miss_some(self) -> None:
        """Write while devices are away, and often store that."""
        self._write_some(self._one_of(FEW))
        if "clean" in self._capabilities and rarely(self._choose, STORED_ONE_IN):
            self._add("checkpoint")

    def _relapse(self) -> None:
        """Let the devices that are back go away again before they have caught up, and return."""
        back = self._back()
        self._leave(back)
        self._miss_some()
        self._come_back(back)

    def _exchange(self) -> None:
        """Let devices miss something and come back; then let so many others be absent that little
        is left, and open the disk. Now the first ones are absent, and the others return."""
        self._write_at(0, self._blocks)
        for _ in range(1 + self._upto(2)):
            for _ in range(self._array.tolerates):
                self._add("fail")
            self._miss_some()
            for _ in range(len(self._now.failed)):
                self._add(self._comes_back())
            self._write_some(self._one_of(FEW))
            back, others = self._back(), self._sound()
            others.sort(key=lambda device: self._upto(1000))
            others = others[: 1 + self._upto(self._array.tolerates)]
            self._leave(others)
            self._open()
            self._leave([device for device in back if self._upto(3)])
            self._come_back(others)
            if self._upto(1):
                self._open()
            self._requests.append({"op": "settle"})  # it may be refused
            self._read_back()
            self._make_whole()
            self._take_away()
            self._make_whole()

    def _roam(self) -> None:
        """Let devices fail and come back at random, with writes, changes of views, checkpoints and
        openings in between, so that outages, power cuts and what they interrupt meet in any order.
        Then let all come back and catch up, take others away, and let these come back next."""
        self._write_at(0, self._blocks)
        for _ in range(self._one_of(OUTAGES)):
            for _ in range(self._one_of(STEPS)):
                self._take_step()
            for _ in range(len(self._now.failed)):
                self._take_one_back()
            self._write_some(self._one_of(FEW))
            self._add("settle", cut=self._cuts.wanted and self._upto(1) == 0)
            if self._upto(2) == 0:
                self._open(("crash",))
            self._take_away()
        self._make_whole()

    def _take_step(self) -> None:
        failed = self._now.failed
        if self._beyond():
            step = self._one_of(BEYOND)
        elif BACK in failed.values():
            step = self._one_of(CATCHING_UP)
        else:
            step = self._one_of(AWAY if failed else WHOLE)
        if step == "other":
            step = self._one_of(OTHER)
        cut = self._cuts.wanted and rarely(self._choose, CUT_ONE_IN)
        if step == "fail":
            self._lose_one()
        elif step == "come back":
            self._take_one_back(cut)
        elif step in OPENINGS:
            self._open((step,))
        elif step == "look":
            self._read_back()
        elif step == "write":
            self._write_some(self._one_of(ROAMED))
        elif step == "long write":
            self._write_at(*self._ranges.between_borders())
        elif NEEDS[step] in self._capabilities:
            self._add(step, cut)

    def _lose_one(self) -> None:
        """Let a device fail: one that has not caught up, or a sound one. Now and then the latter is
        one more than is tolerated; then all that are away can return."""
        failed, back = self._now.failed, self._back()
        if back and self._upto(1):
            device = self._one_of(back)
        else:
            sound, over = self._sound(), len(failed) == self._array.tolerates
            if (
                not sound
                or len(failed) > self._array.tolerates
                or over
                and (DEGRADED in failed.values() or not rarely(self._choose, OVER_ONE_IN))
            ):
                return
            device = self._one_of(sound)
            if not over and self._upto(3) == 0:
                self._now.fail(device, DEGRADED)
                self._requests.append({"op": "fail", "device": device, "mode": DEGRADED})
                return
        self._leave([device])

    def _take_one_back(self, cut: bool = False) -> None:
        """Let one of the devices that are away come back."""
        away = {mode for mode in self._now.failed.values() if mode != BACK}
        if away:
            self._add("return" if self._beyond() else self._comes_back(), cut)

    def _back(self) -> list[int]:
        """Return the devices that are back and have not caught up."""
        return [device for device, mode in self._now.failed.items() if mode == BACK]

    def _sound(self) -> list[int]:
        return [one for one in range(self._array.devices) if one not in self._now.failed]

    def _comes_back(self) -> str:
        """Return how the next of the devices that failed comes back."""
        absent = ABSENT in self._now.failed.values()
        return "return" if absent and self._upto(3) else "replace"

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
