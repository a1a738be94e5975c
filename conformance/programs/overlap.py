"""Writes programs whose requests overlap: races on a few blocks that all requests meet in.

It has more than 400 lines because one writer draws all of their shapes.
"""

import random
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import combinations_with_replacement
from typing import Any

from conformance.contract.tagged_block import ALIKE
from conformance.contract.trace import OVERLAPPING
from conformance.programs.racing_device import RacingDevice
from conformance.programs.schedules import FIRST_ANSWER, WITH_THE_NEXT, Schedules
from conformance.programs.swarm import OPENINGS
from conformance.targets.base import Message

SIZES = (2, 2, 3, 3, 5, 5, 8, 8, 16, 16, 64, 200)  # blocks of the disk
LARGE = 16  # a disk of more blocks is large
# Blocks of the disk in programs of rounds, where all requests meet in one place: a map of several
# nodes can be seen half changed.
SIZES_OF_ROUNDS = (2, 5, 9, 16, 17, 32, 64, 65, 200)
LENGTHS = (1, 1, 2, 2, 3)  # blocks of most requests; others have all blocks of a small disk
LONG = (8, 12, 20, 33)  # blocks of the other requests on a large disk
NEAR = 0.5  # share of the requests on a large disk that begin near where the last one did
NAMES = ("a", "b", "c")
WEIGHTS = {
    "write": 30,
    "read": 15,
    "view": 12,
    "unmap": 5,
    "flush": 8,
    "snapshot": 9,
    "delete": 6,
    "revert": 6,
}
# Weights of what comes between two bursts; a program changes some.
ALONE = {
    "crash": 6,
    "restart": 1,
    "clean": 1,
    "checkpoint": 1,
    "settle": 1,
    "scrub": 1,
    "fail": 2,
}
CATCHES_UP = 0.7  # share of the devices that catch up while requests are in flight
CHANGING = frozenset(["write", "unmap", "snapshot", "delete", "revert"])
OF_A_SNAPSHOT = frozenset(["view", "delete", "revert"])
NAMED = frozenset(["snapshot", "delete", "revert"])
# One in so many programs is of rounds: a few requests meet on the same blocks, and what they leave
# is read at once.
IN_ROUNDS_ONE_IN = 2
ROUNDS = (1, 2, 4, 8, 16)  # number of times in a row that the same requests meet
AT_ONCE = 0.8  # share of the requests of a round that come together with the next
AFTER = (1, 1, 2, 2, 3, 5, 9)  # device writes until a power cut
WITNESSED = 0.5  # share of the rows of rounds in which reads are in flight, too
BESIDE = 0.3  # share of the ranges of a round that begin or end beside the others, or in them
CUT_ROUNDS = 0.3  # share of the rounds in a row that end with a power cut, at the first answer
LEFT_BEHIND = (0, 0.2, 0.5)  # share of the bursts in which one request is slow
COME_AND_GO = (2, 4, 7, 20)  # number of requests that are called and answered beside a slow one
# Share of the slow changes of snapshots that a change of another kind with the same name passes
# first: what the slow one has found out by then is no longer so.
OVERTAKEN = 0.6
RACING = 0.6  # share of a burst's requests that are of its two kinds, or have its name
RIGHT = 0.85  # share of names with which the request has no fault
# capability -> operations
GIVES = {"clean": ("clean", "checkpoint"), "device": ("settle", "fail")}
FULL_ONE_IN = 4  # one in so many programs begins with snapshots of a full disk, which may fill it
# Blocks of the live disk that one request reads back, on a large disk more; 0: all blocks
PIECES = (0, 0, 1, 1, 2, 3)
# A request may overlap this many times as many requests before it as may be in flight: one may be
# slow, while others are called and answered.
REACHES = (1, 1, 4)
# Number of outcomes that may have gone either way, after which all blocks are read: a judge follows
# each of them. A power cut in a request counts 1.
UNSEEN = 4
OF_A_RACE = 0.25  # what a request about snapshots that overlaps others counts
# Share of a program's writes that write one block everywhere, one of so many blocks, where the
# target stores equal blocks once.
EQUAL = (0, 0.5, 0.9)
POOL = 2
PAST_THE_END = 0.03  # share of requests that reach past the end
ENDS_ALL = 0.8  # share of power cuts that come while requests are in flight
SEEN = 0.5  # share of those just before which a read of a change in flight is sent
CUT_SEEN = 0.5  # share of these changes in which the power fails, in programs with such cuts
CHANGES = ("write", "write", "unmap", "snapshot", "delete", "revert")  # changes that are read then
# Share of the programs at whose end the disk is opened again: what requests in flight have left in
# a log shows then, also where a target has answered `unknown-outcome` to all that came after them.
OPENED_AT_LAST = 0.75


