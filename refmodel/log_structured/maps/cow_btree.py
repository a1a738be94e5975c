"""A copy-on-write B+tree of pages: every map of the disk is one.

A node is changed in place only if it was born since the tree was last frozen, by a snapshot, a
revert or a checkpoint; else the node and the path to it are copied. A node is freed when it is
empty; nodes are never merged (Johnson and Shasha, "B-trees with free-at-empty", 1993). The keys of
an inner node are lower bounds of what is below each child. A key below all of them is put into the
first child, and lowers its bound.

It has more than 400 lines because reading, changing and sharing a tree rest on the same descent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Generic, TypeVar

import numpy as np

from refmodel.core.errors import DataLost
from refmodel.log_structured.maps.columns import (
    Column,
    put_at,
    put_between,
    remove_at,
    taken,
)
from refmodel.log_structured.maps.node import MapKind, Node, capacity, columns_of, fields_of
from refmodel.log_structured.maps.page_store import PageStore

LAST = 1 << 64  # above every key
FEW = 5  # keys of a leaf: to search for more of them, numpy is faster
V = TypeVar("V")  # a value of a leaf


class Tree(Generic[V]):
    """One tree. `release` is called with every node that the tree gives up; by default it is freed.

    Every method may raise DataLost, if no component gives a good copy of a page.
    """

    def __init__(
        self,
        pages: PageStore,
        kind: MapKind,
        root: int = 0,
        *,
        fanout: int = 0,
        release: Callable[[Node], None] | None = None,
    ) -> None:
        self.pages = pages
        self.kind = kind
        self._root = root  # a page, 0 when empty
        self.frozen = 0  # nodes born at this time or before are shared with a snapshot
        self.born = 0  # when new nodes are born; 0: when they are made
        self.changes: dict[int, V | None] | None = None  # since a checkpoint, if recorded
        self.most_changes = 0  # more are not recorded
        self.release = release or pages.free
        self._pairs = len(fields_of(kind, 0)) == 2  # whether a value has two fields
        self._capacity = [min(fanout or 1 << 30, capacity(kind, level)) for level in (0, 1)]

    @property
    def root(self) -> int:
        """The page of the root, 0 when the tree is empty."""
        return self._root

    @root.setter
    def root(self, page: int) -> None:
        self._root = page
        self._note_root()

    def most_entries(self, level: int) -> int:
        """Return how many entries a node of a level may have."""
        return self._capacity[min(level, 1)]

    def get(self, key: int) -> V | None:
        """Return the value of a key, or None."""
        return self.get_many((key,))[0]

    def get_many(self, wanted: Sequence[int]) -> list[V | None]:
        """Return the value of each key, or None."""
        if not self._root:
            return [None] * len(wanted)
        found: list[Any] = []
        nodes, kind, load, pairs = self.pages.nodes, self.kind, self.pages.get, self._pairs
        root = load(self._root, kind)
        at = last = 0
        keys = values = first = second = root.keys
        for key in wanted:
            at += 1
            if at >= last or keys[at] != key:  # many ask for neighbours: no search for these
                if not last or not keys[0] <= key <= keys[-1]:  # perhaps in another leaf
                    node = root
                    while node.level:
                        page = node.values[bisect_right(node.keys, key, 1) - 1]
                        if (child := nodes.get(page)) is None:
                            node = load(page, kind)
                        else:
                            child.used, node = True, child
                    keys, values = node.keys, node.values
                    if pairs:
                        first, second = values.columns
                    # the next walk says that what was loaded is used
                    last = len(keys) if node.used else 0
                at, size = key - keys[0], len(keys)
                if not 0 <= at < size or keys[at] != key:  # some keys are missing before it
                    at = bisect_left(keys, key)
                    if at == size or keys[at] != key:
                        found.append(None)
                        at -= 1
                        continue
            found.append((first[at], second[at]) if pairs else values[at])
        return found

    def load(self, keys: Sequence[int]) -> None:
        """Have the leaf of each key in memory, so that to change the tree needs no device.

        The keys are in ascending order; pages have to be held meanwhile. Raises DataLost.
        """
        nodes, kind, load = self.pages.nodes, self.kind, self.pages.get
        at = 0
        while at < len(keys) and self._root:
            node, end = load(self._root, kind), LAST
            while node.level:
                child = bisect_right(node.keys, keys[at], 1)
                end = node.keys[child] if child < len(node.keys) else end
                page = node.values[child - 1]
                node = nodes.get(page) or load(page, kind)
                node.used = True
            at = bisect_left(keys, end, at)

    def leaf(self, key: int) -> Node:
        """Return the leaf that holds the key if any does; the tree must not be empty."""
        node = self.pages.get(self._root, self.kind)
        while node.level:
            node = self.pages.get(node.values[child_index(node, key)], self.kind)
        return node

    def height(self) -> int:
        """Return the number of levels; 0 if the tree is empty."""
        return self.pages.get(self._root, self.kind).level + 1 if self._root else 0

    def put(self, key: int, value: V) -> V | None:
        """Map the key to the value. Returns the value before, or None. Raises NoSpace."""
        if not self._root:
            self._root = self._new(0, [key], [value]).page
            self._note_put([key], [value])
            return None
        path = self._writable_path(key)
        self._note_put([key], [value])
        leaf = path[-1]
        at = bisect_left(leaf.keys, key)
        if at < len(leaf.keys) and leaf.keys[at] == key:
            before: V = leaf.values[at]
            leaf.values[at] = value
            return before
        leaf.keys.insert(at, key)
        leaf.values.insert(at, value)
        if len(leaf.keys) > self._capacity[0]:
            self._split(path)
        return None

    def remove(self, key: int) -> V | None:
        """Remove the key. Returns the value before, or None. Raises NoSpace."""
        if (before := self.get(key)) is None:
            return None
        path = self._writable_path(key)
        self._note_removed([key])
        at = bisect_left(path[-1].keys, key)
        del path[-1].keys[at], path[-1].values[at]
        self._prune(path)
        return before

    def put_many(self, new: Sequence[int], values: Sequence[V]) -> list[V]:
        """Map many keys, in ascending order, to values, in one walk for each leaf. Raises NoSpace.

        Returns the values that were replaced, in the order of their keys.
        """
        if new and not self._root:
            self.put(new[0], values[0])
            return self.put_many(new[1:], values[1:])
        if self.pages.has_all():
            before = self._put_many(new, values)
        else:
            with self.pages.held():
                self.load(new)
                before = self._put_many(new, values)
        self._note_put(new, values)
        return before

    def _put_many(self, new: Sequence[int], values: Sequence[V]) -> list[V]:
        before: list[V] = []
        at = 0
        while at < len(new):
            path, end = self._writable_path_and_end(new[at])
            leaf, room = path[-1], self._capacity[0] + 1  # one more than fits: then it is split
            stop = bisect_left(new, end, at)
            if new[at] > leaf.keys[-1]:
                stop = min(stop, at + room - len(leaf.keys))
                leaf.keys.extend(new[at:stop])
                leaf.values.extend(values[at:stop])
                at = stop
            else:
                at += self._merge(leaf, new, values, at, stop, room, before)
            if len(leaf.keys) == room:
                self._split(path)
        return before

    @staticmethod
    def _merge(
        leaf: Node,
        new: Sequence[int],
        values: Sequence[Any],
        first: int,
        stop: int,
        room: int,
        before: list[Any],
    ) -> int:
        """Put keys into a leaf, until it has `room` keys. Returns how many were put.

        What they replace is added to `before`.
        """
        keys, size = leaf.keys, len(leaf.keys)
        slot = bisect_left(keys, new[first])
        if slot == bisect_right(keys, new[stop - 1]):  # nothing lies between them
            stop = min(stop, first + room - size)
            put_between(keys, slot, new[first:stop])
            put_between(leaf.values, slot, values[first:stop])
            return stop - first
        coming = new[first:stop]
        slots = _slots(keys, coming)
        absent = [at for at, slot in enumerate(slots) if slot == size or keys[slot] != coming[at]]
        if len(absent) >= room - size:
            del absent[room - size :]
            slots = slots[: absent[-1] + 1]
        given = values[first : first + len(slots)]
        there = slots
        if absent:
            out = {*absent}
            present = [at for at in range(len(slots)) if at not in out]
            there, given = [slots[at] for at in present], [given[at] for at in present]
        before += taken(leaf.values, there)
        put_at(leaf.values, there, given)
        for at in reversed(absent):
            keys.insert(slots[at], coming[at])
            leaf.values.insert(slots[at], values[first + at])
        return len(slots)

    def remove_many(self, removed: list[int]) -> list[V]:
        """Remove many keys, in ascending order, in one walk for each leaf. Raises NoSpace.

        Returns their values. Raises DataLost if one does not exist: what is stored is damaged.
        """
        if self.pages.has_all():
            before = self._remove_many(removed)
        else:
            with self.pages.held():
                self.load(removed)
                before = self._remove_many(removed)
        self._note_removed(removed)
        return before

    def _remove_many(self, removed: list[int]) -> list[V]:
        before: list[V] = []
        at = 0
        while at < len(removed):
            path, end = self._writable_path_and_end(removed[at])
            keys, stop = path[-1].keys, bisect_left(removed, end, at)
            going = removed[at:stop]
            slots = _slots(keys, going)
            if slots[-1] == len(keys) or taken(keys, slots) != going or len({*slots}) < len(slots):
                lacking = _lacking(keys, going)
                raise DataLost(f"the maps contradict each other: a tree lacks key {lacking}")
            before += taken(path[-1].values, slots)
            remove_at(columns_of(path[-1]), slots)
            at = stop
            if not keys:
                self._prune(path)
        return before

    def items(self, low: int = 0, high: int = LAST, cause: str = "") -> Iterator[tuple[int, V]]:
        """Yield keys and values, low <= key < high, in order.

        The tree must not change meanwhile. Device I/O is counted under `cause`, or else as misses.
        """
        return chain.from_iterable(self._items(self._root, low, high, cause) if self._root else ())

    def contains(self, page: int, level: int, key: int) -> bool:
        """Return whether this tree has the node in a page, which may be of a tree that shares
        nodes with it. The node itself is not read.

        `key` is the first one of the node. A lower bound of it may lead elsewhere: then the answer
        is False though the tree has the node.
        """
        if not self._root or self._root == page:
            return self._root == page
        above = self._above(level, key)
        return above is not None and above.values[child_index(above, key)] == page

    def siblings(self, level: int, key: int) -> Sequence[int]:
        """Return the pages of the nodes of a level that have the same node above them as the one
        that holds the key; none if there is no such node. They themselves are not read.
        """
        above = self._above(level, key) if self._root else None
        return () if above is None else above.values

    def _above(self, level: int, key: int) -> Node | None:
        """Return the inner node above the node of a level that holds the key, if the tree, which is
        not empty, is so high.
        """
        at = self.pages.get(self._root, self.kind)
        while at.level > level + 1:
            at = self.pages.get(at.values[child_index(at, key)], self.kind)
        return at if at.level == level + 1 else None

    def _items(
        self, page: int, low: int, high: int, cause: str
    ) -> Iterator[Iterable[tuple[int, V]]]:
        """Yield what each leaf has of that."""
        node = self.pages.get(page, self.kind, cause)
        if node.level == 0:
            part = slice(bisect_left(node.keys, low), bisect_left(node.keys, high))
            yield zip(node.keys[part], node.values[part], strict=True)
            return
        for at in range(child_index(node, low), len(node.keys)):
            if at and node.keys[at] >= high:
                return
            yield from self._items(node.values[at], low, high, cause)

    def _prune(self, path: list[Node]) -> None:
        """Release what has become empty at the end of a path."""
        if path[-1].keys:
            return
        while path and not path[-1].keys:
            empty = path.pop()
            self.release(empty)
            if path:
                at = path[-1].values.index(empty.page)
                del path[-1].keys[at], path[-1].values[at]
            else:
                self._root = 0
        self._lower_root()

    def _writable_path(self, key: int) -> list[Node]:
        """Return the path to the key's leaf, with every frozen node replaced by a copy."""
        return self._writable_path_and_end(key)[0]

    def _writable_path_and_end(self, key: int) -> tuple[list[Node], int]:
        """Return the same path, and the key that the leaf ends before.

        Every put and removal comes here, so it calls little.
        """
        pages, end = self.pages, LAST
        nodes, shared = pages.nodes, pages.shared_until()
        if shared < self.frozen:
            shared = self.frozen
        if (node := nodes.get(self._root) or pages.get(self._root, self.kind)).born <= shared:
            node = self._copy(node)
            self._root = node.page
        path = [node]
        while node.level:
            keys, children = node.keys, node.values
            at = bisect_right(keys, key, 1)
            if at < len(keys):
                end = keys[at]
            at -= 1
            if at == 0 and key < keys[0]:
                keys[0] = key
            page = children[at]
            if (node := nodes.get(page) or pages.get(page, self.kind)).born <= shared:
                node = self._copy(node)
                children[at] = node.page
            node.used = True
            path.append(node)
        return path, end

    def _note_root(self) -> None:
        """Note that this is another tree from now on."""

    def _note_put(self, keys: Sequence[int], values: Sequence[V]) -> None:
        """Note that keys were mapped to values."""
        self._record(keys, values)

    def _note_removed(self, keys: Sequence[int]) -> None:
        """Note that keys were removed."""
        self._record(keys, repeat(None))

    def _record(self, keys: Iterable[int], values: Iterable[V | None]) -> None:
        if self.changes is not None:
            self.changes.update(zip(keys, values, strict=False))
            if len(self.changes) > self.most_changes:
                self.changes = None

    def _copy(self, node: Node) -> Node:
        """Return a copy, which may be changed in place, of a node that others may refer to."""
        copy = self._new(node.level, node.keys[:], node.values[:])
        self.pages.copied += 1
        self.release(node)
        return copy

    def _new(self, level: int, keys: Sequence[int], values: Any) -> Node:
        return self.pages.new(self.kind, level, keys, values, self.born)

    def _split(self, path: list[Node]) -> None:
        """Split the last node of the path, and every node above it that overflows."""
        node = path.pop()
        at = len(node.keys) // 2
        if not path or node.page == path[-1].values[-1]:
            at = len(node.keys) - 1  # it most likely grows at its right end: leave full nodes
        right = self._new(node.level, node.keys[at:], node.values[at:])
        del node.keys[at:], node.values[at:]
        assert node.keys[-1] < right.keys[0]
        if not path:
            self._root = self._new(
                node.level + 1, [node.keys[0], right.keys[0]], [node.page, right.page]
            ).page
            return
        parent = path[-1]
        assert len(parent.keys) <= self._capacity[1]
        above = parent.values.index(node.page) + 1
        parent.keys.insert(above, right.keys[0])
        parent.values.insert(above, right.page)
        if len(parent.keys) > self._capacity[1]:
            self._split(path)

    def _lower_root(self) -> None:
        """Give up every root that has only one child."""
        while self._root:
            node = self.pages.get(self._root, self.kind)
            if node.level == 0 or len(node.keys) > 1:
                return
            self._root = node.values[0]
            self.release(node)


def _slots(keys: Column, wanted: Sequence[int]) -> Sequence[int]:
    """Return where each key is among the keys, or where it would be put.

    The wanted keys are in ascending order.
    """
    low, high = wanted[0], wanted[-1]
    if low < high == low + len(wanted) - 1:
        first, last = bisect_left(keys, low), bisect_left(keys, high)
        if last - first == high - low and last < len(keys) and keys[last] == high:
            return range(first, last + 1)  # all are there, and they are neighbours
    if len(wanted) < FEW:
        return [*map(bisect_left, repeat(keys), wanted)]
    slots: list[int] = (
        np.frombuffer(keys, np.uint64).searchsorted(np.array(wanted, np.uint64)).tolist()
    )
    return slots


def _lacking(keys: Column, wanted: list[int]) -> int:
    """Return the first wanted key that is not among the keys, or is wanted a second time."""
    left = {*keys}
    for key in wanted:
        if key not in left:
            return key
        left.remove(key)
    raise AssertionError("all keys are there")


def child_index(node: Node, key: int) -> int:
    """Return which child of an inner node holds the key if any does."""
    return bisect_right(node.keys, key, 1) - 1
