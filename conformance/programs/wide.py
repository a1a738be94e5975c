"""Programs of another manner: shapes that the usual ones hardly ever have. Every fourth program of
a campaign is such a one (conformance.programs.generate.cases), unless TLC judges.

- The disk is filled in pieces, so that a map of extents has many entries. Then holes are cut into
  it, and written in.
- Much of what an engine may put off is left to do when the next change, opening or power cut comes.
- Many snapshots are there at once, through an opening.
- A change and an opening follow each other more often than a small counter counts.
- A request that changes what a view is comes between two reads of the same blocks.
- A power cut follows soon on a recovery, with few small changes in between.
- All blocks are written again and again, durably: what was freed is used again while a log still
  has what was there before, and the power fails.
- A disk that is nearly full is written over in short pieces by chance, for long, so that it has to
  be cleaned, and must not refuse anything.
"""

from collections.abc import Sequence

from conformance.contract.source import rarely
from conformance.programs.full import FullWriter
from conformance.programs.swarm import FUA, NEEDS
from conformance.programs.writer import TIMES, Request

# Snapshots that are there at once: one more than a power of 2.
CROWDS = (17, 17, 17, 33, 33, 65, 257)
NEVER = 1 << 10  # snapshots of a crowd before one write comes: they share everything
APART = (2, 8, NEVER, NEVER, NEVER)  # about so many, in a crowd
STRIDES = (2, 2, 3, 5)  # blocks from one piece to the next
MOST_PIECES = 120
TURNS = (6, 12, 24)  # writes, most of the whole disk
MOST_TURNED = 600  # blocks
CHURNED = (1, 2, 3)  # times as many writes as the disk has blocks
LEFT_FREE = (0, 4, 8, 16)  # of a disk that is churned, one block in so many is not mapped; 0: none
MOST_CHURNED = 400  # writes
PIECES = (1, 1, 1, 1, 2, 3, 8)  # blocks of them
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
OPENINGS = ("restart", "crash")
CHANGES = ("write", "unmap", "flush", "revert", "snapshot")  # of which one comes between openings
# What comes while much is left to do; `open` stands for an opening.
LATER = (*("revert",) * 2, *("delete",) * 3, "snapshot", "write", "unmap", *("open",) * 2)
AROUND = frozenset(["revert", "delete", "restart", "unmap", "checkpoint", "clean", "settle"])


class WideWriter(FullWriter):
    """Writes programs that begin with one of these shapes."""

    def _prepare(self) -> None:
        if len(self._requests) == 1:
            self._one_of(
                (
                    self._fill_in_pieces,
                    self._crowd,
                    self._open_again_and_again,
                    self._fill_in_pieces,
                    self._put_off,
                    self._turn_over,
                    self._churn,
                )
            )()
            self._uncounted = len(self._requests)  # the program goes on for as long as any other
        super()._prepare()

    def _fill_in_pieces(self) -> None:
        """Blocks at some distance from each other, forward, backward, or in any order."""
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
        """Holes from one piece to another, often from the first one on, each with a write in it."""
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

    def _put_off(self) -> None:
        """Snapshots that differ in all blocks are reverted to and deleted, often the same ones,
        with few other changes in between.
        """
        if "snapshot" not in self._capabilities:
            return
        names = ("m0", "m1", "m2")[self._upto(1) :]
        later = [op for op in LATER if NEEDS.get(op) in {None, *self._capabilities}]
        for _ in range(1 + self._upto(2)):
            for name in names:
                self._write_at(0, self._blocks)
                self._request_of_name("snapshot", name)
            self._write_at(0, -(-self._blocks // self._one_of((1, 2))))
            name = self._one_of(names)
            for _ in range(2 + self._upto(6)):
                op = self._one_of(later)
                if op == "open":
                    self._open()
                elif op in ("write", "unmap"):
                    self._add(op)
                else:
                    name = self._one_of((name, self._one_of(names)))
                    self._request_of_name(op, name)
            self._read_back()

    def _crowd(self) -> None:
        """Many snapshots, writes between some or none, an opening; then most are deleted."""
        if not {"snapshot", "delete"} <= self._capabilities:
            return
        names = [f"m{number}" for number in range(self._one_of(CROWDS))]
        apart = self._one_of(APART)
        self._write_at(0, self._blocks)
        for name in names:
            if rarely(self._choose, apart):
                self._write_at(self._upto(self._blocks - 1))
            self._request_of_name("snapshot", name)
        if "flush" in self._capabilities:  # a judge would follow every cut that takes some back
            self._add("flush")
        self._open()
        self._read_back()
        self._write_at(self._upto(self._blocks - 1))
        names.sort(key=lambda name: self._upto(1000))
        for name in names[self._upto(3) :]:
            self._request_of_name("delete", name)
            if self._upto(7) == 0:
                self._write_at(self._upto(self._blocks - 1))
        self._open()
        self._read_back()

    def _turn_over(self) -> None:
        """The whole disk is written again and again, a few blocks or none in between; mostly it is
        made durable, and now and then the power fails.
        """
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
        """A disk is written over in short pieces; what snapshots keep is freed soon."""
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
                    if (op == "delete") == ("m0" in self._now.views):
                        self._request_of_name(op, "m0")
                elif op in OPENINGS:
                    self._open((op,))
                else:
                    self._add(op)
            count = min(self._one_of(PIECES), last - first)
            self._write_at(first + self._upto(last - first - count), count)
        self._read_back()

    def _open_again_and_again(self) -> None:
        """Openings and one kind of change in turn, often durable; a snapshot lives through all."""
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
        super()._crash(again)
        if self._upto(2) == 0 and not self._now.failed:
            for _ in range(1 + self._upto(1)):
                self._write_at(self._upto(self._blocks - 1))
            super()._crash()

    def _open(self, ways: Sequence[str] = OPENINGS) -> None:
        """The disk is opened again, in one of these ways that the target has.

        What a power cut left is read: many cuts that nobody looked at leave too many disks open.
        """
        ways = [op for op in ways if op in self._capabilities]
        if ways:
            op = self._one_of(ways)
            self._requests.append({"op": op})
            self._now.note(op)
            if op == "crash":
                self._read_back()

    def _unmap_at(self, lba: int, count: int) -> None:
        if self._beyond():
            return
        self._requests.append({"op": "unmap", "lba": lba, "count": count})
        self._now.note("unmap", lbas=range(lba, lba + count))

    def _request_of_name(self, op: str, name: str) -> None:
        if self._beyond():
            return
        self._requests.append({"op": op, "name": name})
        if (op == "snapshot") != (name in self._now.views):
            self._now.note(op, name)
