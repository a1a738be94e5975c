"""Writes single requests, and keeps track of what would exist if every request were granted."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from conformance.contract.source import Source, rarely
from conformance.programs import names, swarm
from conformance.programs.array import Array
from conformance.programs.explored import Begun
from conformance.programs.power_cuts import PowerCuts, Reach
from conformance.programs.ranges import ANYWHERE, Ranges
from conformance.programs.situation import Asked, Situation
from conformance.programs.swarm import FUA
from conformance.programs.tags import Tags

Request = dict[str, Any]
Value = TypeVar("Value")

# Blocks; some are one more than a power of 2: the last one is alone in its node of a map.
SIZES = (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 64, 65, 100, 129, 200, 300)
LARGEST = 300  # blocks of a disk of which all views are read back
MOST_BYTES = 1 << 22  # of a disk: it is read in one request
SNAPSHOTS = (1, 2, 4, 4, 6, 6, 8, 8, 12, 20)  # different names in a program
KEPT = (0, 0, 0, 2, 3, 6)  # snapshots, of which a program seldom deletes one: so trees of them grow
SAME_ONE_IN = 3  # names: that of the last change of a snapshot, if it fits
RUNS = (3, 4, 8, 16, 32)  # blocks of a write of equal ones
DURABLE_ONE_IN = (0, 0, 2, 8)  # writes, in a program; 0: none
MOST_DELETED = 4  # snapshots read back though deleted: some power cuts take deletions back
SCRUBBED_ONE_IN = 5  # openings: a scrub comes before, and behind
PARTED_ONE_IN = 4  # views that are read back: in up to so many parts
PARTS = (2, 3)
BYTE = 255  # blocks: the count of a longer range needs more than a byte
LONG_UNMAP_ONE_IN = 4  # unmaps of a larger disk: one to its end
SECONDS = (1, 59, 60, 61, 3599, 3600, 3601, 7200)


def fits(blocks: int, hello: Mapping[str, Any]) -> bool:
    """Return whether all blocks of a disk can be read by one request. Tags take no room."""
    tags = hello.get("payload") == "tags"
    return tags or blocks * hello.get("block_size", 1) <= MOST_BYTES


class RequestWriter:
    """Writes the requests of one program for a target that says `hello` and was opened with
    `options`.

    `asked` counts what was asked in which situation, and is counted up. The program goes on where
    `begun` ends, if that is given. `reach` is that of conformance.programs.explored.
    """

    def __init__(
        self,
        choose: Source,
        hello: Mapping[str, Any],
        crashes: bool,
        cuts: bool,
        options: Mapping[str, Any],
        asked: Asked,
        begun: Begun | None = None,
        reach: Mapping[str, Reach] | None = None,
    ) -> None:
        self._choose = choose
        capabilities = set(hello["capabilities"])
        if not crashes or hello["crash_profile"] is None:
            capabilities.discard("crash")
        self._capabilities = capabilities
        openings = [op for op in swarm.OPENINGS if op in capabilities]
        self._array = Array(choose, hello, openings)
        self._blocks = begun.situation.blocks if begun else self._one_of(self._sizes(hello))
        self._ranges, self._scattered = [  # the second ones after every second scene
            Ranges(choose, self._blocks, options.values(), hello.get("block_size", 1), mostly)
            for mostly in (None, ANYWHERE)
        ]
        self._tags = Tags(choose, options)
        self._stem = names.stem(choose)
        self._names = names.some(choose, self._one_of(SNAPSHOTS), self._stem)
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

    def _sizes(self, hello: Mapping[str, Any]) -> Sequence[int]:
        """Return the sizes of disks, of which one is drawn."""
        return [blocks for blocks in SIZES if blocks == 1 or fits(blocks, hello)]

    def _write_at(self, lba: int, count: int = 1) -> None:
        """Write, unless too many devices are away, which a power cut may have caused."""
        if self._beyond():
            return
        self._requests.append({"op": "write", "lba": lba, "tags": self._tags.next(count)})
        self._now.note("write", lbas=range(lba, lba + count), written=count)

    def _beyond(self) -> bool:
        return len(self._now.failed) > self._array.tolerates

    def _scrub_now_and_then(self) -> None:
        """Have the target verify itself, right before and behind openings: an opening may count
        anew what was forgotten in memory, or forget it itself until the next one."""
        if (
            "scrub" in self._capabilities
            and not self._beyond()
            and rarely(self._choose, SCRUBBED_ONE_IN)
        ):
            self._requests.append({"op": "scrub"})

    def _read_back(self) -> None:
        """Read all views, some of them in parts."""
        views = [*self._now.views, *self._now.deleted[-MOST_DELETED:]]
        if self._blocks > LARGEST and views:
            views = [self._one_of(views)]
        begun = len(self._requests)
        for view in ({}, *({"view": name} for name in views)):
            most = self._one_of(PARTS) if rarely(self._choose, PARTED_ONE_IN) else 1
            for lba, count in self._ranges.parts(most):
                self._requests.append({"op": "read", "lba": lba, "count": count, **view})
        self._uncounted += len(self._requests) - begun

    # The operations: the rest of each request. None where there is nothing to ask.

    def _write(self) -> Request:
        lba, count = self._ranges.next()
        alike = self._tags.runs()
        if alike:
            count = min(self._one_of(RUNS), self._blocks)
            lba = min(lba, self._blocks - count)
        self._now.note("write", lbas=range(lba, min(lba + count, self._blocks)), written=count)
        tags = self._tags.run(count) if alike else self._tags.next(count)
        request: Request = {"lba": lba, "tags": tags}
        if self._durable_one_in and rarely(self._choose, self._durable_one_in):
            request["fua"] = True
        return request

    def _unmap(self) -> Request:
        lba, count = self._ranges.next()
        if self._blocks > BYTE and rarely(self._choose, LONG_UNMAP_ONE_IN):
            lba = self._upto(self._blocks - BYTE - 1)
            count = self._blocks - lba
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
        """Return the name for an `op`. Of two snapshots choose the one with which `op` makes a tree
        of views that was seldom made, unless the last snapshot is named again."""
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
