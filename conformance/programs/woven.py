"""Ordinary programs with several requests in flight, and with changes in flight when the power
fails.
"""

import random
from collections.abc import Sequence
from typing import Any

from conformance.contract.source import rarely
from conformance.contract.trace import OVERLAPPING
from conformance.programs.overlap import CHANGES, ENDS_ALL, reaches
from conformance.programs.requests import LARGEST
from conformance.programs.schedules import WITH_THE_NEXT, Schedules
from conformance.targets.base import Message

# Share of the power cuts just before which durable changes are sent together, and are answered.
PROMISED = 0.2
# Share of the other power cuts just before which changes are sent, which the power cut ends.
CUT_SHORT = 0.85
TOGETHER = (1, 1, 1, 2, 3, 7)  # number of changes that are sent together before a power cut
TIMES_CUT = (1, 1, 1, 1, 2, 3, 5)  # number of power cuts in a row
FEW = (1, 1, 1, 2, 3)  # blocks of a write that must outlive a power cut
# Largest number of requests that are added to a program: a judge needs longer for each that a power
# cut ends.
MOST_ADDED = 60
# One in so many requests is slow: it stays in flight while blocks are written one after another.
LEFT_BEHIND_ONE_IN = 12
OF_A_VIEW_ONE_IN = 3  # one in so many slow requests is a read of a whole snapshot instead
BESIDE = (3, 8, 20)  # number of writes over what a slow request reads or writes
SEEN_FROM = "beside"  # a snapshot that is taken while a slow write or unmap is in flight
# Behind one in so many groups of changes a flush is in flight, too. It may be answered before the
# power cut.
FLUSHED_ONE_IN = 4
FLUSHES = (1, 1, 2)  # number of flushes there: one may rely on the other, which has not ended
HOW = ("overlaps", "schedule", "wait")  # fields that say how a request is sent


def woven(
    choose: random.Random,
    program: Sequence[Message],
    most: int,
    *,
    schedules: bool = False,
    tolerates: int = 0,
    in_turn: bool = False,
    in_a_row: bool = True,
) -> list[Message]:
    """Return the program with up to `most` requests in flight: the same requests in the same order.

    What is sent alone stays alone; with `in_turn` all but the power cuts. With `schedules` the
    others carry a `schedule`. Before most of the crashes changes are sent in addition, so that the
    power fails in the middle of them, with `in_a_row` now and then of several and several times.
    Before others come durable changes that are in flight together: what one of them makes durable
    may be all that another one relies on.
    Some requests stay in flight while what they read or write is written over, one write after
    another: its place may be used again, and a snapshot is of one moment.
    Not once more devices lack something than the target `tolerates`. What already says that it
    `overlaps` stays as it is.
    """
    # Share of the requests that may overlap those before them.
    busy = 0 if in_turn else choose.choice([0.3, 0.7, 0.95])
    least, reach = reaches(choose, most)
    pace = Schedules(choose) if schedules else None
    added = _Added(choose, program, most, pace, in_a_row)
    result = list(program[:1])
    lacking: set[int] = set()  # devices that failed and have not caught up
    back: set[int] = set()  # those of them that have returned
    beyond = False
    for request in program[1:]:
        more: dict[str, Any] = {}
        beside: list[Message] = []
        may_stay = request["op"] in OVERLAPPING and busy and added.left > 0 and not beyond
        if may_stay and rarely(choose, LEFT_BEHIND_ONE_IN):
            behind = {} if pace is None else {"schedule": pace.left_behind()}
            of_a_view = added.view()
            long = request["op"] == "read" and choose.randrange(2) or of_a_view
            if long and program[0]["blocks"] <= LARGEST:  # a long read more, to last
                whole: Message = {"op": "read", "lba": 0, "count": program[0]["blocks"]}
                whole |= of_a_view
                others = added.beside(whole)
                beside = [{**whole, **behind, **_waiting_for(others)}, *others]
            else:
                beside = added.beside(request)
                more |= behind | _waiting_for(beside)
            added.note(request)
        elif request["op"] in OVERLAPPING:
            if choose.random() < busy:
                more["overlaps"] = choose.randint(least, reach)
            if busy:
                more |= added.schedule()
            added.note(request)
        elif request["op"] == "fail":
            lacking.add(request["device"])
            back.discard(request["device"])
            beyond = beyond or len(lacking) > tolerates
        elif request["op"] in ("return", "replace"):
            back.add(request["device"])
        elif request["op"] == "settle":
            lacking -= back
        elif request["op"] != "crash" or "overlaps" in request:
            pass
        elif added.left > 0 and not beyond and choose.random() < PROMISED:
            result += added.promised()
        elif choose.random() < ENDS_ALL:
            more["overlaps"] = choose.choice([most - 1, choose.randint(1, most - 1)])
            if added.left > 0 and added.changes and not beyond and choose.random() < CUT_SHORT:
                more["overlaps"] = most - 1
                result += added.before_a_crash()
        result += [{**more, **request}, *beside]
        if request["op"] == "crash" and "cut" not in request:
            result += added.reads()
    return result


