"""The shapes of wide programs (conformance.programs.wide) that are about snapshots.

- Much of what an engine may put off is left to do when the next change, opening or power cut comes.
- Snapshots that share most of what they hold branch from each other and are deleted, with single
  writes in between.
- Many snapshots are there at once, through an opening.
- A snapshot comes and goes more often than a byte counts, beside one that stays.
- A tree of views changes for long, by steps that are drawn one by one: so views that are freed in
  part, branches, short and long writes and openings meet in any order.
"""

from collections.abc import Sequence

from conformance.contract.source import rarely
from conformance.programs.full import FullWriter
from conformance.programs.names import called
from conformance.programs.swarm import NEEDS, OPENINGS

# Snapshots that are there at once: one more than a power of 2.
CROWDS = (17, 17, 17, 33, 33, 65, 257, 257)
TURNS_TAKEN = (17, 65, 256, 256)  # of one snapshot, or up to three fewer
NEVER = 1 << 10  # snapshots of a crowd before one write comes: they share everything
APART = (2, 8, NEVER, NEVER, NEVER)  # about so many, in a crowd
LESS = (1, 1, 2, 3, 4)  # a write before a snapshot has so many times fewer blocks than the last
MOST_BRANCHES = 6
MOST_SCATTERED = 20  # writes between two snapshots
BEHIND = (0, 0, 1, 2, 4, 8, 16)  # single writes after a deletion,
STAGES = (1, 1, 1, 1, 3)  # times that these follow it, with what comes before them,
NEAR = (1, 4, 16)  # in such a part of the disk, from its beginning on
LEAST_PRUNED = 24  # blocks of a disk on which a snapshot is freed in many steps
PRUNED_ONE_IN = 2  # trees of views in ordinary programs on such disks
# What comes behind a deletion: nothing; what frees all that was deleted so far; what stores all
# that waits in memory, so that the next few changes begin to free it; or an opening.
WHOLE = ("clean", "settle")
NEXT = ("", "", *WHOLE, "checkpoint", "checkpoint", "open")
WHOLE_ONE_IN = 4  # trees of views: each view is freed whole before the next one is deleted,
WALKED_WHOLE_ONE_IN = 2  # in walks, and where those go that live came from
STORED_ONE_IN = 3  # openings, right behind a checkpoint
OPENED_ONE_IN = 6  # snapshots of a tree: the disk is opened again before the next one
STRIDES = (2, 2, 3, 5)  # blocks from one piece to the next
WANDERS = (20, 40, 60, 80)  # steps, of a walk over a full disk
WANDERING = (
    *("snapshot",) * 4,
    *("revert",) * 3,
    *("delete",) * 4,
    *("write",) * 4,
    *("long write",) * 2,
    *("checkpoint",) * 3,
    *("open",) * 3,
    "clean",
    "settle",
)
MOST_WANDERED = 8  # snapshots that are there at once
STROLLS = (1, 1, 2, 4, 8)  # writes of one such step, in one part of the disk
# What comes while much is left to do; `open` stands for an opening.
LATER = (
    *("revert",) * 2,
    *("delete",) * 3,
    "snapshot",
    *("write",) * 2,
    "unmap",
    *("read",) * 2,
    *("open",) * 2,
)


