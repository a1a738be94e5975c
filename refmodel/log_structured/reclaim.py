"""Reclaim: free, a little at a time, what only deleted views held.

The walk follows the view's map in key order and descends only into nodes that no neighbour holds, so its cost is what it frees and a
look beside each such node. Its whole state is the view's cursor: a checkpoint saves it together with what was freed,
so a crash resumes at the last checkpoint and frees nothing twice.
"""

from refmodel.log_structured.chunks.chunk_store import Chunks, Emit
from refmodel.log_structured.maps.cow_btree import LAST, child_index
from refmodel.log_structured.maps.node import Kind, Node
from refmodel.log_structured.maps.page_store import Pages
from refmodel.log_structured.views import View, Views


class Reclaim:
    def __init__(self, views: Views, pages: Pages, chunks: Chunks, emit: Emit) -> None:
        self._views = views
        self._pages = pages
        self._chunks = chunks
        self._emit = emit
        self._dropped: list[int] = []  # MBAs, in this step

    def step(self) -> bool:
        """Free one leaf, or skip one subtree that others hold. Says whether there was anything to do."""
        if not self._views.deleted:
            return False
        self._views.live.map.settle()  # it is asked what it holds
        view = self._views.deleted[0]
        view.cursor = self._advance(view) if view.map.root else LAST
        if view.cursor == LAST:
            self._views.remove(view)
        else:
            self._views.touch(view)
        self._emit("reclaim", mbas=self._dropped, left=len(self._views.deleted))
        self._dropped = []
        return True

    def finish(self) -> bool:
        """Free all there is to free. Says whether there was anything to do."""
        worked = False
        while self.step():
            worked = True
        return worked

    def _advance(self, view: View) -> int:
        """Deal with what lies at the cursor. Returns where that ends."""
        path: list[tuple[Node, int]] = []
        page, end = view.map.root, LAST
        while True:
            node = self._pages.get(page, Kind.LOGICAL, "reclaim")
            if self._held_by_others(view, node):
                break
            path.append((node, end))
            if node.level == 0:
                self._drop_chunks(view, node)
                break
            at = child_index(node, view.cursor)
            page = node.values[at]
            if at + 1 < len(node.keys):
                end = node.keys[at + 1]
        for node, node_end in path:
            if node_end == end:
                self._pages.free(node)
        return end

    def _held_by_others(self, view: View, node: Node) -> bool:
        def holds(other: View) -> bool:
            return other.map.contains(node)

        return self._views.held_below(view, holds) or self._views.held_elsewhere(
            view, node.born, node.keys[0], holds
        )

    def _drop_chunks(self, view: View, leaf: Node) -> None:
        below = self._views.children(view.id)
        beside: dict[
            int, dict[int, int]
        ] = {}  # what neighbours map there, by view: one walk each, not one for each chunk

        for lba, mba in zip(leaf.keys, leaf.values):

            def holds(other: View) -> bool:
                if other.id not in beside:
                    beside[other.id] = dict(other.map.items(leaf.keys[0], leaf.keys[-1] + 1))
                return beside[other.id].get(lba) == mba

            if not any(map(holds, below)) and not self._views.held_elsewhere(view, mba, lba, holds):
                self._dropped.append(mba)
                self._chunks.drop([mba])
