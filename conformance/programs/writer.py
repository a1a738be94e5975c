"""Writes one program, request by request, and keeps track of what would exist if every request were
granted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from conformance.contract.source import Source, rarely
from conformance.programs import names, swarm
from conformance.programs.array import Array
from conformance.programs.explored import Begun
from conformance.programs.power_cuts import CUTTABLE, PowerCuts
from conformance.programs.ranges import ANYWHERE, Ranges
from conformance.programs.situation import BACK, DEGRADED, Asked, Situation
from conformance.programs.swarm import BEYOND_TOLERANCE, FUA, NEEDS, SCENES
from conformance.programs.tags import Tags

Request = dict[str, Any]
Value = TypeVar("Value")

AGAIN = frozenset(["fail", "return", "replace", "settle"])  # sent again where they were cut short
SIZES = (1, 2, 3, 4, 5, 8, 8, 16, 16, 32, 32, 64, 64, 64, 100, 130, 200, 300)  # blocks
PIECES = (1, 1, 1, 3, 8)  # in which a disk is filled
SNAPSHOTS = (1, 2, 4, 4, 6, 6, 8, 8, 12, 20)  # different names in a program
KEPT = (0, 0, 0, 2, 3, 6)  # snapshots, of which a program seldom deletes one: so trees of them grow
LEFT_OUT = 12  # one step of a scene in so many
OFFERED = 5  # operations, of which the one is sent that was asked least often
FREE = 8  # one operation in so many is not led
SAME_ONE_IN = 3  # names: that of the last change of a snapshot, if it fits
DURABLE_ONE_IN = (0, 0, 2, 8)  # writes, in a program; 0: none
PROMISED_ONE_IN = 3  # power cuts between operations: right behind what was made durable
ALONE_ONE_IN = 3  # power cuts in an operation, after which devices are taken away
LEFT_FOR = (0, 0, 0, 1, 3, 7)  # writes between such a power cut and that
RECOVERED: tuple[tuple[str, ...], ...] = ((), ("crash",), ("restart",))
REPEATS_FROM = 300  # operations of a program that repeats some
REPEATED_ONE_IN = 120  # steps of such a program
TIMES = (17, 33, 65, 129, 257)  # that they are repeated: once more than a power of 2
MOST_DELETED = 4  # snapshots read back though deleted: some power cuts take deletions back
SECONDS = (1, 59, 60, 61, 3599, 3600, 3601, 7200)


class Writer:
    """Writes one program for a target that says `hello` and was opened with `options`.

    `asked` counts what was asked in which situation, and is counted up. The program goes on where
    `begun` ends, if that is given. `reach` is that of conformance.programs.explored."""

    def __init__(
        self,
        choose: Source,
        hello: Mapping[str, Any],
        crashes: bool,
        cuts: bool,
        options: Mapping[str, Any],
        asked: Asked,
        begun: Begun | None = None,
        reach: Mapping[str, int] | None = None,
    ) -> None:
        self._choose = choose
        capabilities = set(hello["capabilities"])
        if not crashes or hello["crash_profile"] is None:
            capabilities.discard("crash")
        self._capabilities = capabilities
        self._array = Array(choose, hello)
        self._blocks = begun.situation.blocks if begun else self._one_of(SIZES)
        self._ranges, self._scattered = [  # the second ones after every second scene
            Ranges(choose, self._blocks, options.values(), hello.get("block_size", 1), mostly)
            for mostly in (None, ANYWHERE)
        ]
        self._tags = Tags(choose)
        self._names = names.some(choose, self._one_of(SNAPSHOTS))
        if begun:
            self._names = list(dict.fromkeys([*begun.situation.views, *self._names]))
        self._named = ""  # in the last change of a snapshot
        self._kinds = swarm.kinds(
            choose, capabilities, self._array.devices > 0, "crash" in capabilities
        )
        self._durable_one_in = self._one_of(DURABLE_ONE_IN) if FUA in capabilities else 0
        self._cuts = PowerCuts(choose, cuts and "crash" in capabilities, reach or {})
        self._kept = min(self._one_of(KEPT), len(self._names) - 1)
        self._now = begun.situation.copy() if begun else Situation(self._blocks)
        self._asked = asked
        self._requests: list[Request] = [{"op": "create", "blocks": self._blocks}]
        self._uncounted = 0  # of them, reads of whole views, and others beyond what was asked for
        if begun:
            self._requests = list(begun.requests)
            self._tags.go_on_after(self._requests)

    def program(self, ops: int, any_length: bool = False) -> list[Request]:
        """Return the whole program, of about `ops` operations besides reads of all views, or of up
        to so many if it may have `any_length`."""
        self._prepare()
        while len(self._requests) - self._uncounted <= ops and not (
            any_length and self._upto(ops) == 0
        ):
            kind = self._next()
            if ops >= REPEATS_FROM and self._upto(REPEATED_ONE_IN - 1) == 0:
                self._repeat(ops)
            elif kind in SCENES:
                self._play(kind)
            elif kind == "crash" and not self._beyond() and self._cuts.now_and_then(2):
                self._add(self._one_of([one for one in self._kinds if one in CUTTABLE]), cut=True)
            else:
                if kind == "crash" and rarely(self._choose, PROMISED_ONE_IN):
                    self._promise()
                self._add(kind)
        self._read_back()
        if self._now.failed and self._upto(1):
            self._make_whole()
        for _ in range(1 + self._upto(2) if self._array.faulty else 0):
            self._survive()
        if self._array.spares and self._upto(1):
            self._rely_on_spares()
        if "scrub" in self._capabilities:
            self._requests.append({"op": "scrub"})
        if "device" in self._capabilities and self._upto(1):
            self._take_away()
        return self._requests

    def _prepare(self) -> None:
        """Half of the new disks are filled: at once, or in pieces from either end, with a
        checkpoint or an opening in between some."""
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

    def _write_at(self, lba: int, count: int = 1) -> None:
        """A write, unless too many devices are away: a power cut may have been one too many."""
        if self._beyond():
            return
        self._requests.append({"op": "write", "lba": lba, "tags": self._tags.next(count)})
        self._now.note("write", lbas=range(lba, lba + count), written=count)

    # What comes next.

    def _next(self) -> str:
        """The next operation or scene: of a few operations that the swarm offers, the one asked
        least often in this situation.
        """
        first = self._one_of(self._kinds)
        if first in SCENES or self._upto(FREE - 1) == 0:
            return first
        others = [self._one_of(self._kinds) for _ in range(OFFERED - 1)]
        offered = [first, *(kind for kind in others if kind not in SCENES)]
        features, asked = self._now.features(), self._asked
        return min(offered, key=lambda kind: min([asked[feature, kind] for feature in features]))

    def _play(self, scene: str) -> None:
        """A scene, now and then without a step; what came of it is read back."""
        if self._upto(1):
            self._ranges, self._scattered = self._scattered, self._ranges
        if scene == "survive":
            self._survive()
        for kind in swarm.steps(self._choose, scene):
            if NEEDS[kind] in {None, *self._capabilities} and self._upto(LEFT_OUT - 1):
                self._add(kind)
        self._read_back()

    def _make_whole(self) -> None:
        """Every device is brought back and catches up: a scrub finds what it still lacks."""
        for _ in range(len(self._now.failed)):
            self._add("replace" if {*self._now.failed.values()} <= {DEGRADED, BACK} else "return")
        self._add("settle")
        self._read_back()

    def _leave_alone(self) -> None:
        """What a power cut left goes on for a while; then some devices are away."""
        for _ in range(self._one_of(LEFT_FOR)):
            self._add("write")
        self._take_away()

    def _survive(self) -> None:
        """All catch up, now and then after one went wrong under changes. Then some are away for a
        while, often next to a recovery.
        """
        self._make_whole()
        if (wrong := self._array.go_wrong(self._now)) is not None:
            self._requests.append({"op": "fail", **wrong})
            changes = [kind for kind in swarm.CHANGES if NEEDS[kind] in {None, *self._capabilities}]
            for _ in range(2 + self._upto(10)):
                self._add(self._one_of(changes))
            self._make_whole()
        self._take_away()
        self._make_whole()

    def _rely_on_spares(self) -> None:
        """Spares take the place of devices; then as many others are away as may, for a while."""
        self._make_whole()
        if self._now.failed:
            return
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
        """As many devices fail as may, often next to a recovery: is what is left all there is?"""
        before, after = self._one_of(RECOVERED), self._one_of(RECOVERED)
        for kind in (*before, *["fail"] * self._array.tolerates, *after):
            if NEEDS[kind] in self._capabilities:
                self._add(kind)
        self._read_back()

    def _repeat(self, most: int) -> None:
        """The same few operations again and again, `most` at most: what counts them may wrap."""
        kinds = [kind for kind in self._kinds if kind not in SCENES]
        cycle = [self._one_of(kinds) for _ in range(self._one_of((1, 1, 2, 3)))]
        for _ in range(min(self._one_of(TIMES), most // len(cycle))):
            for kind in cycle:
                self._add(kind)

    def _add(self, kind: str, cut: bool = False) -> None:
        """One operation, with all that has to follow it; a read if it makes no sense now.

        With `cut` the power fails in the middle of it."""
        if self._beyond() and kind not in BEYOND_TOLERANCE:
            kind = "read"
        self._asked.update([(feature, kind) for feature in self._now.features()])
        if kind == "crash":
            self._crash()
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
            self._requests.append({**request, "cut": self._cuts.at(kind)})
            self._crash(again=request if kind in AGAIN else None)
            if "device" in self._capabilities and rarely(self._choose, ALONE_ONE_IN):
                self._leave_alone()
        else:
            self._requests.append(request)

    def _promise(self) -> None:
        """What came last is made durable, or a write of any length: the power cut that comes next
        must not lose it.
        """
        ways = [way for way in (FUA, "flush") if way in self._capabilities]
        if not ways or self._beyond():
            return
        way = self._one_of(ways)
        if way == FUA or self._upto(1):
            self._write_at(*self._ranges.between_borders())
        if way == FUA:
            self._requests[-1]["fua"] = True
        else:
            self._add("flush")

    def _crash(self, again: Request | None = None) -> None:
        """A crash, now and then cut short itself; then all views are read back.

        `again` was cut short and is sent once more first: whether it took effect is not known.
        """
        while self._cuts.now_and_then(4):
            self._requests.append({"op": "crash", "cut": self._cuts.at("crash")})
        self._requests.append({"op": "crash"})
        self._now.note("crash")
        if again is not None:
            self._requests.append(again)
        self._read_back()

    def _beyond(self) -> bool:
        return len(self._now.failed) > self._array.tolerates

    def _read_back(self) -> None:
        live: Request = {"op": "read", "lba": 0, "count": self._blocks}
        views = (*self._now.views, *self._now.deleted[-MOST_DELETED:])
        self._requests += [live, *({**live, "view": name} for name in views)]
        self._uncounted += 1 + len(views)

    # The operations: the rest of each request. None where there is nothing to ask.

    def _write(self) -> Request:
        lba, count = self._ranges.next()
        self._now.note("write", lbas=range(lba, min(lba + count, self._blocks)), written=count)
        request: Request = {"lba": lba, "tags": self._tags.next(count)}
        if self._durable_one_in and rarely(self._choose, self._durable_one_in):
            request["fua"] = True
        return request

    def _unmap(self) -> Request:
        lba, count = self._ranges.next()
        self._now.note("unmap", lbas=range(lba, min(lba + count, self._blocks)))
        return {"lba": lba, "count": count}

    def _read(self) -> Request:
        lba, count = self._ranges.next()
        self._now.note("read")
        request: Request = {"lba": lba, "count": count}
        if "snapshot" in self._capabilities and self._upto(1):
            request["view"] = self._name(list(self._now.views))
        return request

    def _snapshot(self) -> Request:
        name = self._name([name for name in self._names if name not in self._now.views])
        if name in self._names and name not in self._now.views:
            self._named = name
            self._now.note("snapshot", name)
        return {"name": name}

    def _delete(self) -> Request | None:
        return self._of_a_snapshot("delete")

    def _revert(self) -> Request | None:
        return self._of_a_snapshot("revert")

    def _of_a_snapshot(self, op: str) -> Request | None:
        if not self._now.views and self._upto(3):
            return None
        name = self._led_name(op)
        if name in self._now.views:
            self._named = name
            self._now.note(op, name)
        return {"name": name}

    def _tick(self) -> Request:
        self._now.note("tick")
        return {"seconds": self._one_of(SECONDS)}

    # Choices.

    def _led_name(self, op: str) -> str:
        """As _name; of two snapshots, the one whose `op` makes a tree of views that was seldom
        made, unless the last one is named again.
        """
        fitting = list(self._now.views)
        if self._named in fitting and rarely(self._choose, SAME_ONE_IN):
            return self._named
        if len(fitting) < 2:
            return self._name(fitting)
        ways = [self._one_of(fitting) for _ in range(2)]
        made = [(("becomes", self._now.shape_after(op, name)), op) for name in ways]
        least = min((0, 1), key=lambda way: self._asked[made[way]])
        self._asked[made[least]] += 1
        return self._name([ways[least]])

    def _name(self, fitting: list[str]) -> str:
        """Return one of the fitting names. If there is none, and now and then, return any other
        name, or one that is not allowed.
        """
        luck = self._upto(15)
        if luck == 15:
            return names.forbidden(self._choose, self._one_of(self._names))
        return self._one_of(fitting if fitting and luck < 14 else self._names)

    def _upto(self, most: int) -> int:
        return self._choose.randrange(most + 1)

    def _one_of(self, values: Sequence[Value]) -> Value:
        return values[self._choose.randrange(len(values))]
