"""The pages of the performance leg: where tree nodes are kept, and which pages are free.

What a durable checkpoint refers to is never overwritten: a page freed while it does waits in `pending` until the next
checkpoint is durable. Which pages are in use is not stored: opening a disk walks its trees and marks them.
"""

import heapq
from collections import Counter, OrderedDict

from refmodel.array.layout import PAGE
from refmodel.array.leg import Leg
from refmodel.core.clock import Clock
from refmodel.core.errors import DataLost, NoSpace
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.node import Kind, Node, birth, decode, encode, is_node

CACHED_NODES = 8192  # clean nodes kept in memory


class Pages:
    """Page 0 is never used: as a root it means an empty tree."""

    def __init__(self, leg: Leg, geometry: Geometry, clock: Clock) -> None:
        self._leg = leg
        self._base = geometry.pages_base
        self._count = geometry.pages
        self.clock = clock
        self.nodes: dict[int, Node] = {}  # page -> node, of those in memory
        self.dirty: dict[
            int, Node
        ] = {}  # those of them that were born since the last checkpoint, and are only there
        self._clean: OrderedDict[int, None] = (
            OrderedDict()
        )  # the others' pages, in the order in which they are forgotten
        self.in_use: dict[int, tuple[Kind, int]] = {}  # page -> its map, and when it was born
        self.used: Counter[Kind] = Counter()
        self.damaged: list[int] = []  # pages that no component could give when the disk was opened
        self.pending: list[int] = []
        self._fresh = 1  # pages from here on were never used
        self._released: list[int] = []  # a heap, so that low pages are used first
        self.created = 0
        self.copied = 0  # of those
        self.freed = 0

    @property
    def free_count(self) -> int:
        """Pages that can be allocated now."""
        return len(self._released) + self._count - self._fresh

    def get(self, page: int, kind: Kind, cause: str = "foreground") -> Node:
        """The node in a page. Raises DataLost."""
        if (node := self.nodes.get(page)) is not None:
            return node
        _, born = self.in_use.get(page, (kind, 0))
        born = born or self._newest(page, kind, cause)
        node = decode(
            self._leg.read(
                self.offset(page), PAGE, lambda data: is_node(page, kind, data, born), cause
            )
        )
        self._remember(node)
        return node

    def _newest(self, page: int, kind: Kind, cause: str) -> int:
        """The birth of the newest copy of a page that nobody has met since the disk was opened; 0 if no copy is good.

        A device that lost a write has an older node there, which is as whole. What a checkpoint refers to is not overwritten
        before the next one is durable, so of the copies the newest is the right one.
        """
        copies = self._leg.copies(self.offset(page), PAGE, cause)
        return max((birth(data) for data in copies if is_node(page, kind, data)), default=0)

    def new(self, kind: Kind, level: int, keys: list[int], values: list) -> Node:
        """A node in a fresh page, not yet on the media. Raises NoSpace."""
        node = Node(self._allocate(), self.clock.now, kind, level, keys, values)
        self._use(node.page, kind, node.born)
        self.nodes[node.page] = self.dirty[node.page] = node
        self.created += 1
        return node

    def free(self, node: Node) -> None:
        """Nothing refers to the node any more, except perhaps the durable checkpoint. Raises DataLost where two did: a node that is older
        than it should be on every mirror refers to what was given out again."""
        if node.page not in self.in_use:
            raise DataLost(f"the maps contradict each other: page {node.page} had two owners")
        del self.in_use[node.page]
        self.nodes.pop(node.page, None)
        self.dirty.pop(node.page, None)
        self._clean.pop(node.page, None)
        self.used[node.kind] -= 1
        self.freed += 1
        if self.may_be_durable(node):
            self.pending.append(node.page)
        else:
            heapq.heappush(self._released, node.page)

    def may_be_durable(self, node: Node) -> bool:
        return node.born <= self.clock.durable

    def write_dirty(self) -> None:
        """Write every node that is only in memory, neighbours in one I/O."""
        run: list[bytes] = []
        start = 0
        for page in sorted(self.dirty):
            if run and page != start + len(run):
                self._leg.write(self.offset(start), b"".join(run), "checkpoint")
                run = []
            if not run:
                start = page
            run.append(encode(self.dirty[page]))
        if run:
            self._leg.write(self.offset(start), b"".join(run), "checkpoint")

    def checkpointed(self) -> None:
        """A checkpoint is durable: what was written for it is clean, what only older ones needed is free."""
        for node in self.dirty.values():
            self._remember(node)
        self.dirty.clear()
        for page in self.pending:
            heapq.heappush(self._released, page)
        self.pending.clear()
        self.clock.durable = self.clock.tick()

    def mark(self, node: Node) -> bool:
        """While opening: the page is in use. Says whether that is news."""
        if node.page in self.in_use:
            return False
        if not 0 < node.page < self._count:
            raise DataLost(f"a tree refers to page {node.page}, which does not exist")
        self._use(node.page, node.kind, node.born)
        return True

    def mark_damaged(self, page: int, kind: Kind) -> None:
        """While opening: the page is in use, though no component can give it."""
        self._use(page, kind, 0)
        self.damaged.append(page)

    def marked(self) -> None:
        """While opening: every page in use has been marked."""
        self._fresh = max(self.in_use, default=0) + 1
        self._released = [page for page in range(1, self._fresh) if page not in self.in_use]

    def stored(self) -> list[tuple[int, Kind, int]]:
        """Page, kind and birth of every node that is on the media."""
        return [
            (page, kind, born)
            for page, (kind, born) in self.in_use.items()
            if page not in self.dirty
        ]

    def stripes(self) -> list[int]:
        """The stripes of the performance leg that the pages in use are."""
        first = self._base // PAGE
        return [first + page for page in sorted(self.in_use)]

    def offset(self, page: int) -> int:
        return self._base + page * PAGE

    def _allocate(self) -> int:
        if self._released:
            page = heapq.heappop(self._released)
        elif self._fresh < self._count:
            page = self._fresh
            self._fresh += 1
        else:
            raise NoSpace("no page is left for the maps")
        return page

    def _use(self, page: int, kind: Kind, born: int) -> None:
        self.in_use[page] = kind, born
        self.used[kind] += 1

    def _remember(self, node: Node) -> None:
        self.nodes[node.page] = node
        self._clean[node.page] = None
        if len(self._clean) > CACHED_NODES:
            del self.nodes[self._clean.popitem(last=False)[0]]
