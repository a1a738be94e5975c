"""Wide programs: shapes that ordinary programs hardly ever have. Every third program of a campaign
is wide (conformance.programs.generate.cases), unless TLC judges. The shapes about snapshots are in
conformance.programs.wide_snapshots, those about devices in conformance.programs.wide_devices.

- The disk is filled in pieces, so that a map of extents has many entries. Then holes are cut into
  it, and written in.
- A change and an opening follow each other more often than a small counter counts.
- A request that changes what a view is comes between two reads of the same blocks.
- A power cut follows soon on a recovery, with few small changes in between, often of blocks that
  were written just before the first one.
- All blocks are written again and again, durably: what was freed is used again while a log still
  has what was there before, and the power fails.
- A disk that is nearly full is written over in short pieces by chance, for long, so that it has to
  be cleaned, and must not refuse anything.
- One block is written everywhere, again and again, so that it is shared more often than a small
  number counts. Then single blocks are written over.
- A few pieces of the disk are written, far from each other. Then ranges are unmapped that begin or
  end in them, beside them, or where nothing was ever written.
- More is written than a buffer, or a batch of a log, may hold. Nothing of it is durable, or all of
  it is made durable at once, and the power fails.
- A few disks are larger than all others: they have more blocks than a small table has entries.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.contract.source import rarely
from conformance.programs.requests import LARGEST, Request, fits
from conformance.programs.swarm import FUA, NEEDS, OPENINGS
from conformance.programs.wide_devices import PIECES, DevicesWriter
from conformance.programs.wide_snapshots import LEAST_PRUNED, STRIDES
from conformance.programs.writer import TIMES

LARGE = (520, 1030, 2100, 2100)  # blocks: more than a power of 2
MOST_PIECES = 120
TURNS = (6, 12, 24)  # writes, most of the whole disk
MOST_TURNED = 600  # blocks
CHURNED = (1, 2, 3)  # times as many writes as the disk has blocks
LEFT_FREE = (0, 4, 8, 16)  # of a disk that is churned, one block in so many is not mapped; 0: none
MOST_CHURNED = 400  # writes
OTHER_ONE_IN = 24  # of them: another change instead
OTHERS = (
    "snapshot",
    "snapshot",
    "delete",
    "delete",
    "unmap",
    "clean",
    "checkpoint",
    "restart",
    "crash",
)
CHANGES = ("write", "unmap", "flush", "revert", "snapshot")  # of which one comes between openings
RECENT = 6  # requests before a power cut: their blocks are written again soon after it
SHARED = 300  # times that one block is held, at least, where a disk is formatted,
MOST_FORMATS = 12  # in so many times, each with a snapshot, at most
SHARED_TIMES = 4  # as likely where the target stores equal blocks once
PICKED = (3, 10, 30)  # writes over single blocks of it
BLANKS = (2, 4, 6)  # times that nothing is mapped,
ISLANDS = (1, 2, 3, 6)  # pieces that are written then,
ISLAND = (1, 1, 1, 2, 3, 8)  # blocks of one
FROM_A_BORDER = (0, 1, 8, 40, LARGE[-1])  # blocks, at most, to a place beside a border of one
CROSSINGS = (2, 5, 10)  # steps behind them, of these kinds:
CROSSING = (
    *("unmap",) * 5,
    *("write",) * 2,
    *("read", "snapshot", "revert", "delete", "checkpoint", "open"),
)
HELD_BACK = (20, 60, 150, 400)  # changes before any of them is made durable, or half as many,
MOST_HELD_BACK = 4000  # blocks of them
REST_ONE_IN = 12  # of these: another change instead, or a read
NOT_DURABLE = (0, 0, 0, 1, 3)  # changes behind what makes all of these durable
AROUND = frozenset(["revert", "delete", "restart", "unmap", "checkpoint", "clean", "settle"])


class WideWriter(DevicesWriter):
    """Writes programs that begin with one of these shapes."""

    def _sizes(self, hello: Mapping[str, Any]) -> Sequence[int]:
        usual = super()._sizes(hello)
        return *usual, *usual, *(blocks for blocks in LARGE if fits(blocks, hello))

    def _prepare(self) -> None:
        if len(self._requests) == 1:
            self._one_of(self._shapes())()
            self._uncounted = len(self._requests)  # the program goes on for as long as any other
        super()._prepare()

    def _shapes(self) -> Sequence[Callable[[], None]]:
        """Return the shapes, of which one is drawn. On a large disk those that open it and read all
        of it many times would take as long as a hundred other programs."""
        shapes = [
            *(self._fill_in_pieces,) * 2,
            self._one_of((self._crowd, self._crowd, self._come_and_go)),
            self._open_again_and_again,
            self._put_off,
            *(self._prune,) * (2 if self._blocks >= LEAST_PRUNED else 1),
            self._turn_over,
            self._churn,
            self._hold_back,
            *(self._leave_holes,) * (self._blocks >= LEAST_PRUNED),
            *(self._format,) * (SHARED_TIMES if self._tags.shared else 1),
        ]
        if LEAST_PRUNED <= self._blocks <= LARGEST:
            shapes += (self._wander,) * 2
        if self._blocks <= LARGEST and self._may_lose_devices():
            shapes += [
                self._outlast,
                *(self._take_turns,) * 2,
                self._catch_up,
                self._exchange,
                *(self._roam,) * 2,
            ]
        return shapes

    def _fill_in_pieces(self) -> None:
        """Write single blocks at a fixed distance, forward, backward, or in random order."""
        lbas = list(range(self._upto(1), self._blocks, self._one_of(STRIDES)))[:MOST_PIECES]
        order = self._upto(2)
        if order == 1:
            lbas.reverse()
        elif order == 2:
            lbas.sort(key=lambda lba: self._upto(1000))
        for lba in lbas:
            self._write_at(lba)
        if lbas and "unmap" in self._capabilities and self._upto(2):
            self._cut_up(sorted(lbas))

    def _cut_up(self, lbas: Sequence[int]) -> None:
        """Unmap ranges from one piece to another, often from the first piece on, and write a block
        in each."""
        for _ in range(1 + self._upto(5)):
            points = [
                0 if self._upto(1) else self._one_of(lbas),
                self._one_of((*lbas, self._blocks)),
            ]
            begin, end = sorted(points)
            self._unmap_at(begin, max(1, end - begin))
            if self._upto(3):
                self._write_at(begin + self._upto(max(0, end - begin - 1)))
            if self._upto(3) == 0:
                self._open()
        self._read_back()

    def _turn_over(self) -> None:
        """Write the whole disk again and again, with few other writes in between. Mostly it is made
        durable, and now and then the power fails."""
        ways = [way for way in (FUA, "flush") if way in self._capabilities]
        for _ in range(min(self._one_of(TURNS), MOST_TURNED // self._blocks)):
            if self._upto(2):
                self._write_at(0, self._blocks)
            else:
                self._write_at(*self._ranges.between_borders())
            way = self._one_of((*ways, "")) if ways else ""
            if way == FUA and self._requests[-1]["op"] == "write":
                self._requests[-1]["fua"] = True
            elif way == "flush":
                self._add(way)
            if self._upto(7) == 0:
                self._open()
        self._open(("crash",))

    def _churn(self) -> None:
        """Overwrite a nearly full disk in short pieces. What snapshots keep is freed soon."""
        others = [op for op in OTHERS if NEEDS[op] in {None, *self._capabilities}]
        one_in, before = self._one_of(LEFT_FREE), self._upto(1)
        free = -(-self._blocks // one_in) if one_in else 0
        first, last = (free, self._blocks) if before else (0, self._blocks - free)
        if first == last:
            return
        self._write_at(first, last - first)
        for _ in range(min(self._one_of(CHURNED) * self._blocks, MOST_CHURNED)):
            if others and rarely(self._choose, OTHER_ONE_IN):
                op = self._one_of(others)
                if op in ("snapshot", "delete"):
                    if (op == "delete") == (self._called("m0") in self._now.views):
                        self._request_of_name(op, "m0")
                elif op in OPENINGS:
                    self._open((op,))
                else:
                    self._add(op)
            count = min(self._one_of(PIECES), last - first)
            self._write_at(first + self._upto(last - first - count), count)
        self._read_back()

    def _leave_holes(self) -> None:
        """Write a few islands. Then unmap and read from one place to another, write other islands,
        and change views. Places are borders of islands, beside them, or anywhere: so holes of a map
        are of any size, and parts of it were never there or are gone again. In the end nothing is
        mapped, and it begins again."""
        some = [step for step in CROSSING if NEEDS.get(step) in {None, *self._capabilities}]
        blank = {"snapshot", "revert"} <= self._capabilities and self._upto(1)
        if blank:
            self._request_of_name("snapshot", "m0")
        for _ in range(self._one_of(BLANKS)):
            borders: list[int] = []
            for _ in range(self._one_of(ISLANDS)):
                self._write_an_island(borders)
            for _ in range(self._one_of(CROSSINGS)):
                step, ends = self._one_of(some), (self._beside(borders), self._beside(borders))
                begin = min(*ends, self._blocks - 1)
                count = max(1, max(ends) - begin)
                if step == "write":
                    self._write_an_island(borders)
                elif step == "unmap":
                    self._unmap_at(begin, count)
                elif step == "read":
                    self._requests.append({"op": "read", "lba": begin, "count": count})
                elif step == "open":
                    self._open()
                else:
                    self._add(step)
            self._read_back()
            if blank:
                self._request_of_name("revert", "m0")
            elif "unmap" in self._capabilities:
                self._unmap_at(0, self._blocks)

    def _beside(self, borders: Sequence[int]) -> int:
        """Return one of the borders, or a place before or behind it; any place if there is none."""
        far = self._upto(min(self._one_of(FROM_A_BORDER), self._blocks))
        place = self._one_of(borders) if borders else self._upto(self._blocks)
        return max(0, min(place - far if self._upto(1) else place + far, self._blocks))

    def _write_an_island(self, borders: list[int]) -> None:
        lba = min(self._beside(borders), self._blocks - 1)
        count = min(self._one_of(ISLAND), self._blocks - lba)
        borders += (lba, lba + count)
        self._write_at(lba, count)

    def _hold_back(self) -> None:
        """Make many changes in pieces of about one length. Mostly they are made durable at once, so
        that what waits has to be stored in several parts. Then let the power fail."""
        others = [op for op in ("unmap", "read") if NEEDS[op] in {None, *self._capabilities}]
        for _ in range(1 + self._upto(1)):
            most = self._one_of((1, 3, 8, self._blocks))
            left = MOST_HELD_BACK
            half = self._one_of(HELD_BACK) // 2
            for _ in range(half + self._upto(half)):
                count = 1 + self._upto(min(most, self._blocks, left) - 1)
                if rarely(self._choose, REST_ONE_IN):
                    self._add(self._one_of(others))
                else:
                    self._write_at(self._upto(self._blocks - count), count)
                left -= count
                if not left or self._beyond():
                    break
            if self._upto(3):
                self._promise()
            for _ in range(self._one_of(NOT_DURABLE)):
                self._write_at(self._upto(self._blocks - 1))
            self._open(("crash",))

    def _format(self) -> None:
        """Write one block everywhere until it is held SHARED times, with a snapshot before each
        time but the first. Write single blocks over it, and delete the snapshots."""
        tags = self._tags.run(self._blocks)
        times = min(-(-SHARED // self._blocks), MOST_FORMATS)
        names = [f"m{number}" for number in range(1, times) if "snapshot" in self._capabilities]
        for name in ("", *names):
            if name:
                self._request_of_name("snapshot", name)
            self._write_at(0, self._blocks)
            if self._requests[-1]["op"] == "write":
                self._requests[-1]["tags"] = tags
        if self._upto(1):
            self._open()
        names.sort(key=lambda name: self._upto(1000))
        for name in ("", *names[self._upto(2) :]):
            if name and "delete" in self._capabilities:
                self._request_of_name("delete", name)
            for _ in range(self._one_of(PICKED) // (3 if name else 1)):
                self._write_at(self._upto(self._blocks - 1))
        self._open()
        self._read_back()

    def _open_again_and_again(self) -> None:
        """Open the disk and make one kind of change, in turn. One snapshot lives through all."""
        kinds = [kind for kind in CHANGES if NEEDS[kind] in {None, *self._capabilities}]
        kind, times = self._one_of(kinds), self._one_of(TIMES)
        if "delete" not in self._capabilities and kind == "snapshot":
            kind = "write"
        self._write_at(self._upto(self._blocks - 1))
        if "revert" in self._capabilities and "snapshot" in self._capabilities:
            self._request_of_name("snapshot", "m0")
        elif kind == "revert":
            kind = "write"
        ways = self._one_of((OPENINGS[:1], OPENINGS))  # what a cut takes back may be the counter
        durably = "flush" in self._capabilities and self._upto(2)
        stored = "clean" in self._capabilities and self._upto(1)  # the counter of checkpoints
        for _ in range(times):
            if kind == "revert":
                self._request_of_name("revert", "m0")
            elif kind == "snapshot":
                self._request_of_name("snapshot", "m1")
                self._request_of_name("delete", "m1")
            elif kind == "write":
                self._write_at(self._upto(self._blocks - 1))
            else:
                self._add(kind)
            if durably and kind != "flush":
                self._add("flush")
            if stored and not self._beyond():
                self._requests.append({"op": "checkpoint"})
            self._open(ways)
        self._read_back()

    def _add(self, kind: str, cut: bool = False) -> None:
        if kind in AROUND and self._upto(2) == 0:
            read: Request = {"op": "read", **self._read()}
            self._requests.append(read)
            super()._add(kind, cut)
            self._requests.append(dict(read))
            return
        super()._add(kind, cut)

    def _crash(self, again: Request | None = None) -> None:
        recent = [one["lba"] for one in self._requests[-RECENT:] if one["op"] == "write"]
        super()._crash(again)
        if self._upto(2) == 0 and not self._now.failed:
            for _ in range(1 + self._upto(1)):
                anywhere = self._upto(self._blocks - 1)
                # where it was written before: what a log still has of that must not come back
                self._write_at(self._one_of((anywhere, *recent)) % self._blocks)
            super()._crash()
