"""Trees that are asked for single keys often, and what is kept in memory for them besides nodes.

A `CachedTree` remembers single entries. The logical map of the live view is a `LiveMap`: its
recent changes wait in memory and are merged into the tree later, leaf by leaf. One change of a tree
costs a walk to a leaf, and the first time after a checkpoint a copy of the path; thousands of
changes in key order share both (as in the in-memory part of a log-structured merge tree: O'Neil et
al., 1996). The durable log has the recent changes, so a crash loses nothing. Before somebody uses
the nodes of the live map, or shares them, `merge_recent` has to run.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from refmodel.log_structured.maps.cow_btree import LAST, Tree, V

MOST_KNOWN = 1 << 16  # entries that are remembered
MOST_RECENT = 8192  # changes that wait


class CachedTree(Tree[V]):
    """A tree that remembers entries. Only for a tree that nobody changes behind its back."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._known: dict[int, V] = {}

    def get_many(self, wanted: Sequence[int]) -> list[V | None]:
        """Return the value of each key, or None. Raises DataLost."""
        found: list[V | None] = [*map(self._known.get, wanted)]
        if None in found:
            unknown = [key for key, value in zip(wanted, found, strict=True) if value is None]
            values = super().get_many(unknown)
            self._remember(unknown, values)
            rest = iter(values)
            found = [next(rest) if value is None else value for value in found]
        return found

    def put(self, key: int, value: V) -> V | None:
        """Map the key to the value. Returns the value before, or None. Raises NoSpace, DataLost."""
        before = super().put(key, value)
        self._known[key] = value
        return before

    def put_many(self, new: Sequence[int], values: Sequence[V]) -> list[V | None]:
        """Map keys, in ascending order, to values. Returns the values before, or None.

        Raises NoSpace, DataLost.
        """
        before = super().put_many(new, values)
        self._remember(new, values)
        return before

    def remove(self, key: int) -> V | None:
        """Remove the key. Returns the value before, or None. Raises NoSpace, DataLost."""
        before = super().remove(key)
        self._known.pop(key, None)
        return before

    def remove_many(self, removed: list[int]) -> list[V]:
        """Remove keys, in ascending order, all of which exist. Returns their values.

        Raises NoSpace, DataLost.
        """
        before = super().remove_many(removed)
        for key in removed:
            self._known.pop(key, None)
        return before

    def _remember(self, keys: Sequence[int], values: Sequence[Any]) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known.update(zip(keys, values, strict=True))


class LiveMap(CachedTree[int]):
    """The map of the live view: logical block address (LBA) -> middle block address (MBA)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.recent: dict[int, int] = {}  # LBA -> MBA, newer than what the tree says

    def merge_recent(self) -> None:
        """Put the recent changes into the tree. Raises NoSpace, DataLost.

        If a node cannot be read, nothing is lost, and it may be tried again.
        """
        if self.recent:
            lbas = sorted(self.recent)
            self.put_many(lbas, [self.recent[lba] for lba in lbas])
            self.recent.clear()

    def replace(self, lbas: Sequence[int], mbas: Iterable[int]) -> list[int | None]:
        """Map LBAs to MBAs. Returns what each was mapped to before, or None.

        Raises NoSpace, DataLost; then nothing has changed.
        """
        if len(self.recent) >= MOST_RECENT:
            self.merge_recent()
        before = self.get_many(lbas)
        self.recent.update(zip(lbas, mbas, strict=True))
        return before

    def get_many(self, wanted: Sequence[int]) -> list[int | None]:
        """Return the MBA of each LBA, or None. Raises DataLost."""
        stored = super().get_many(wanted)
        return [*map(self.recent.get, wanted, stored)] if self.recent else stored

    def items(self, low: int = 0, high: int = LAST) -> Iterator[tuple[int, int]]:
        """Yield LBA and MBA of each mapped block, low <= LBA < high, in order. Raises DataLost.

        The map must not change meanwhile.
        """
        recent = sorted(lba for lba in self.recent if low <= lba < high)
        if not recent:
            yield from super().items(low, high)
            return
        at = 0
        for lba, mba in super().items(low, high):
            while at < len(recent) and recent[at] < lba:
                yield recent[at], self.recent[recent[at]]
                at += 1
            if at < len(recent) and recent[at] == lba:
                mba = self.recent[lba]
                at += 1
            yield lba, mba
        yield from ((lba, self.recent[lba]) for lba in recent[at:])

    def remove(self, key: int) -> int | None:
        """Unmap an LBA. Returns what it was mapped to, or None. Raises NoSpace, DataLost."""
        self.merge_recent()
        return super().remove(key)
