"""A copy-on-write B+tree of pages: every map of the disk is one.

A node may be changed in place only if it was born since the tree was last frozen (by a snapshot, a revert or a
checkpoint); else it is copied, and so is the path to it. Nodes are freed when empty and never merged
(Johnson and Shasha, "B-trees with free-at-empty", 1993). An inner node's keys are lower bounds of what is below each child;
a key below all of them is put into the first child, and lowers its bound.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from refmodel.log_structured.maps.node import Kind, Node, capacity
from refmodel.log_structured.maps.page_store import Pages

LAST = 1 << 64  # above every key


class Tree:
    """`release` is told of every node that the tree lets go of; by default it is freed."""

    def __init__(
        self,
        pages: Pages,
        kind: Kind,
        root: int = 0,
        *,
        fanout: int = 0,
        release: Callable[[Node], None] | None = None,
    ) -> None:
        self.pages = pages
        self.kind = kind
        self.root = root  # a page, 0 when empty
        self.frozen = 0  # nodes born at this time or before are shared with a snapshot
        self.release = release or pages.free
        self._room = [min(fanout or 1 << 30, capacity(kind, level)) for level in (0, 1)]

    def get(self, key: int):
        """The value, or None."""
        return self.get_many((key,))[0]

    def get_many(self, wanted: Sequence[int]) -> list:
        """The value of each key, or None."""
        if not self.root:
            return [None] * len(wanted)
        found = []
        nodes, kind = self.pages.nodes, self.kind
        root = self.pages.get(self.root, kind)
        for key in wanted:
            node = root
            while node.level:
                page = node.values[bisect_right(node.keys, key, 1) - 1]
                node = nodes.get(page) or self.pages.get(page, kind)
            keys = node.keys
            at = bisect_left(keys, key)
            found.append(node.values[at] if at < len(keys) and keys[at] == key else None)
        return found

    def leaf(self, key: int) -> Node:
        """The leaf that holds the key if any does; the tree must not be empty."""
        node = self.pages.get(self.root, self.kind)
        while node.level:
            node = self.pages.get(node.values[child_index(node, key)], self.kind)
        return node

    def height(self) -> int:
        return self.pages.get(self.root, self.kind).level + 1 if self.root else 0

    def put(self, key: int, value):
        """Map the key to the value. Returns the value before, or None. Raises NoSpace."""
        if not self.root:
            self.root = self.pages.new(self.kind, 0, [key], [value]).page
            return None
        path = self._writable_path(key)
        leaf = path[-1]
        at = bisect_left(leaf.keys, key)
        if at < len(leaf.keys) and leaf.keys[at] == key:
            before, leaf.values[at] = leaf.values[at], value
            return before
        leaf.keys.insert(at, key)
        leaf.values.insert(at, value)
        if len(leaf.keys) > self._room[0]:
            self._split(path)
        return None

    def remove(self, key: int):
        """Forget the key. Returns the value before, or None. Raises NoSpace."""
        if (before := self.get(key)) is None:
            return None
        path = self._writable_path(key)
        at = bisect_left(path[-1].keys, key)
        del path[-1].keys[at], path[-1].values[at]
        self._prune(path)
        return before

    def put_many(self, new: Sequence[int], values: Sequence) -> list:
        """Map many keys, in ascending order, to values: one walk a leaf. Returns the value before of each, or None. Raises NoSpace."""
        if new and not self.root:
            return [self.put(new[0], values[0]), *self.put_many(new[1:], values[1:])]
        before: list = []
        at = 0
        while at < len(new):
            path, end = self._writable_path_and_end(new[at])
            leaf, room = path[-1], self._room[0] + 1  # one more than fits: then it is split
            stop = bisect_left(new, end, at)
            if new[at] > leaf.keys[-1]:
                stop = min(stop, at + room - len(leaf.keys))
                leaf.keys += new[at:stop]
                leaf.values += values[at:stop]
                before += [None] * (stop - at)
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
        values: Sequence,
        first: int,
        stop: int,
        room: int,
        before: list,
    ) -> int:
        """Put a run of keys into a leaf, until it has so many. Says how many, and adds to `before` what they replace."""
        keys, place, size = leaf.keys, bisect_left(leaf.keys, new[first]), len(leaf.keys)
        if place == bisect_right(keys, new[stop - 1]):  # nothing lies between them
            stop = min(stop, first + room - size)
            keys[place:place], leaf.values[place:place] = new[first:stop], values[first:stop]
            before += [None] * (stop - first)
            return stop - first
        for at in range(first, stop):
            key = new[at]
            place = bisect_left(keys, key, place)
            if place < size and keys[place] == key:
                before.append(leaf.values[place])
                leaf.values[place] = values[at]
                continue
            before.append(None)
            keys.insert(place, key)
            leaf.values.insert(place, values[at])
            size += 1
            if size == room:
                return at + 1 - first
        return stop - first

    def remove_many(self, removed: list[int]) -> list:
        """Forget many keys, in ascending order, all of which are there: one walk a leaf. Returns their values. Raises NoSpace."""
        before: list = []
        at = 0
        while at < len(removed):
            path, end = self._writable_path_and_end(removed[at])
            keys, values, place = path[-1].keys, path[-1].values, 0
            stop = bisect_left(removed, end, at)
            for key in removed[at:stop]:
                place = bisect_left(keys, key, place)
                if place == len(keys) or keys[place] != key:
                    raise KeyError(key)
                del keys[place]
                before.append(values.pop(place))
            at = stop
            self._prune(path)
        return before

    def items(self, low: int = 0, high: int = LAST) -> Iterator[tuple]:
        """Keys and values, low <= key < high, in order. The tree must not change meanwhile."""
        if self.root:
            yield from self._items(self.root, low, high)

    def contains(self, node: Node) -> bool:
        """Whether a node, of this tree or of one that shares nodes with it, is reached from here."""
        if not self.root:
            return False
        at = self.pages.get(self.root, self.kind)
        while at.level > node.level:
            at = self.pages.get(at.values[child_index(at, node.keys[0])], self.kind)
        return at is node or at.page == node.page

    def _items(self, page: int, low: int, high: int) -> Iterator[tuple]:
        node = self.pages.get(page, self.kind)
        if node.level == 0:
            for at in range(bisect_left(node.keys, low), bisect_left(node.keys, high)):
                yield node.keys[at], node.values[at]
            return
        for at in range(child_index(node, low), len(node.keys)):
            if at and node.keys[at] >= high:
                return
            yield from self._items(node.values[at], low, high)

    def _prune(self, path: list[Node]) -> None:
        """Free what has become empty at the end of a path."""
        if path[-1].keys:
            return
        while path and not path[-1].keys:
            empty = path.pop()
            self.release(empty)
            if path:
                at = path[-1].values.index(empty.page)
                del path[-1].keys[at], path[-1].values[at]
            else:
                self.root = 0
        self._lower_root()

    def _writable_path(self, key: int) -> list[Node]:
        """From the root to the key's leaf, every frozen node on the way replaced by a copy."""
        return self._writable_path_and_end(key)[0]

    def _writable_path_and_end(self, key: int) -> tuple[list[Node], int]:
        """The same, and the key that the leaf ends before."""
        end = LAST
        node = self._writable(self.pages.get(self.root, self.kind))
        self.root = node.page
        path = [node]
        while node.level:
            at = child_index(node, key)
            if key < node.keys[at]:
                node.keys[at] = key
            if at + 1 < len(node.keys):
                end = node.keys[at + 1]
            child = self._writable(self.pages.get(node.values[at], self.kind))
            node.values[at] = child.page
            path.append(child)
            node = child
        return path, end

    def _writable(self, node: Node) -> Node:
        if node.born > self.frozen and not self.pages.may_be_durable(node):
            return node
        copy = self.pages.new(self.kind, node.level, node.keys[:], node.values[:])
        self.pages.copied += 1
        self.release(node)
        return copy

    def _split(self, path: list[Node]) -> None:
        """Split the last node of the path, and whatever overflows above it."""
        node = path.pop()
        at = len(node.keys) // 2
        if not path or node.page == path[-1].values[-1]:
            at = (
                len(node.keys) - 1
            )  # most likely it grows at the right end: leave full nodes behind
        right = self.pages.new(self.kind, node.level, node.keys[at:], node.values[at:])
        del node.keys[at:], node.values[at:]
        if not path:
            self.root = self.pages.new(
                self.kind, node.level + 1, [node.keys[0], right.keys[0]], [node.page, right.page]
            ).page
            return
        parent = path[-1]
        above = parent.values.index(node.page) + 1
        parent.keys.insert(above, right.keys[0])
        parent.values.insert(above, right.page)
        if len(parent.keys) > self._room[1]:
            self._split(path)

    def _lower_root(self) -> None:
        while self.root:
            node = self.pages.get(self.root, self.kind)
            if node.level == 0 or len(node.keys) > 1:
                return
            self.root = node.values[0]
            self.release(node)


def child_index(node: Node, key: int) -> int:
    """Which child of an inner node holds the key if any does."""
    return bisect_right(node.keys, key, 1) - 1
