"""Power cuts in the middle of operations: at which device write the power fails."""

from collections.abc import Mapping
from typing import NamedTuple

from conformance.contract.source import Source, rarely
from conformance.programs.swarm import NEEDS

CUTTABLE = frozenset(NEEDS) - {"read", "crash"}  # `crash` is cut as well: see Writer
ONE_IN = (0, 6, 6, 20)  # operations, in a program; 0: none
AFTER = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, 12, 20)  # device writes
LONG = 3  # blocks of a request, from which on power cuts come near its end, too
LAST = 6  # the last device writes, which often make an operation count
FURTHER = 8  # times as many device writes, while no cut is known to have come too late
WORK = frozenset(["checkpoint", "clean", "restart", "settle"])  # cut twice as often as others


class Reach(NamedTuple):
    """What is known of the device writes of an operation."""

    made: int = 2  # the power was cut at this one
    too_late: int = 0  # it was answered before this one; 0: none of later ones was tried

    def learn(self, after: int, answered: bool) -> "Reach":
        """Return what is known after one more cut."""
        if answered and after > self.made:
            return self._replace(too_late=min(after, self.too_late or after))
        if not answered and after > self.made:
            return Reach(after, self.too_late if self.too_late > after else 0)
        return self


class PowerCuts:
    """The power cuts of one program; none unless they are `wanted`, which is kept.

    `reach` says what is known of each operation."""

    def __init__(self, choose: Source, wanted: bool, reach: Mapping[str, Reach]) -> None:
        self._choose, self._reach = choose, reach
        self.wanted = wanted
        self._one_in = ONE_IN[choose.randrange(len(ONE_IN))] if wanted else 0

    def falls_into(self, kind: str) -> bool:
        """Draw whether the power fails in the middle of this operation."""
        one_in = -(-self._one_in // 2) if kind in WORK else self._one_in
        return bool(one_in) and kind in CUTTABLE and rarely(self._choose, one_in)

    def now_and_then(self, one_in: int) -> bool:
        """Draw something of this probability, in a program that has power cuts."""
        return bool(self._one_in) and rarely(self._choose, one_in)

    def at(self, kind: str, blocks: int = 0) -> dict[str, int]:
        """Return the `cut` of such an operation: at one of its first device writes, at any of as
        many as one is known to have made, at the last of these, or at a later one. If it is about
        many `blocks`, half of the time soon after so many device writes: a target may write each of
        them by itself, and then what makes them count.
        """
        after = AFTER[self._choose.randrange(len(AFTER))]
        if blocks >= LONG and self._choose.randrange(2):
            after += blocks
        else:
            after = self._any_of(after, self._reach.get(kind, Reach()))
        return {"after": after, "seed": self._choose.randrange(256)}

    def _any_of(self, first: int, reach: Reach) -> int:
        made = reach.made
        most = max(2 * made, reach.too_late) if reach.too_late else FURTHER * made
        further = made + 1 + self._choose.randrange(most - made)
        ways = [first, 1 + self._choose.randrange(made), further]
        ways.append(max(1, made - self._choose.randrange(LAST)) if reach.too_late else further)
        return ways[self._choose.randrange(len(ways))]
