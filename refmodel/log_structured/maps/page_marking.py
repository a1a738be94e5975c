"""The marking of pages in use: a walk over the trees of a checkpoint, which does not store them.

The walk goes in steps, and may go on after the disk was opened. It needs no more than that the
pages of the checkpoint keep their content: none of them is allocated before the walk has ended. So
it finds what the checkpoint uses, whatever happens to the maps meanwhile.

Only inner nodes are read, one in some two hundred: they say where leaves are. Of the first nodes
the leaves are read, too, so that a small disk has all in memory. The birth of a leaf that was not
read is found out on request.
"""

from collections.abc import Callable
from typing import NamedTuple

from refmodel.core.errors import DataLost
from refmodel.log_structured.maps.cow_btree import LAST
from refmodel.log_structured.maps.node import MapKind, Node
from refmodel.log_structured.maps.page_store import PageStore
from refmodel.log_structured.maps.sparse_column import SparseColumn

READ_AHEAD = 192  # nodes that are read while a disk is opened, if there is memory for them
LITTLE_AHEAD = 16  # of these before no leaf is read any more, where nodes are small so that a
# small disk is like a large one
UNKNOWN = -1  # the birth of a leaf that is not read

Mark = Callable[[int, MapKind, int], None]  # page, map, birth
Read = Callable[[int, MapKind], Node]


class Subtree(NamedTuple):
    """The nodes below a page, as far as they lead to keys from `low` on."""

    page: int
    kind: MapKind
    low: int
    end: int  # above its keys
    is_leaf: bool  # is known to be one


class PageMarking:
    """A walk over trees: the subtrees that are left, and the pages that were found."""

    def __init__(
        self,
        read: Read,
        mark: Mark,
        mark_damaged: Callable[[int, MapKind], None],
        can_read: Callable[[], bool],
    ) -> None:
        """`can_read` tells whether enough devices are there: only then is a page damaged that
        cannot be read."""
        self.read = read
        self._mark = mark
        self._mark_damaged = mark_damaged
        self._can_read = can_read
        self._found = SparseColumn("B")  # 1: the page was found
        self._left: list[Subtree] = []  # the next one last

    def add(self, root: int, kind: MapKind, low: int = 0) -> None:
        """Let the walk also come to a tree, as far as it leads to keys from `low` on, and last."""
        if root:
            self._left.insert(0, Subtree(root, kind, low, LAST, False))

    @property
    def is_done(self) -> bool:
        """True if every page is marked."""
        return not self._left

    def step(self, *, leaves: bool = False) -> None:
        """Mark pages, up to the next one that has to be read; leaves are read only if asked for.

        Raises DataLost if a node refers to a page that does not exist, or if too few devices are
        there: then the next step reads the same page.
        """
        while self._left:
            page, kind, low, end, is_leaf = self._left.pop()
            if self._found[page]:
                continue
            self._found[page] = 1
            if leaves or not is_leaf:
                self._visit(page, kind, low, end)
                return
            self._mark(page, kind, UNKNOWN)

    def _visit(self, page: int, kind: MapKind, low: int, end: int) -> None:
        """Read a node, mark its page, and come to its children next."""
        try:
            node = self.read(page, kind)
        except DataLost:
            if not self._can_read():
                self._found[page] = 0
                self._left.append(Subtree(page, kind, low, end, False))
                raise
            self._mark_damaged(page, kind)
            return
        self._mark(page, kind, node.born)
        if node.level:
            ends = [*node.keys[1:], end]
            children = [
                Subtree(child, kind, low, child_end, node.level == 1)
                for child, child_end in zip(node.values, ends, strict=True)
                if child_end > low
            ]
            self._left += reversed(children)


def pages_in_use(pages: PageStore, trees: list[tuple[int, MapKind, int]]) -> dict[int, MapKind]:
    """Return every page of trees, each a root, its map, and the lowest key, with its map.

    Raises DataLost if a page is referred to that does not exist.
    """
    found: dict[int, MapKind] = {}

    def mark(page: int, kind: MapKind, _: int) -> None:
        found[page] = kind

    walk = PageMarking(
        pages.look, mark, lambda page, kind: mark(page, kind, 0), lambda: pages.can_read
    )
    for root, kind, low in trees:
        walk.add(root, kind, low)
    while not walk.is_done:
        walk.step()
    return found


def learn_births(pages: PageStore) -> None:
    """Find out when every node was born. A leaf that no component gives counts as new.

    So a resync copies it when more devices are back. All pages are marked.
    """
    for page, (kind, born) in pages.in_use.items():
        if born != UNKNOWN:
            continue
        try:
            born = pages.get(page, kind, "recovery").born
        except DataLost:
            born = pages.clock.durable
        pages.in_use[page] = kind, born