def _waiting_for(others: Sequence[Message]) -> Message:
    """Return how a request says that it waits until those that may pass it were answered."""
    passing = sum("overlaps" in request for request in others)
    return {"wait": passing} if passing else {}


class _Added:
    """Requests that are sent in addition to those of a program: to be in flight when the power
    fails, to be answered just before, or to write over what a read in flight reads.
    """

    def __init__(
        self,
        choose: random.Random,
        program: Sequence[Message],
        most: int,
        pace: Schedules | None,
        in_a_row: bool,
    ):
        self._choose, self._most, self._pace = choose, most, pace
        self._together = TOGETHER if in_a_row else (1,)
        self._times = TIMES_CUT if in_a_row else (1,)
        self._blocks: int = program[0]["blocks"]
        self._flushes = any(request["op"] == "flush" for request in program)
        self._scrubs = any(request["op"] == "scrub" for request in program)
        ops = {request["op"] for request in program}
        self._deletes = "delete" in ops
        self._comes_and_goes = {"snapshot", "delete"} <= ops and self._blocks <= LARGEST
        self._durable = any(request.get("fua") for request in program)
        self.left = MOST_ADDED
        self._tag = max((tag for request in program for tag in request.get("tags", ())), default=0)
        self.changes: list[Message] = []  # changes that the program has sent so far
        self._names: list[str] = []  # names of snapshots, as if every request were granted
        self._open: dict[str, None] = {}  # names of which nobody knows whether snapshots have them

    def note(self, request: Message) -> None:
        """Note the request that the program sends next."""
        if request["op"] in CHANGES:
            self.changes.append({key: request[key] for key in request if key not in HOW})
        if request["op"] in ("snapshot", "delete") and request["name"] in self._names:
            self._names.remove(request["name"])
        if request["op"] == "snapshot":
            self._names.append(request["name"])

    def schedule(self) -> Message:
        """Return a `schedule`, if the target takes one."""
        return {} if self._pace is None else {"schedule": self._pace.next()}

    def before_a_crash(self) -> list[Message]:
        """Return changes that the next request, a crash, cuts short.

        Now and then the power fails several times in a row. As often as not the changes are then
        the same ones: who got no answer asks again."""
        times = self._choose.choice(self._times)
        drawn = self._drawn()
        sent = self._sent(drawn)
        for _ in range(times - 1):
            sent += [
                {"op": "crash", "overlaps": self._most - 1},
                {"op": "read", "lba": 0, "count": self._blocks},
                *self.reads(),
            ]
            drawn = self._choose.choice([drawn, self._drawn()])
            sent += self._sent(drawn)
        self.left -= len(sent)
        return sent

    def promised(self) -> list[Message]:
        """Writes, most of them short, and mostly flushes, that are in flight together, and are
        answered before the power cut. Or a change, often of snapshots, and a flush behind it.
        """
        if self._flushes and self.changes and self._choose.randrange(3) == 0:
            behind = [*self._sent([self._one()]), {"op": "flush"}]
            self.left -= len(behind)
            return behind
        kinds = ["write"]
        if self._choose.randrange(3):  # otherwise nothing makes durable what the target forgot
            kinds += [*["fua"] * 2 * self._durable, *["flush"] * self._flushes]
        sent: list[Message] = []
        for number in range(self._choose.randint(2, self._most)):
            kind = self._choose.choice(kinds)
            request: Message = {"op": "flush"}
            if kind != "flush":
                lba = self._choose.randrange(self._blocks)
                count = min(self._choose.choice((*FEW, self._blocks)), self._blocks - lba)
                request = {"op": "write", "lba": lba, "tags": [0] * count}
            if kind == "fua":
                request["fua"] = True
            sent.append(self._anew({**request, **self.schedule(), "overlaps": number}))
        self.left -= len(sent)
        return sent

    def beside(self, slow: Message) -> list[Message]:
        """Return writes over what a request in flight reads or writes, one after another, and
        flushes between them; or none if it reaches past the end. Beside half of the slow writes a
        snapshot is taken, too. What the slow one found out before that does not hold any more.
        """
        choose = self._choose
        lba: int = slow.get("lba", 0)
        count: int = len(slow.get("tags", ())) or slow.get("count", self._blocks)
        if lba + count > self._blocks:
            return []
        sent: list[Message] = []
        if "view" in slow and self._deletes and choose.randrange(2):  # it goes while it is read
            gone = {"op": "delete", "name": slow["view"], "overlaps": 1}
            self.note(gone)
            sent.append(gone | self._passing())
        for _ in range(choose.choice(BESIDE)):
            start = choose.randrange(count) if choose.randrange(2) else 0
            stop = choose.randint(start + 1, count) if choose.randrange(2) else count
            write = {"op": "write", "lba": lba + start, "tags": [0] * (stop - start)}
            flush = [{"op": "flush"}] * (self._flushes and choose.randrange(2))
            for request in [self._anew(write), *flush]:  # what a flush frees may be used again
                request = {**request, "overlaps": len(sent) + 1}
                sent.append(request | self._passing())
        if self._comes_and_goes and slow["op"] in ("write", "unmap") and choose.randrange(2):
            sent += self._seen_from_a_snapshot(len(sent) + 1)
        if self._scrubs and choose.randrange(2):  # what the slow one has kept from being freed
            sent.append({"op": "scrub"})
        self.left -= len(sent)
        return sent

    def _seen_from_a_snapshot(self, number: int) -> list[Message]:
        """Return a snapshot that passes a slow write as the request of this `number`, and a read of
        it once all was answered. It must not change then."""
        taken = {"op": "snapshot", "name": SEEN_FROM, "overlaps": number} | self._passing()
        view: Message = {"op": "read", "lba": 0, "count": self._blocks, "view": SEEN_FROM}
        return [taken, view, {"op": "delete", "name": SEEN_FROM}]

    def view(self) -> Message:
        """Return the `view` of a read: a snapshot now and then."""
        if not self._names or not rarely(self._choose, OF_A_VIEW_ONE_IN):
            return {}
        return {"view": self._choose.choice(self._names)}

    def _passing(self) -> Message:
        """Return a `schedule` that passes what was left behind, if the target takes one."""
        return {} if self._pace is None else {"schedule": self._pace.passing()}

    def reads(self) -> list[Message]:
        """Return reads that show which snapshots were taken and deleted by the requests that were
        cut short.

        Otherwise a judge would have to follow two disks for each."""
        names, self._open = self._open, {}
        return [{"op": "read", "lba": 0, "count": self._blocks, "view": name} for name in names]

    def _drawn(self) -> list[Message]:
        """Return the changes to send together, mostly one. Of several, about half begin where the
        first one does."""
        drawn = [
            self._one() for _ in range(min(self._choose.choice(self._together), self._most - 1))
        ]
        lbas = [change["lba"] for change in drawn if change.get("lba", self._blocks) < self._blocks]
        return [
            self._at(lbas[0], change) if lbas and self._choose.randrange(2) else change
            for change in drawn
        ]

    def _at(self, lba: int, change: Message) -> Message:
        """Return the change at another LBA, cut off at the end of the disk."""
        most = self._blocks - lba
        if "tags" in change:
            return {**change, "lba": lba, "tags": change["tags"][:most]}
        if "lba" in change:
            return {**change, "lba": lba, "count": min(change["count"], most)}
        return change

    def _one(self) -> Message:
        """Return a change of snapshots, or a write, often of all blocks."""
        choose = self._choose
        named = [change for change in self.changes if "name" in change]
        change = choose.choice(named if named and choose.randrange(2) else self.changes)
        if change["op"] in ("delete", "revert") and self._names and choose.randrange(2):
            return {**change, "name": choose.choice(self._names)}
        if "tags" not in change:
            return change
        lba = choose.choice([0, change["lba"] % self._blocks])
        count = min(choose.choice([len(change["tags"]), self._blocks]), self._blocks - lba)
        return {**change, "lba": lba, "tags": [0] * count}

    def _sent(self, changes: Sequence[Message]) -> list[Message]:
        """Return the changes as requests that are in flight together, with new tags."""
        sent = []
        for number, change in enumerate(changes):
            again = self._anew({**change, **self.schedule()})
            if number:
                again["overlaps"] = number
            if again["op"] in ("snapshot", "delete"):
                self._open[again["name"]] = None
            sent.append(again)
        if self._flushes and self._choose.randrange(FLUSHED_ONE_IN) == 0:
            for _ in range(min(self._choose.choice(FLUSHES), self._most - len(sent))):
                sent.append({"op": "flush", "overlaps": len(sent), **self.schedule()})
        return sent

    def _anew(self, request: Message) -> Message:
        """The request with new tags, mostly sent together with the next one."""
        if "schedule" in request and self._choose.randrange(4):
            request["schedule"] = request["schedule"] // 8 * 8 + WITH_THE_NEXT
        if "tags" in request:
            count = len(request["tags"])
            request["tags"] = list(range(self._tag + 1, self._tag + 1 + count))
            self._tag += count
        return request
