"""Reclaim: free, in small steps, what only deleted views held.

The walk follows the map of a deleted view in key order. It descends only into nodes that no
neighbour of the view holds, so its cost is what it frees, and one look beside each such node. A
step skips neighbouring nodes that are held together. Its whole state is the cursor of the view. A
checkpoint saves the cursor together with what was freed, so after a crash reclaim goes on from the
last checkpoint, and frees nothing twice.
"""

from refmodel.log_structured.chunks.chunk_store import ChunkStore, Emit
from refmodel.log_structured.maps.cow_btree import LAST, child_index
from refmodel.log_structured.maps.node import MapKind, Node
from refmodel.log_structured.maps.page_store import PageStore
from refmodel.log_structured.snapshots.tree_events import TreeEvents
from refmodel.log_structured.snapshots.views import View, Views

MOST_SKIPPED = 64  # nodes that others hold, in one step


class Reclaimer:
    """Reclaims the deleted views of one disk, the first of them first."""

    def __init__(
        self,
        views: Views,
        pages: PageStore,
        chunks: ChunkStore,
        emit: Emit,
        trees: TreeEvents,
        most_merged: int,
    ) -> None:
        self.steps = 0  # since the disk was opened; each frees at most one leaf
        self._most_merged = most_merged  # changes that wait, in one step
        self._views = views
        self._pages = pages
        self._chunks = chunks
        self._emit = emit
        self._trees = trees

    def reclaim(self) -> bool:
        """Free one leaf, or skip subtrees that others hold: the action Reclaim of the specs, for
        several subtrees several times.

        If changes wait, some of them are merged first, and if that was not all, nothing is freed.
        Nor is it while many dropped chunks wait: then some of them are removed from the maps.
        Returns False if there was nothing to reclaim. Raises DataLost.
        """
        if not self._views.deleted:
            return False
        self.steps += 1
        if not self._views.merge(self._most_merged, whole=True):  # trees are asked what views hold
            return True
        if self._chunks.remove_if_many(self._most_merged):
            return True
        self._trees.tell("merge")
        view = self._views.deleted[0]
        dropped: list[int] = []
        view.cursor = self._advance(view, dropped) if view.map.root else LAST
        if view.cursor == LAST:
            self._views.remove(view)
        else:
            self._views.touch(view)
        self._emit("reclaim", mbas=dropped, left=len(self._views.deleted))
        self._trees.tell("reclaim")
        return True

    def reclaim_all(self) -> bool:
        """Reclaim until nothing is left. Returns False if there was nothing. Raises DataLost."""
        worked = False
        while self.reclaim():
            worked = True
        return worked

    def _advance(self, view: View, dropped: list[int]) -> int:
        """Deal with what lies at the cursor, and note the dropped chunks. Returns where it ends."""
        path: list[tuple[Node, int]] = []
        page, end = view.map.root, LAST
        while True:
            node = self._pages.get(page, MapKind.LOGICAL, "reclaim")
            if self._held_by_others(view, page, node.level, node.keys[0], node.born):
                break
            path.append((node, end))
            if node.level == 0:
                mbas = self.held_alone(view, node)
                self._chunks.drop(mbas)
                dropped += mbas
                break
            at = child_index(node, view.cursor)
            page = node.values[at]
            if at + 1 < len(node.keys):
                end = node.keys[at + 1]
            born = self._pages.in_use.birth(page)
            if born and self._held_by_others(view, page, node.level - 1, node.keys[at], born):
                end = self._end_of_held(view, node, at + 1, path[-1][1])
                break  # it need not be read
        for node, node_end in path:
            if node_end == end:
                self._pages.free(node)
        return end

    def _end_of_held(self, view: View, node: Node, first: int, end: int) -> int:
        """Return the key before which neighbours hold the children of a node, from `first` on.

        `end` is where the node ends. It looks at the parent, of which nothing is reclaimed before
        the view is, and at one child only, and at so few nodes that it stays a small step. No node
        is read but those above them.
        """
        parent = self._views.by_id.get(view.parent)
        child = next(iter(self._views.children(view.id)), None)
        births, last = self._pages.in_use.birth, min(len(node.keys), first + MOST_SKIPPED - 1)
        beside: set[int] = set()
        if child is not None and first < last:
            beside = {*child.map.siblings(node.level - 1, node.keys[first])}
        for at in range(first, last):
            page = node.values[at]
            older = parent is not None and 0 < births(page) <= parent.taken
            if not older and page not in beside:
                return node.keys[at]
        return node.keys[last] if last < len(node.keys) else end

    def _held_by_others(self, view: View, page: int, level: int, key: int, born: int) -> bool:
        """Return whether a neighbour of the view holds a node, whose first key is `key`.

        With a lower bound of that key, it may be held though the answer is False.
        """

        def holds(other: View) -> bool:
            return other.map.contains(page, level, key)

        return self._views.held_below(view, holds) or self._views.held_elsewhere(
            view, born, key, holds
        )

    def held_alone(self, view: View, leaf: Node) -> list[int]:
        """Return the chunks of a leaf that no neighbour of the view holds. Raises DataLost."""
        children = self._views.children(view.id)
        maps: dict[int, dict[int, int]] = {}  # view -> its part of the map: one walk for each view

        def holds(other: View, lba: int, mba: int) -> bool:
            if other.id not in maps:
                maps[other.id] = dict(other.map.items(leaf.keys[0], leaf.keys[-1] + 1))
            return maps[other.id].get(lba) == mba

        def is_held(lba: int, mba: int) -> bool:
            return any(holds(child, lba, mba) for child in children) or self._views.held_elsewhere(
                view, mba, lba, lambda other: holds(other, lba, mba)
            )

        return [
            mba for lba, mba in zip(leaf.keys, leaf.values, strict=True) if not is_held(lba, mba)
        ]
