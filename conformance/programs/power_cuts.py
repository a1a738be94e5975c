"""Power cuts in the middle of operations: at which device write the power fails."""

from collections.abc import Mapping

from conformance.contract.source import Source, rarely
from conformance.programs.swarm import NEEDS

CUTTABLE = frozenset(NEEDS) - {"read", "crash"}  # `crash` is cut as well: see Writer
ONE_IN = (0, 6, 6, 20)  # operations, in a program; 0: none
AFTER = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, 12, 20)  # device writes
LONG = 3  # blocks of a request, from which on power cuts come near its end, too
SURE = 2  # device writes that an operation may make, until more is known


class PowerCuts:
    """The power cuts of one program; none unless they are `wanted`, which is kept.

    `reach` is that of conformance.programs.explored."""

    def __init__(self, choose: Source, wanted: bool, reach: Mapping[str, int]) -> None:
        self._choose, self._reach = choose, reach
        self.wanted = wanted
        self._one_in = ONE_IN[choose.randrange(len(ONE_IN))] if wanted else 0

    def falls_into(self, kind: str) -> bool:
        """Draw whether the power fails in the middle of this operation."""
        return bool(self._one_in) and kind in CUTTABLE and rarely(self._choose, self._one_in)

    def now_and_then(self, one_in: int) -> bool:
        """Draw something of this probability, in a program that has power cuts."""
        return bool(self._one_in) and rarely(self._choose, one_in)

    def at(self, kind: str, blocks: int = 0) -> dict[str, int]:
        """Return the `cut` of such an operation: at one of its first device writes, or as often at
        any of twice as many as one is known to have made. If it is about many `blocks`, half of
        the time soon after so many device writes: a target may write each of them by itself, and
        then what makes them count.
        """
        after = AFTER[self._choose.randrange(len(AFTER))]
        if blocks >= LONG and self._choose.randrange(2):
            after += blocks
        elif self._choose.randrange(2):
            after = 1 + self._choose.randrange(2 * self._reach.get(kind, SURE))
        return {"after": after, "seed": self._choose.randrange(256)}
