"""Writes one program: what comes next, scenes of several operations, and what has to follow an
operation.
"""

from collections.abc import Callable, Sequence

from conformance.contract.source import rarely
from conformance.programs import swarm
from conformance.programs.power_cuts import CUTTABLE
from conformance.programs.requests import Request, RequestWriter
from conformance.programs.situation import ABSENT, BACK, DEGRADED
from conformance.programs.swarm import BEYOND_TOLERANCE, FUA, NEEDS, SCENES

AGAIN = frozenset(["fail", "return", "replace", "settle"])  # sent again where they were cut short
PIECES = (1, 1, 1, 3, 8)  # numbers of pieces in which a disk is filled
LEFT_OUT = 12  # one in so many steps of a scene is left out
OFFERED = 5  # operations; the one is sent that was asked least often
FREE = 8  # one operation in so many is drawn freely
PROMISED_ONE_IN = 3  # power cuts between operations: right behind what was made durable
ZEROES_ONE_IN = 4  # of the writes that are made durable there
PILED_ONE_IN = (0, 0, 0, 3)  # power cuts between operations, in a program; 0: none. Changes alone
# come before, and are made durable
PILED = (4, 16, 32, 64)  # such changes, at most
CLOSED_ONE_IN = 4  # openings, in a program with crashes: a power cut comes before anything else
ALONE_ONE_IN = 3  # power cuts in an operation, after which devices are taken away
ALONE_BETWEEN_ONE_IN = 6  # the same of power cuts between operations
BESIDE_ONE_IN = 3  # faults of a device: another one fails just then
LEFT_FOR = (0, 0, 0, 1, 3, 7)  # writes between the two
PICKED = (0, 2, 3, 4, 8)  # writes of single blocks over a run of equal ones
END_ONE_IN = 6  # writes of several blocks: the first or the last of them is read alone
ANEW_ONE_IN = 6  # snapshots and reverts, in a program with crashes: one change, and a power cut
STORED_AGAIN_ONE_IN = 6  # checkpoints, in a program with cuts: two more follow, one of them cut
WITH_THE_POWER_ONE_IN = 6  # power cuts, in a program with faults: a device goes wrong just before
RELIED = (0, 0, 1, 2)  # times that a program relies on spares
TOO_MANY_ONE_IN = 4  # times that devices are taken away: one more than is tolerated
MISSED = (0, 1, 1, 3)  # writes that the first of these misses,
MADE_DURABLE = ("", "flush", "checkpoint")  # and what makes them durable
CLEANED_ONE_IN = 3  # deletions and reverts: what they free is cleaned at once, and used again
REPEATS_FROM = 300  # operations of a program that repeats some
REPEATED_ONE_IN = 120  # steps of such a program
TIMES = (17, 33, 65, 129, 257)  # numbers of repeats: once more than a power of 2
# Openings before and behind the failure of as many devices as are tolerated. Where only a power cut
# follows it, the recovery has nothing but what the others had by themselves.
BEFORE: tuple[tuple[str, ...], ...] = ((), (), ("crash",), ("restart",))
BEHIND: tuple[tuple[str, ...], ...] = ((), ("crash",), ("crash",), ("restart",))