def written(
    choose: random.Random,
    hello: Message,
    ops: int,
    most: int,
    crashes: bool = True,
    *,
    cuts: bool = False,
    schedules: bool = False,
    shares: bool = False,
) -> list[Message]:
    """Return a program of about `ops` requests with up to `most` in flight.

    `overlaps` of a request is the number of requests just before it that need not be answered when
    it is called. The program is a row of bursts. Between two of them all views may be read, the
    power may be cut, and background work may be asked for. With `cuts` some requests carry a
    `cut`, with `schedules` they carry a `schedule`: see conformance.targets.overlapping. `shares`
    says that the target stores equal blocks once: then many writes are of the same few blocks."""
    able = {"write", "read"}.union(*(GIVES.get(name, (name,)) for name in hello["capabilities"]))
    if not crashes or hello.get("crash_profile") is None:
        able -= {"crash"}
    if not min(hello.get("devices", 0), hello.get("tolerates", 0)):
        able -= {"fail"}
    devices = hello.get("devices", 0)
    cuts = cuts and "crash" in able
    faults = hello.get("faults", ())
    return _Writer(choose, able, devices, faults, ops, most, cuts, schedules, shares).program


def reaches(choose: random.Random, most: int) -> tuple[int, int]:
    """Return how many requests before it a request may overlap, at least and at most."""
    reach = (most - 1) * choose.choice(REACHES)
    return choose.choice([min(1, reach), min(1, reach), most - 1, reach]), reach


