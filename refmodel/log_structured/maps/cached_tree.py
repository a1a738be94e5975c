"""Trees that are asked for single keys all the time, and what is kept in memory for them besides nodes.

A `KnownTree` remembers single entries. The live view's logical map is a `LiveMap`: what changed lately waits in memory, and is put into the tree a leaf at
a time. A change of a tree costs a walk to its leaf, and a copy of that the first time after a checkpoint; thousands of changes in key order share both (as in
the in-memory part of a log-structured merge tree: O'Neil et al., 1996). The log has them, so nothing is at stake; but whoever looks at the tree
itself, or shares it, has to `settle` it first.
"""

from collections.abc import Iterable, Iterator, Sequence

from refmodel.log_structured.maps.cow_btree import LAST, Tree

MOST_KNOWN = 1 << 16  # entries that are remembered
MOST_RECENT = 8192  # changes that wait


class KnownTree(Tree):
    """Only for a tree that nobody else changes."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self._known: dict = {}

    def get_many(self, wanted: Sequence[int]) -> list:
        found = [*map(self._known.get, wanted)]
        if None in found:
            unknown = [key for key, value in zip(wanted, found) if value is None]
            values = super().get_many(unknown)
            self._remember(unknown, values)
            rest = iter(values)
            found = [next(rest) if value is None else value for value in found]
        return found

    def put(self, key: int, value):
        before = super().put(key, value)
        self._known[key] = value
        return before

    def put_many(self, new: Sequence[int], values: Sequence) -> list:
        before = super().put_many(new, values)
        self._remember(new, values)
        return before

    def remove(self, key: int):
        before = super().remove(key)
        self._known.pop(key, None)
        return before

    def remove_many(self, removed: list[int]) -> list:
        before = super().remove_many(removed)
        for key in removed:
            self._known.pop(key, None)
        return before

    def _remember(self, keys: Sequence[int], values: Sequence) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known.update(zip(keys, values))


class LiveMap(KnownTree):
    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.recent: dict[int, int] = {}  # LBA -> MBA, newer than what the tree says

    def settle(self) -> None:
        """Put what waits into the tree. If a node cannot be read nothing is lost, and it may be done again. Raises DataLost."""
        if self.recent:
            lbas = sorted(self.recent)
            self.put_many(lbas, [self.recent[lba] for lba in lbas])
            self.recent.clear()

    def replace(self, lbas: Sequence[int], mbas: Iterable[int]) -> list[int | None]:
        """Map LBAs to MBAs. Returns what each was mapped to before, or None. Raises DataLost; then nothing has changed."""
        if len(self.recent) >= MOST_RECENT:
            self.settle()
        before = self.get_many(lbas)
        self.recent.update(zip(lbas, mbas))
        return before

    def get_many(self, wanted: Sequence[int]) -> list[int | None]:
        stored = super().get_many(wanted)
        return [*map(self.recent.get, wanted, stored)] if self.recent else stored

    def items(self, low: int = 0, high: int = LAST) -> Iterator[tuple]:
        self.settle()
        return super().items(low, high)

    def remove(self, key: int) -> int | None:
        self.settle()
        return super().remove(key)
