"""Writes programs whose requests overlap, on a few blocks that all of them meet in."""

import random
from collections.abc import Collection
from typing import Any

from conformance.contract.trace import OVERLAPPING
from conformance.targets.base import Message

SIZES = (2, 3, 5, 8, 16)  # blocks of the disk
NAMES = ("a", "b", "c")
CHOICES = 20  # digits of a schedule
WEIGHTS = {
    "write": 30,
    "read": 30,
    "unmap": 4,
    "flush": 10,
    "snapshot": 9,
    "delete": 6,
    "revert": 5,
    "crash": 4,
    "restart": 1,
}


def written(
    choose: random.Random,
    hello: Message,
    ops: int,
    most: int,
    crashes: bool = True,
    *,
    cuts: bool = False,
    schedules: bool = False,
) -> list[Message]:
    """A program of about `ops` requests with up to `most` in flight.

    `overlaps` of a request is the number of requests just before it that need not be answered when
    it is called. Every view is read after a power cut and at the end. With `cuts` some requests
    carry a `cut`, with `schedules` they carry a `schedule`: see conformance.targets.overlapping."""
    able = {*hello["capabilities"], "write", "read"}
    if not crashes or hello.get("crash_profile") is None:
        able -= {"crash"}
    return _Writer(choose, able, ops, most, cuts and "crash" in able, schedules).program


class _Writer:
    def __init__(
        self,
        choose: random.Random,
        able: Collection[str],
        ops: int,
        most: int,
        cuts: bool,
        schedules: bool,
    ):
        self._choose, self._most = choose, most
        self._cuts = choose.choice([0, 0.05, 0.2]) if cuts else 0
        self._schedules = schedules
        self._goes_on = choose.choice([0, 0.5, 0.9])
        self._blocks = choose.choice(SIZES)
        self._names: list[str] = []
        self._tag = 0
        self._busy = choose.choice([0.5, 0.8, 0.95, 1.0])
        kinds = [kind for kind in WEIGHTS if kind in able]
        # A swarm: each program leaves some kinds out and prefers others.
        weights = [WEIGHTS[kind] * choose.choice([0, 1, 1, 2]) for kind in kinds]
        if not any(weights):
            weights = [1] * len(kinds)
        self.program: list[Message] = [{"op": "create", "blocks": self._blocks}]
        while len(self.program) < ops:
            self._add(choose.choices(kinds, weights)[0])
        self._look()

    def _add(self, kind: str) -> None:
        request: dict[str, Any] = {"op": kind}
        if kind in ("write", "read", "unmap"):
            request |= self._range(kind)
        elif kind == "snapshot":
            request["name"] = self._choose.choice(NAMES)
            self._names.append(request["name"])
        elif kind in ("delete", "revert"):
            request["name"] = self._name()
        if kind == "read" and self._names and self._choose.random() < 0.5:
            request["view"] = self._name()
        if kind != "restart" and self._most > 1 and self._choose.random() < self._busy:
            request["overlaps"] = self._choose.randint(1, self._most - 1)
        if self._cuts and self._choose.random() < self._cuts:
            request["cut"] = {
                "after": self._choose.choice([1, 1, 2, 2, 3, 5, 9]),
                "seed": self._choose.randrange(1 << 20),
            }
        if self._schedules and kind in OVERLAPPING:
            request["schedule"] = self._schedule()
        self.program.append(request)
        if kind == "crash":
            self._look()
        elif "cut" in request and self._choose.random() < 0.5:
            for _ in range(self._choose.randrange(4)):
                self._add("read")
            self._add("crash")  # no later than here

    def _schedule(self) -> int:
        """Octal digits: how many steps come at once, and who takes each of the next ones.

        Where nearly all are 7, one process goes on until it waits, and others are left behind."""
        choose = self._choose
        digits = [
            7 if choose.random() < self._goes_on else choose.randrange(8) for _ in range(CHOICES)
        ]
        return sum(digit << 3 * place for place, digit in enumerate([choose.randrange(8), *digits]))

    def _range(self, kind: str) -> dict[str, Any]:
        lba = self._choose.randrange(self._blocks)
        count = self._choose.choice([1, 1, 2, 2, 3, self._blocks])
        if self._choose.random() > 0.03:
            count = min(count, self._blocks - lba)
        if kind != "write":
            return {"lba": lba, "count": count}
        self._tag += count
        return {"lba": lba, "tags": list(range(self._tag - count + 1, self._tag + 1))}

    def _name(self) -> str:
        return self._choose.choice(self._names[-3:] or list(NAMES))

    def _look(self) -> None:
        """Read every view that there may be."""
        for view in (None, *sorted(set(self._names))):
            request = {"op": "read", "lba": 0, "count": self._blocks}
            self.program.append(request | ({"view": view} if view else {}))