class _Writer:
    def __init__(
        self,
        choose: random.Random,
        able: Collection[str],
        devices: int,
        faults: Sequence[str],
        ops: int,
        most: int,
        cuts: bool,
        schedules: bool,
        shares: bool,
    ):
        self._choose, self._able, self._most = choose, able, most
        self._cuts = choose.choice([0, 0.05, 0.2]) if cuts else 0
        self._schedules = Schedules(choose) if schedules else None
        self._device = RacingDevice(choose, devices, faults)
        self._durable = choose.choice([0, 0, 0.2]) if "fua" in able else 0
        self._in_rounds = most > 1 and choose.randrange(IN_ROUNDS_ONE_IN) == 0
        self._blocks = choose.choice(SIZES_OF_ROUNDS if self._in_rounds else SIZES)
        self._present: list[str] = []  # names of snapshots, as if requests took effect in order
        self._near = 0  # where the last range of blocks begins
        self._lengths: tuple[int, ...] = LENGTHS  # blocks of the ranges of a round
        self._tag = 0
        self._equal = choose.choice(EQUAL) if shares else 0
        # Share of a burst's requests that may overlap those before them.
        self._busy = choose.choice([0.7, 0.95, 1.0])
        self._least, self._reach = reaches(choose, most)
        self._left_behind = choose.choice(LEFT_BEHIND) if most > 1 else 0
        # Share of the bursts after which all views are read.
        self._looks = choose.choice([0.2, 0.6, 1.0])
        self._longest = choose.choice([most // 2 + 1, most, 4 * most])
        if self._in_rounds:
            self._busy, self._least = 1.0, self._reach
        self._uncounted = 0
        self._unseen = 0.0
        self._raced: Counter[tuple[str, str]] = Counter()
        self._name_raced = NAMES[0]
        kinds = [kind for kind in WEIGHTS if ("snapshot" if kind == "view" else kind) in able]
        # A swarm: each program leaves some kinds out and prefers others.
        weights = [WEIGHTS[kind] * choose.choice([0, 1, 1, 2]) for kind in kinds]
        weights[kinds.index("write")] += 5
        alone = [kind for kind in ALONE if kind in able]
        likely = [ALONE[kind] * choose.choice([0, 1, 1, 5]) + 0.1 for kind in alone]
        # Share of the bursts after which a request is sent alone.
        pauses = choose.choice([0.2, 0.35, 0.6])
        self.program: list[Message] = [{"op": "create", "blocks": self._blocks}]
        if "snapshot" in able and choose.randrange(FULL_ONE_IN) == 0:
            self._fill()
        while len(self.program) - self._uncounted < ops:
            race = self._race([kind for kind, weight in zip(kinds, weights, strict=True) if weight])
            if self._in_rounds:
                self._meet(race)
            elif choose.random() < self._left_behind:
                self._leave_behind(race)
            else:
                self._burst(race, kinds, weights)
            if alone and choose.random() < pauses:
                back = self._device.comes_back()
                self._pause("return" if back else choose.choices(alone, likely)[0])
            elif choose.random() < self._looks:
                self._look()
        if self._device.back:
            self.program.append({"op": "settle"})
        self._look()
        if "scrub" in able:
            self.program.append({"op": "scrub"})
        openings = [op for op in OPENINGS if op in able]
        if openings and choose.random() < OPENED_AT_LAST:
            self.program.append({"op": choose.choice(openings)})
            self._look()

    def _burst(self, race: Sequence[str], kinds: Sequence[str], weights: Sequence[int]) -> None:
        """Send some requests, many of them of the kinds that race."""
        for at in range(self._choose.randint(2, max(2, self._longest))):
            racing = self._choose.random() < RACING
            kind = self._choose.choice(race if racing else self._choose.choices(kinds, weights))
            self._add(kind, at > 0)
            if self._unseen >= UNSEEN:
                self._look()

    def _meet(self, race: Sequence[str]) -> None:
        """Send a few requests together, on the same blocks and with the same name, several times in
        a row. See what each round left; in some rows the power is cut before that."""
        choose = self._choose
        kinds = [*race, *choose.choices(race, k=choose.randrange(max(1, self._most // 2 - 1)))]
        if choose.random() < WITNESSED:
            kinds += ["read"] * choose.randint(1, max(1, self._most - len(kinds)))
        choose.shuffle(kinds)
        cut = "crash" in self._able and choose.random() < CUT_ROUNDS
        for _ in range(choose.choice(ROUNDS)):
            missing = "snapshot" in self._able and self._name_raced not in self._present
            if missing and OF_A_SNAPSHOT & set(kinds) and choose.random() < RIGHT:
                self._add("snapshot", False)
            for at, kind in enumerate(kinds):
                self._add(kind, at > 0)
                if self._schedules and choose.random() < AT_ONCE:
                    last = at == len(kinds) - 1
                    self._ends_with(FIRST_ANSWER if cut and last else WITH_THE_NEXT)
            if cut:
                self.program.append({"op": "crash", "overlaps": len(kinds)})
            self._look()
            if "snapshot" in kinds and choose.random() < RIGHT and "delete" in self._able:
                self._add("delete", False)

    def _leave_behind(self, race: Sequence[str]) -> None:
        """Send a request that is slow, and beside it others, one after another, most of them
        writes. See what all of them left."""
        choose = self._choose
        slow = choose.choice(race)
        taken = slow == "snapshot" and self._name_raced in self._present
        if taken and "delete" in self._able and choose.random() < RIGHT:
            self._add("delete", False)
        self._add(slow, False)
        if self._schedules:
            self.program[-1]["schedule"] = self._schedules.left_behind()
        passing = choose.choice(COME_AND_GO)
        self.program[-1]["wait"] = passing
        # What a read looks at may be freed, and be used again once that is durable.
        kinds = ["write", *race, *["flush"] * ("flush" in self._able)]
        first = self._overtakes(slow)
        name = self.program[-1].get("name", self.program[-1].get("view"))
        for passed in range(1, passing + 1):
            if first and passed == 1:
                self._add(first, False, name)
            else:
                self._add(choose.choice(kinds), False)
            self.program[-1]["overlaps"] = passed
            if self._schedules:
                self.program[-1]["schedule"] = self._schedules.passing()
        self._look()

    def _overtakes(self, slow: str) -> str | None:
        """Return which change of the same snapshot passes this slow request first, if any."""
        if slow == "view":
            return "delete" if "delete" in self._able else None
        others = [kind for kind in CHANGES if kind in NAMED & set(self._able) and kind != slow]
        if slow not in NAMED or not others or self._choose.random() > OVERTAKEN:
            return None
        return self._choose.choice(others)

    def _ends_with(self, digit: int) -> None:
        """Let the last digit of the last request's schedule be this one."""
        last = self.program[-1]
        last["schedule"] = last.get("schedule", 0) // 8 * 8 + digit

    def _fill(self) -> None:
        """Write the whole disk and take a snapshot, several times: this fills many disks."""
        for _ in range(self._choose.randint(1, len(NAMES))):
            tags = list(range(self._tag + 1, self._tag + self._blocks + 1))
            self._tag += self._blocks
            self.program.append({"op": "write", "lba": 0, "tags": tags})
            self._add("snapshot", False)
        self._uncounted = len(self.program)

    def _race(self, kinds: Sequence[str]) -> tuple[str, str]:
        """Return two kinds of requests that were in flight together least often so far, and choose
        a name for them."""
        pairs = [pair for pair in combinations_with_replacement(kinds, 2) if CHANGING & set(pair)]
        least = min(self._raced[pair] for pair in pairs)
        pair = self._choose.choice([pair for pair in pairs if self._raced[pair] == least])
        self._raced[pair] += 1
        self._near = self._choose.randrange(self._blocks)
        self._lengths = self._choose.choice([LENGTHS, LONG, (self._blocks,)])
        self._near *= self._lengths != (self._blocks,)
        self._name_raced = self._choose.choice(self._present or NAMES)
        missing = OF_A_SNAPSHOT & set(pair) and "snapshot" in self._able and not self._present
        if missing and self._choose.random() < RIGHT:
            for kind in ("write", "snapshot", "write"):  # what is raced for is there, and differs
                self._add(kind, False)
            self._name_raced = self._present[-1]
        return pair

    def _add(self, kind: str, overlapping: bool, name: str | None = None) -> None:
        """Send a request of this kind. One about a snapshot has this `name`, or a drawn one."""
        request: dict[str, Any] = {"op": "read" if kind == "view" else kind}
        if kind in ("write", "read", "view", "unmap"):
            request |= self._range(kind)
        elif kind == "snapshot":
            absent = [name for name in NAMES if name not in self._present]
            request["name"] = name or self._name(absent, self._present)
            if request["name"] not in self._present:
                self._present.append(request["name"])
        elif kind in ("delete", "revert"):
            request["name"] = name or self._name(self._present, NAMES)
            if kind == "delete" and request["name"] in self._present:
                self._present.remove(request["name"])
        if kind == "view":
            request["view"] = self._name(self._present, NAMES)
        if kind == "write" and self._choose.random() < self._durable:
            request["fua"] = True
        if overlapping and self._most > 1 and self._choose.random() < self._busy:
            request["overlaps"] = self._choose.randint(self._least, self._reach)
            self._unseen += OF_A_RACE * (kind in NAMED)
        if self._cuts and self._choose.random() < self._cuts:
            request["cut"] = self._cut(request)
            self._unseen += 1
        if self._schedules and request["op"] in OVERLAPPING:
            request["schedule"] = self._schedules.next()
        self.program.append(request)

    def _pause(self, kind: str) -> None:
        """Cut the power, in flight or not, or let the disk do something alone."""
        request: Message = {"op": kind}
        if kind == "crash" and self._most > 1 and self._choose.random() < ENDS_ALL:
            request["overlaps"] = self._choose.choice([self._most - 1, 1])
            if self._choose.random() < SEEN and self._see_a_change():
                del request["overlaps"]
        if kind == "fail":
            request = self._device.fail()
        elif kind == "return":
            request = self._device.come_back()
            if self._choose.random() > CATCHES_UP:
                self.program.append(request)
                request = {"op": "settle"}
        if request["op"] == "settle":
            self._device.settle()
        self.program.append(request)
        if kind in ("crash", "restart"):
            self._look()

    def _cut(self, request: Message) -> Message:
        """Return at which device write the power fails."""
        # Many targets write each block by itself, and then what makes them count.
        blocks = len(request.get("tags", ()))
        return {
            "after": self._choose.choice(AFTER) + self._choose.choice([0, 0, blocks]),
            "seed": self._choose.randrange(1 << 20),
        }

    def _see_a_change(self) -> bool:
        """Read what a request in flight changes; half of the time, wait a little for the answer.
        Return whether the power fails at a device write of the change: what the read has shown by
        then may not be durable, and a crash that is sent comes too late."""
        self._add(self._choose.choice([kind for kind in CHANGES if kind in self._able]), True)
        change = self.program[-1]
        self._add("read", True)
        read = self.program[-1]
        read |= {"lba": change.get("lba", 0)}
        read |= {"count": len(change.get("tags", ())) or change.get("count", self._blocks)}
        if change["op"] in ("snapshot", "delete"):
            read["view"] = change["name"]
        if self._schedules:
            self._ends_with(self._choose.choice([WITH_THE_NEXT, FIRST_ANSWER]))
        if self._cuts and self._choose.random() < CUT_SEEN:
            change["cut"] = self._cut(change)
        return "cut" in change

    def _range(self, kind: str) -> dict[str, Any]:
        lba = self._choose.randrange(self._blocks)
        lengths: tuple[int, ...] = (*LENGTHS, self._blocks)
        if self._in_rounds:
            lengths = self._lengths
            lba = self._near + self._aside(max(lengths))
        elif self._blocks > LARGE:
            lengths = (*LENGTHS, *LONG)
            if self._choose.random() < NEAR:
                lba = min(max(0, self._near + self._choose.randint(-3, 3)), self._blocks - 1)
            self._near = lba
        count = self._choose.choice(lengths)
        if self._choose.random() > PAST_THE_END:
            count = min(count, self._blocks - lba)
        if kind != "write":
            return {"lba": lba, "count": count}
        self._tag += count
        if self._equal and self._choose.random() < self._equal:
            return {"lba": lba, "tags": [ALIKE * self._choose.randint(1, POOL)] * count}
        return {"lba": lba, "tags": list(range(self._tag - count + 1, self._tag + 1))}

    def _aside(self, length: int) -> int:
        """Return how far from the others a range of a round begins."""
        if self._choose.random() > BESIDE:
            return 0
        far = self._choose.choice([1, 1, self._choose.choice(self._lengths) - 1, length])
        last = self._blocks - 1 - self._near
        return min(max(self._choose.choice([far, -far]), -self._near), last)

    def _name(self, right: Sequence[str], wrong: Sequence[str]) -> str:
        if self._in_rounds or self._choose.random() < RACING:
            return self._name_raced
        likely = right if right and self._choose.random() < RIGHT else wrong
        return self._choose.choice(likely or NAMES)

    def _look(self) -> None:
        """Read every view that there may be; live often in pieces, which a cache may have."""
        self._unseen = 0.0
        piece = self._choose.choice(PIECES) * -(-self._blocks // LARGE) or self._blocks
        pieces = range(0, self._blocks, piece)
        for lba in pieces:
            self.program.append(self._read(lba, min(piece, self._blocks - lba)))
        self._uncounted += len(pieces) - 1
        for view in dict.fromkeys(self._present):
            self.program.append({**self._read(0, self._blocks), "view": view})

    @staticmethod
    def _read(lba: int, count: int) -> Message:
        return {"op": "read", "lba": lba, "count": count}