class Writer(RequestWriter):
    """Writes one program, request by request."""

    def program(self, ops: int, any_length: bool = False) -> list[Request]:
        """Return the whole program, of about `ops` operations besides reads of all views, or of up
        to so many if it may have `any_length`."""
        self._prepare()
        piled_one_in = self._one_of(PILED_ONE_IN)
        while len(self._requests) - self._uncounted <= ops and not (
            any_length and self._upto(ops) == 0
        ):
            kind = self._next()
            if ops >= REPEATS_FROM and self._upto(REPEATED_ONE_IN - 1) == 0:
                self._repeat(ops)
            elif kind in SCENES:
                self._play(kind)
            elif kind == "crash" and self._goes_wrong_with_the_power():
                self._go_wrong_with_the_power()
            elif kind == "crash" and not self._beyond() and self._cuts.now_and_then(2):
                self._add(self._one_of([one for one in self._kinds if one in CUTTABLE]), cut=True)
            else:
                if kind == "crash" and piled_one_in and rarely(self._choose, piled_one_in):
                    self._pile_up()
                elif kind == "crash" and rarely(self._choose, PROMISED_ONE_IN):
                    self._promise()
                self._add(kind)
                if kind in ("delete", "revert"):
                    self._clean_now_and_then()
                if kind in ("snapshot", "revert"):
                    self._begin_anew_now_and_then()
                elif kind == "checkpoint":
                    self._store_again_now_and_then()
        self._read_back()
        if self._now.failed and self._upto(1):
            self._make_whole()
        for _ in range(1 + self._upto(2) if self._array.faulty else 0):
            self._survive()
        for _ in range(self._one_of(RELIED) if self._array.spares else 0):
            self._rely_on_spares()
        if "scrub" in self._capabilities:
            self._requests.append({"op": "scrub"})
        if "device" in self._capabilities and self._upto(1):
            self._take_away()
        return self._requests

    def _prepare(self) -> None:
        """Fill half of the new disks: at once, or in pieces from either end, sometimes with a
        checkpoint or an opening in between."""
        if self._upto(1) or len(self._requests) > 1:
            return
        size = -(-self._blocks // self._one_of(PIECES))
        pieces = range(0, self._blocks, size)
        for lba in pieces if self._upto(1) else reversed(pieces):
            count = min(size, self._blocks - lba)
            self._write_at(lba, count)
            for kind in self._one_of(swarm.BETWEEN) if len(pieces) > 1 else ():
                if NEEDS[kind] in self._capabilities:
                    self._add(kind)
            if self._beyond():  # after a power cut
                return

    # What comes next.

    def _next(self) -> str:
        """Return the next operation or scene. Of a few operations that the swarm offers, it is the
        one that was asked least often in this situation."""
        first = self._one_of(self._kinds)
        if first in SCENES or self._upto(FREE - 1) == 0:
            return first
        others = [self._one_of(self._kinds) for _ in range(OFFERED - 1)]
        offered = [first, *(kind for kind in others if kind not in SCENES)]
        features, asked = self._now.features(), self._asked
        return min(offered, key=lambda kind: min([asked[feature, kind] for feature in features]))

    def _play(self, scene: str) -> None:
        """Send the steps of a scene, now and then without one of them, and read the result back."""
        if self._upto(1):
            self._ranges, self._scattered = self._scattered, self._ranges
        if scene == "survive":
            self._survive()
        for kind in swarm.steps(self._choose, scene):
            if NEEDS[kind] in {None, *self._capabilities} and self._upto(LEFT_OUT - 1):
                self._add(kind)
        self._read_back()

    def _make_whole(self) -> None:
        """Bring every device back and let it catch up. A later scrub finds what it still lacks."""
        for _ in range(len(self._now.failed)):
            self._add("replace" if {*self._now.failed.values()} <= {DEGRADED, BACK} else "return")
        self._add("settle")
        self._read_back()

    def _leave_alone_now_and_then(self, one_in: int) -> None:
        """Often write for a while after a power cut; then take some devices away."""
        tolerates = self._array.tolerates if "device" in self._capabilities else 0
        if tolerates > len(self._now.failed) and rarely(self._choose, one_in):
            for _ in range(self._one_of(LEFT_FOR)):
                self._add("write")
            self._take_away()

    def _survive(self) -> None:
        """Let all devices catch up, now and then after one had a fault during changes. Then take
        some away for a while, often next to a recovery."""
        self._make_whole()
        if (wrong := self._array.go_wrong(self._now)) is not None:
            self._requests.append({"op": "fail", **wrong})
            if self._array.tolerates > 1 and rarely(self._choose, BESIDE_ONE_IN):
                self._add("fail")
            changes = [kind for kind in swarm.CHANGES if NEEDS[kind] in {None, *self._capabilities}]
            for _ in range(2 + self._upto(10)):
                self._add(self._one_of(changes))
            self._make_whole()
        self._take_away()
        self._make_whole()

    def _goes_wrong_with_the_power(self) -> bool:
        faults = self._array.faulty and not self._now.failed
        return faults and rarely(self._choose, WITH_THE_POWER_ONE_IN)

    def _go_wrong_with_the_power(self) -> None:
        """Let a device go wrong just before the power fails, so that it may be away at an opening
        though it was there before. It comes back a few changes later, and is relied on.
        """
        self._requests.append({"op": "fail", **(self._array.go_wrong(self._now) or {})})
        changes = [kind for kind in swarm.CHANGES if NEEDS[kind] in {None, *self._capabilities}]
        if self._cuts.wanted and self._upto(1):
            self._add(self._one_of(changes), cut=True)
        else:
            self._crash()
        for _ in range(self._one_of(LEFT_FOR)):
            self._add("write")
        if self._upto(1):
            self._crash()
        self._make_whole()
        self._take_away()
        self._make_whole()

    def _rely_on_spares(self) -> None:
        """Let spares take the place of devices; then take as many others away as are tolerated, for
        a while."""
        self._make_whole()
        if self._now.failed:
            return
        if self._upto(1):
            self._requests += self._array.spare_away(self._now)
        self._requests += self._array.onto_spares(self._now)
        for _ in range(self._upto(3)):
            self._add("write")
        before = set(self._now.failed)
        self._requests += self._array.all_that_may(self._now)
        self._read_back()
        for device in self._now.failed.keys() - before:
            self._now.bring_back(device)
            self._requests.append({"op": "return", "device": device})
        self._requests.append({"op": "settle"})
        self._now.settle()
        self._read_back()

    def _take_away(self) -> None:
        """Let as many devices fail as are tolerated, often next to a recovery, and read what is
        left."""
        may = self._array.outages_end and not self._now.failed
        if may and rarely(self._choose, TOO_MANY_ONE_IN):
            self._take_too_many_away()
            return
        before, behind = self._one_of(BEFORE), self._one_of(BEHIND)
        for kind in (*before, *["fail"] * self._array.tolerates, *behind):
            if NEEDS[kind] in self._capabilities:
                self._add(kind)
        self._read_back()

    def _take_too_many_away(self) -> None:
        """Let one device more be absent than is tolerated, the first one often for some writes,
        which are often stored. Mostly one comes and goes meanwhile. Then all return, mostly while
        the disk stays open, and it settles: nothing is missing.
        """
        devices = [*range(self._array.devices)]
        devices.sort(key=lambda device: self._upto(1000))
        away = devices[: self._array.tolerates + 1]
        self._leave(away[:1])
        for _ in range(self._one_of(MISSED)):
            self._write_at(self._upto(self._blocks - 1))
        stored = self._one_of(MADE_DURABLE)
        if stored and NEEDS[stored] in self._capabilities:
            self._requests.append({"op": stored})
        self._leave(away[1:])
        if "crash" in self._kinds and self._upto(1):
            self._crash()
        if self._upto(2):
            coming = [self._one_of((away[0], self._one_of(away)))]
            self._come_back(coming)
            if self._upto(1):
                self._read_back()  # what it has is old if the others had more
            self._leave(coming)
        away.sort(key=lambda device: self._upto(1000))
        self._come_back(away)
        self._now.settle()
        self._requests.append({"op": "settle"})
        self._read_back()

    def _leave(self, devices: Sequence[int]) -> None:
        """Let devices be absent, also where that is more than is tolerated."""
        for device in devices:
            self._now.fail(device, ABSENT)
            self._requests.append({"op": "fail", "device": device, "mode": ABSENT})

    def _come_back(self, devices: Sequence[int]) -> None:
        for device in devices:
            self._now.bring_back(device)
            self._requests.append({"op": "return", "device": device})

    def _repeat(self, most: int) -> None:
        """Repeat a few operations, at most `most` of them in all, so that counters wrap."""
        kinds = [kind for kind in self._kinds if kind not in SCENES]
        cycle = [self._one_of(kinds) for _ in range(self._one_of((1, 1, 2, 3)))]
        for _ in range(min(self._one_of(TIMES), most // len(cycle))):
            for kind in cycle:
                self._add(kind)

    def _add(self, kind: str, cut: bool = False) -> None:
        """Send one operation and everything that has to follow it. Send a read if the operation
        makes no sense now.

        With `cut` the power fails in the middle of it."""
        if self._beyond() and kind not in BEYOND_TOLERANCE:
            kind = "read"
        self._asked.update([(feature, kind) for feature in self._now.features()])
        if kind == "crash":
            self._crash()
            self._leave_alone_now_and_then(ALONE_BETWEEN_ONE_IN)
            return
        few = len(self._now.views) <= self._kept and "snapshot" in self._capabilities
        if kind == "delete" and few and self._upto(3):
            kind = "snapshot"
        if kind in ("return", "replace") and not self._now.failed:
            kind = "fail"
        write: Callable[[], Request | None] | None = getattr(self, "_" + kind, None)
        request = write() if write else self._array.request(kind, self._now)
        if request is None:
            self._requests.append({"op": "read", **self._read()})
            return
        request = {"op": kind, **request}
        if cut or self._cuts.falls_into(kind):
            blocks = len(request.get("tags", ())) or request.get("count", 0)
            self._requests.append({**request, "cut": self._cuts.at(kind, blocks)})
            self._crash(again=request if kind in AGAIN else None)
            self._leave_alone_now_and_then(ALONE_ONE_IN)
        else:
            self._requests.append(request)
            if kind == "write":
                self._pick_apart(request)
                self._read_an_end(request)
            if kind == "restart" and "crash" in self._kinds and rarely(self._choose, CLOSED_ONE_IN):
                self._crash()

    def _pick_apart(self, write: Request) -> None:
        """Write single blocks over a run of equal ones, often the first of them: what they share is
        given up by one after another.
        """
        lba, count = write["lba"], len(write["tags"])
        alike = count > 2 and len({*write["tags"]}) == 1 and lba + count <= self._blocks
        for _ in range(self._one_of(PICKED) if alike else 0):
            self._write_at(lba + self._one_of((0, 0, count - 1, self._upto(count - 1))))

    def _read_an_end(self, write: Request) -> None:
        """Now and then read one block of a write, at its end: who reads the others with it may not
        ask the cache that has an older one."""
        lba, count = write["lba"], len(write["tags"])
        if 1 < count <= self._blocks - lba and rarely(self._choose, END_ONE_IN):
            self._requests.append(
                {"op": "read", "lba": self._one_of((lba, lba + count - 1)), "count": 1}
            )

    def _begin_anew_now_and_then(self) -> None:
        """Make one change after a snapshot or a revert, and let the power fail: what the change
        begins, such as a layer or a map, has nothing else yet."""
        if "crash" not in self._kinds or self._beyond() or not rarely(self._choose, ANEW_ONE_IN):
            return
        kinds = ("unmap", "write") if "unmap" in self._capabilities else ("write",)
        cut = self._cuts.wanted and self._upto(1) == 0
        self._add(self._one_of(kinds), cut=cut)
        if not cut:
            self._crash()

    def _clean_now_and_then(self) -> None:
        """Clean, and write a little: another view may need what was cleaned."""
        able = "clean" in self._capabilities and not self._beyond()
        if able and rarely(self._choose, CLEANED_ONE_IN):
            self._add("clean")
            for _ in range(self._upto(3)):
                self._add("write")
            self._read_back()

    def _store_again_now_and_then(self) -> None:
        """Store two changes by two more checkpoints, and let the power fail in the second: what it
        writes over may be all that is left of the others."""
        if not self._cuts.wanted or self._beyond() or not rarely(self._choose, STORED_AGAIN_ONE_IN):
            return
        for cut in (False, True):
            self._promise()
            if not self._beyond():
                self._add("checkpoint", cut=cut)

    def _promise(self) -> None:
        """Make the last change durable, or a write of any length: the power cut that comes next
        must not lose it."""
        ways = [way for way in (FUA, "flush") if way in self._capabilities]
        if not ways or self._beyond():
            return
        way = self._one_of(ways)
        if way == FUA or self._upto(1):
            self._write_at(*self._ranges.between_borders())
            if rarely(self._choose, ZEROES_ONE_IN):  # which a target may treat as an unmap
                tags = self._requests[-1]["tags"]
                self._requests[-1]["tags"] = [0] * len(tags)
        if way == FUA:
            self._requests[-1]["fua"] = True
        else:
            self._add("flush")

    def _pile_up(self) -> None:
        """Send changes and nothing else, as many as a log may hold, and make the last one durable.
        Most are short, one may be long. So the power cut that comes next finds a log that is full
        to any point: also to its last record, or with a record that goes on at its beginning.
        """
        for _ in range(self._upto(self._one_of(PILED))):
            self._write_at(self._upto(self._blocks - 1))
        if self._upto(1):
            self._write_at(0, self._blocks)
        for _ in range(self._upto(2)):
            self._write_at(self._upto(self._blocks - 1))
        self._promise()

    def _crash(self, again: Request | None = None) -> None:
        """Send a crash, now and then one that is itself cut short; then read all views back.

        `again` was cut short and is sent once more first: whether it took effect is not known.
        """
        if again is None:
            self._scrub_now_and_then()
        while self._cuts.now_and_then(4):
            self._requests.append({"op": "crash", "cut": self._cuts.at("crash")})
        self._requests.append({"op": "crash"})
        self._now.note("crash")
        if again is None:
            self._scrub_now_and_then()
        else:
            self._requests.append(again)
        self._read_back()