class SnapshotsWriter(FullWriter):
    """Writes these shapes, and the single requests of all wide shapes."""

    def _play(self, scene: str) -> None:
        prunes = {"snapshot", "delete"} <= self._capabilities and self._blocks >= LEAST_PRUNED
        if scene == "branch" and prunes and rarely(self._choose, PRUNED_ONE_IN):
            self._write_at(0, self._blocks)
            self._prune_once()
        else:
            super()._play(scene)

    def _put_off(self) -> None:
        """Revert to and delete snapshots that differ in many blocks, often the same ones, with few
        other changes in between. Often each differs in fewer blocks than the one before: what was
        put off for the first is still left when the next one is taken."""
        if "snapshot" not in self._capabilities:
            return
        names = ("m0", "m1", "m2")[self._upto(1) :]
        later = [op for op in LATER if NEEDS.get(op) in {None, *self._capabilities}]
        for _ in range(1 + self._upto(2)):
            for depth, name in enumerate(names):
                count = max(1, self._blocks // self._one_of(LESS) ** depth)
                lba = self._one_of((0, self._blocks - count))
                self._write_at(lba, count)
                self._request_of_name("snapshot", name)
            self._write_at(0, -(-self._blocks // self._one_of((1, 2))))
            name = self._one_of(names)
            for _ in range(2 + self._upto(6)):
                op = self._one_of(later)
                if op == "open":
                    self._open()
                elif op == "read":
                    self._requests.append({"op": "read", "lba": 0, "count": self._blocks})
                elif op == "unmap" and self._upto(1):  # just what the last snapshot differs in
                    self._unmap_at(lba, count)
                elif op in ("write", "unmap"):
                    self._add(op)
                else:
                    name = self._one_of((name, self._one_of(names)))
                    self._request_of_name(op, name)
            self._read_back()

    def _prune(self) -> None:
        """Take snapshots of a full disk that branch from each other, and delete them. The few
        single writes in between meet a deleted snapshot that is freed in part, often while others
        are freed whole. Every second time the disk is opened again then."""
        if not {"snapshot", "delete"} <= self._capabilities:
            return
        self._write_at(0, self._blocks)
        for _ in range(1 + self._upto(3)):
            self._prune_once()

    def _prune_once(self) -> None:
        names = [f"m{number}" for number in range(2 + self._upto(MOST_BRANCHES - 2))]
        for name in names:
            self._branch_off()
            self._change()
            self._request_of_name("snapshot", name)
            if rarely(self._choose, OPENED_ONE_IN):
                self._open()
        self._branch_off()
        self._change()
        order = self._upto(5)  # 0: the oldest first
        if order == 1:
            names.reverse()
        elif order < 4:
            names.sort(key=lambda name: self._upto(1000))
        elif ancestors := self._now.ancestors():  # branches beside live stay
            names = ancestors if self._upto(1) else ancestors[::-1]
        whole = rarely(self._choose, WHOLE_ONE_IN if order < 4 else WALKED_WHOLE_ONE_IN)
        for name in names[: 1 + self._upto(len(names) - 1)]:
            self._request_of_name("delete", name)
            near = self._one_of(NEAR)
            for _ in range(self._one_of(STAGES)):
                kind = self._one_of(WHOLE if whole else NEXT)
                if kind == "open":
                    self._open()
                elif kind and NEEDS[kind] in self._capabilities:
                    self._add(kind)
                for _ in range(self._one_of(BEHIND)):
                    self._write_at(self._upto((self._blocks - 1) // near))
        if self._upto(1):
            self._let_a_branch_go()
        if self._upto(1):
            if "flush" in self._capabilities:
                self._add("flush")
            self._open()
        self._read_back()

    def _wander(self) -> None:
        """Take snapshots, revert to them and delete them at random, with writes, checkpoints,
        cleanings and openings in between. All views are read only at the end and behind power cuts:
        a read may mend what waits in memory."""
        if not {"snapshot", "delete", "revert"} <= self._capabilities:
            return
        self._write_at(0, self._blocks)
        whole = [kind for kind in WHOLE if NEEDS[kind] in self._capabilities]
        whole = whole if rarely(self._choose, WALKED_WHOLE_ONE_IN) else []
        names = [self._called(f"m{number}") for number in range(MOST_WANDERED)]
        some = [step for step in WANDERING if NEEDS.get(step) in {None, *self._capabilities}]
        for _ in range(self._one_of(WANDERS)):
            step, views = self._one_of(some), list(self._now.views)
            free = [name for name in names if name not in views]
            if step == "snapshot" and free:
                self._request_of_name(step, self._one_of(free))
            elif step in ("revert", "delete") and views:
                self._request_of_name(step, self._one_of(views))
                if step == "delete" and whole and not self._beyond():
                    self._add(self._one_of(whole))
            elif step == "open":
                self._open()
            elif step == "long write":
                self._change()
            elif step in ("clean", "checkpoint", "settle"):
                self._add(step)
            else:
                near = self._one_of(NEAR)
                for _ in range(self._one_of(STROLLS)):
                    self._write_at(self._upto((self._blocks - 1) // near))
        self._read_back()

    def _let_a_branch_go(self) -> None:
        """Free live, by a revert, or one of the snapshots that are left. What another branch shares
        with it has to stay, though what both came from may be gone."""
        if views := list(self._now.views):
            ways = ("revert", "delete") if "revert" in self._capabilities else ("delete",)
            self._request_of_name(self._one_of(ways), self._one_of(views))
            for kind in WHOLE:
                if NEEDS[kind] in self._capabilities:
                    self._add(kind)

    def _branch_off(self) -> None:
        """Revert to any of the snapshots, every second time, often to the first, or to the one that
        the newest came from: then that one and live are branches of it, however deep it is."""
        views = self._now.views
        if not views or "revert" not in self._capabilities or not self._upto(1):
            return
        some = list(views)
        name = (some[0], self._one_of(some), views[some[-1]])[self._upto(2)]
        self._request_of_name("revert", name if isinstance(name, str) else some[0])

    def _change(self) -> None:
        """Write a range, or blocks at some distance. After the latter most blocks are still shared,
        and few pages of the maps are."""
        if self._upto(1):
            self._write_at(*self._ranges.between_borders())
        else:
            lbas = range(self._upto(self._blocks - 1), self._blocks, self._one_of(STRIDES))
            for lba in lbas[:MOST_SCATTERED]:
                self._write_at(lba)

    def _crowd(self) -> None:
        """Take many snapshots, with few or no writes between them, open the disk, and delete most
        of them."""
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

    def _come_and_go(self) -> None:
        """Take and delete one snapshot, again and again, while the disk stays open. So numbers that
        are given to snapshots in turn may wrap, and an older snapshot has the same one."""
        if not {"snapshot", "delete"} <= self._capabilities:
            return
        self._write_at(0, self._blocks)
        self._request_of_name("snapshot", "older")
        for _ in range(self._one_of(TURNS_TAKEN) - self._upto(3)):
            for op in ("snapshot", "delete"):
                self._request_of_name(op, "m0")
        for name in ("m1", "m2"):
            self._write_at(self._upto(self._blocks - 1))
            self._request_of_name("snapshot", name)
        self._write_at(0, self._blocks)
        if "flush" in self._capabilities:  # as in _crowd
            self._add("flush")
        self._open()
        self._read_back()

    def _open(self, ways: Sequence[str] = OPENINGS) -> None:
        """Open the disk again, in one of these ways that the target has. In some cases all that it
        reads then is a checkpoint.

        What a power cut left is read: many cuts that nobody looked at leave too many disks open.
        While more devices have failed than are tolerated, only the power fails: a disk that is
        closed could not store what is in its memory.
        """
        ways = [op for op in ways if op in self._capabilities]
        if self._beyond():
            ways = [op for op in ways if op == "crash"]
        if ways:
            op = self._one_of(ways)
            self._scrub_now_and_then()
            stored = "clean" in self._capabilities and not self._beyond()
            if stored and rarely(self._choose, STORED_ONE_IN):
                self._requests.append({"op": "checkpoint"})
            self._requests.append({"op": op})
            self._now.note(op)
            if op == "crash":
                self._read_back()

    def _unmap_at(self, lba: int, count: int) -> None:
        if self._beyond():
            return
        self._requests.append({"op": "unmap", "lba": lba, "count": count})
        self._now.note("unmap", lbas=range(lba, lba + count))

    def _called(self, name: str) -> str:
        return called(name, self._stem)

    def _request_of_name(self, op: str, name: str) -> None:
        if self._beyond():
            return
        name = self._called(name)
        self._requests.append({"op": op, "name": name})
        if (op == "snapshot") != (name in self._now.views):
            self._now.note(op, name)
