"""Trees that are asked for single keys often, so they remember single entries besides nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from refmodel.log_structured.maps.cow_btree import Tree, V

MOST_KNOWN = 1 << 16  # entries that are remembered


class CachedTree(Tree[V]):
    """A tree that remembers entries. Only for a tree that nobody changes behind its back."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._known: dict[int, V | None] = {}  # None: not known

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

    def remember(self, entries: Mapping[int, V | None]) -> None:
        """Note what the tree will say of some keys; None if it is to be looked up."""
        self._remember([*entries], [*entries.values()])

    def _remember(self, keys: Sequence[int], values: Sequence[Any]) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known.update(zip(keys, values, strict=True))
