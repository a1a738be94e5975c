"""A tree that remembers entries: to find one again costs no walk to its leaf."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from refmodel.log_structured.maps.cow_btree import Tree, V

MOST_KNOWN = 1 << 15  # entries that are remembered
KNOWN_BYTES = 192  # memory of one: its numbers, their tuple, its place in the dictionary
WORTH = 4  # a tree with room for more than so many times MOST_KNOWN entries remembers none
UNKNOWN: Any = object()


class CachedTree(Tree[V]):
    """A tree that remembers what was put and what it was asked for, while the nodes leave memory
    for that. Then every node that was read stays in memory, too, so no device I/O is saved.

    A large tree remembers nothing: it would be asked too seldom for what it remembers.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._known: dict[int, V | None] = {}
        self._few = WORTH * MOST_KNOWN // self.most_entries(0)  # pages of a tree that remembers

    def get_many(self, wanted: Sequence[int]) -> list[V | None]:
        """Return the value of each key, or None."""
        known = self._known
        if known:
            try:
                return [*map(known.__getitem__, wanted)]
            except KeyError:
                pass  # at least one is unknown
        elif self.pages.in_use.counts[self.kind] > self._few:
            return super().get_many(wanted)
        found = [known.get(key, UNKNOWN) for key in wanted]
        unknown = [key for key, value in zip(wanted, found, strict=True) if value is UNKNOWN]
        walked = super().get_many(unknown)
        self._remember(unknown, walked)
        rest = iter(walked)
        return [next(rest) if value is UNKNOWN else value for value in found]

    def _note_root(self) -> None:
        self._known.clear()

    def _note_put(self, keys: Sequence[int], values: Sequence[V]) -> None:
        super()._note_put(keys, values)
        self._remember(keys, values)

    def _note_removed(self, keys: Sequence[int]) -> None:
        super()._note_removed(keys)
        for _ in map(self._known.pop, keys, repeat(None)):
            pass

    def _remember(self, keys: Sequence[int], values: Iterable[V | None]) -> None:
        """Remember entries; if they are too many, instead of all others."""
        known, pages = self._known, self.pages
        few = pages.in_use.counts[self.kind] <= self._few
        most = MOST_KNOWN if few and pages.leaves(KNOWN_BYTES * MOST_KNOWN) else 0
        if len(known) + len(keys) > most:
            known.clear()
        if len(keys) <= most:
            known.update(zip(keys, values, strict=False))
