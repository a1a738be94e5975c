"""Tags of written blocks: in most programs each is new, in the others many blocks hold the same
data, or zeroes are written. Some writes have one block again and again, as who formats a disk does:
one that was written before, so that it is stored already, or one that is new.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.contract.source import Source, rarely
from conformance.contract.tagged_block import ALIKE

REPEATED = 32  # one tag in so many was written before
POOL = (1, 2, 4, 8)  # different blocks of a program whose blocks are alike
ALIKE_ONE_IN = 3  # programs
SHARING = ("deduplication", "compression")  # options: if one is true, most programs are such ones
ZEROES_ONE_IN = 6  # programs
ZERO_ONE_IN = 8  # blocks of such a program, and its writes
FILLS_ONE_IN = 4  # writes of a program whose blocks are alike: all its blocks are the same
RUN_ONE_IN = (12, 4)  # writes of such a program, without and with such an option: a long run of a
# block that was not written before
ANEW_ONE_IN = 2  # of these: a block that was not written before


class Tags:
    """Draws tags for a target that was opened with `options`. A multiple of ALIKE stands for data
    that is the same at every LBA.
    """

    def __init__(self, choose: Source, options: Mapping[str, object]) -> None:
        self._choose = choose
        self._last = 0
        alike = rarely(choose, ALIKE_ONE_IN)
        shares = any(options.get(name) for name in SHARING)
        alike = alike != shares
        self._run_one_in = RUN_ONE_IN[shares]
        self.shared = bool(options.get(SHARING[0]))  # whether equal blocks are stored once
        self._pool = POOL[choose.randrange(len(POOL))] if alike else 0
        self._kinds = max(POOL)  # of blocks that are the same at every LBA, so far
        self._zeroes = rarely(choose, ZEROES_ONE_IN)

    def go_on_after(self, requests: Iterable[Mapping[str, Any]]) -> None:
        """Draw tags that are newer than those of these requests."""
        written = [tag for request in requests for tag in request.get("tags", ())]
        self._last = max((tag for tag in written if tag % ALIKE), default=0)
        kinds = (tag // ALIKE for tag in written if tag % ALIKE == 0)
        self._kinds = max(self._kinds, *kinds, 0)

    def next(self, count: int) -> list[int]:
        """Return the `count` tags of a write."""
        if self._zeroes and rarely(self._choose, ZERO_ONE_IN):
            return [0] * count
        if self._pool and rarely(self._choose, FILLS_ONE_IN):
            return self.run(count) if rarely(self._choose, ANEW_ONE_IN) else [self._alike()] * count
        return [self._next() for _ in range(count)]

    def runs(self) -> bool:
        """Draw whether the next write is a long run of equal blocks."""
        return bool(self._pool) and rarely(self._choose, self._run_one_in)

    def run(self, count: int) -> list[int]:
        """Return the `count` tags of a write, all the same, of a block that was not written before
        and is the same at every LBA.
        """
        self._kinds += 1
        return [ALIKE * self._kinds] * count

    def _alike(self) -> int:
        return ALIKE * (1 + self._choose.randrange(self._pool))

    def _next(self) -> int:
        if self._zeroes and rarely(self._choose, ZERO_ONE_IN):
            return 0
        if self._pool and self._choose.randrange(4):
            return self._alike()
        if self._last and rarely(self._choose, REPEATED):
            return self._new(1 + self._choose.randrange(self._last))
        self._last = self._new(self._last + 1)
        return self._last

    def _new(self, tag: int) -> int:
        return tag + 1 if tag % ALIKE == 0 else tag
