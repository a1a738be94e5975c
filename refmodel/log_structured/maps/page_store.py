"""The pages of the performance leg: where tree nodes are stored, and which pages are in use.

What the durable checkpoint refers to is never overwritten: when such a page is freed, it waits in
`pending` until the next whole checkpoint is durable. Pages of changes, which increments of a
checkpoint have, are apart: no map leads to them. It is not stored which pages are in use: when a
disk is opened, or after that, its trees are walked, and their pages are marked (page_marking.py).

Memory is limited. Nodes that are on the media are forgotten when there are too many, and loaded
again on demand: a miss. Which goes is decided as in CLOCK (Corbato, 1968): in the order in which
they came, but what was used since its last turn gets another one. Other nodes stay until they are
written, so a checkpoint begins when they take most of the memory.

It has more than 400 lines because the state of a page changes here and nowhere else.
"""

from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from refmodel.array.layout import PAGE
from refmodel.array.leg import Check, Leg
from refmodel.core.clock import Clock
from refmodel.core.errors import DataLost
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps import changes
from refmodel.log_structured.maps.free_pages import FreePages
from refmodel.log_structured.maps.node import (
    MapKind,
    Node,
    checksum_of,
    decode,
    encode,
    is_node,
    new_keys,
    new_values,
    turn,
)
from refmodel.log_structured.maps.pages_in_use import PagesInUse
from refmodel.log_structured.maps.pointers import MANY, Checksums

MEMORY = 64 << 20  # bytes for nodes in memory, by default
NODE_BYTES = PAGE + 768  # memory of a full node: columns, objects, entries here
KEPT = 4 << 20  # bytes of memory that are left for nodes on the media
LEAST_CLEAN = 4  # nodes on the media that may always be in memory
LEAST_DIRTY = 64  # the same of the others
MISS = "map-miss"  # the cause of a device read of a node that an operation needs


class PageStore:
    """The pages of one disk, and the nodes in memory.

    Page 0 is never used: as a root it means an empty tree.
    """

    def __init__(self, leg: Leg, geometry: Geometry, clock: Clock) -> None:
        self._leg = leg
        self._base = geometry.pages_base
        self.unused = FreePages(geometry.pages)
        self.clock = clock
        self.nodes: dict[int, Node] = {}  # page -> node, of those in memory
        self.dirty: dict[int, Node] = {}  # born since the maps were frozen, and only in memory
        self._dirty_logical = 0  # number of those that are of logical maps
        self._frozen: dict[int, Node] = {}  # nodes of a checkpoint that are not written yet
        # When each has its turn, and others of which nothing is left: of the new nodes, and of the
        # frozen ones as a heap. Sorting those of a whole checkpoint would take too long for a step.
        self._turns: list[int] = []
        self._frozen_turns: list[int] = []
        self._clean: OrderedDict[int, None] = OrderedDict()  # the other pages, first evicted first
        self.in_use = PagesInUse(self.unused)
        self._lows: dict[int, int] = {}  # page -> the lowest key that its node leads to
        self.checksums = Checksums()
        self.pending = array("Q")  # freed, but a checkpoint may refer to them
        self.of_changes: set[int] = set()  # pages in use that have no node
        self._freed_before = 0  # number of those freed before the maps were frozen
        self._holders = 0  # steps that need what they have loaded
        self._opened = False
        self.column_bytes = 8 * geometry.blocks  # a number for each block of the disk
        self._set_most(MEMORY // NODE_BYTES)
        self.loaded = 0
        self.evicted = 0
        self.created = 0
        self.copied = 0  # of those, copies of shared or durable nodes
        self.freed = 0
        self.written = 0

    def free_count(self) -> int:
        """Number of pages that can be allocated now."""
        return self.unused.count()

    @property
    def used(self) -> Counter[MapKind]:
        """Number of pages in use, by map."""
        return self.in_use.counts

    @property
    def used_count(self) -> int:
        """Number of pages in use, marked or not."""
        return self.in_use.total

    @property
    def damaged(self) -> list[int]:
        """The pages that no component could give."""
        return self.in_use.damaged

    @property
    def can_read(self) -> bool:
        """True if a device is there that has all pages."""
        return bool(self._leg.active())

    def limit_memory(self, memory: int) -> None:
        """Let nodes take at most `memory` bytes.

        More only if a checkpoint cannot write them fast enough.
        """
        self._set_most(memory // NODE_BYTES)
        self._evict()

    @property
    def most_clean(self) -> int:
        """Number of nodes that may be in memory and on the media."""
        return max(LEAST_CLEAN, self._most - len(self.dirty) - len(self._frozen))

    def has_all(self) -> bool:
        """True if every node is in memory, and may stay there when a change makes some more."""
        return len(self.nodes) == self.in_use.total < self._most - LEAST_CLEAN

    def leaves_column(self) -> bool:
        """True if memory for the column of live is left even if every page in use is there."""
        return self.in_use.total + len(self._frozen) <= self._room

    def leaves(self, memory: int) -> bool:
        """True if so many bytes of memory are left besides that column, with every page there."""
        return self.in_use.total + len(self._frozen) + memory // NODE_BYTES < self._room

    def crowded(self, waiting: Callable[[], int]) -> bool:
        """Return whether nodes that are not on the media leave too little memory for others.

        They may take half of the memory; and more, if `KEPT` is left even when the changes of
        logical maps that are `waiting` are merged.
        """
        there = len(self.dirty) + len(self._frozen)
        if there <= self._most_dirty:
            return False
        coming = min(waiting(), self.in_use.counts[MapKind.LOGICAL] - self._dirty_logical)
        return there + coming > self._most - KEPT // NODE_BYTES

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep in memory what is loaded meanwhile, so that a change needs no device halfway."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            self._evict()

    def get(self, page: int, kind: MapKind, cause: str = "") -> Node:
        """Return the node in a page. Raises DataLost.

        Device I/O is counted under `cause`, or else as a miss.
        """
        if (node := self.nodes.get(page)) is not None:
            node.used = True
            return node
        node = self._read(page, kind, cause or (MISS if self._opened else "recovery"))
        self._remember(node)
        return node

    def look(self, page: int, kind: MapKind) -> Node:
        """Return the node in a page, which may have been freed; what was read is forgotten."""
        return self.nodes.get(page) or self._read(page, kind, "recovery")

    def check(self, page: int, kind: MapKind) -> Check:
        """Return how to recognise the node in a page: it is the one that is referred to."""
        checksum = self.checksums.expected(page)
        return Check(self.offset(page), PAGE, lambda data: is_node(page, kind, data, checksum))

    def new(
        self, kind: MapKind, level: int, keys: Iterable[int], values: Any, born: int = 0
    ) -> Node:
        """Return a new node in a free page, not yet on the media; born now, unless `born` says.

        It takes over columns and tables that it is given.

        Raises NoSpace.
        """
        born = born or self.clock.now
        assert born > self.clock.frozen
        columns = new_keys(keys), new_values(kind, level, values)
        node = Node(self.unused.allocate(), born, kind, level, *columns)
        self.in_use.add(node.page, kind, born)
        self.nodes[node.page] = self.dirty[node.page] = node
        self._turns.append(turn(node))
        self._dirty_logical += kind is MapKind.LOGICAL
        self.created += 1
        return node

    def free(self, node: Node) -> None:
        """Free the page of a node that nothing refers to, except perhaps the durable checkpoint.

        Raises DataLost if it was freed before: then the maps are wrong.
        """
        self.in_use.remove(node.page, node.kind)
        self._lows.pop(node.page, None)
        self.nodes.pop(node.page, None)
        if self.dirty.pop(node.page, None) is not None:
            self._dirty_logical -= node.kind is MapKind.LOGICAL
        self._clean.pop(node.page, None)
        self.freed += 1
        if self.may_be_durable(node):
            self.pending.append(node.page)
        else:
            self.unused.release(node.page)

    def may_be_durable(self, node: Node) -> bool:
        """Return whether a checkpoint may refer to the node: the durable one, or a frozen one."""
        return node.born <= self.shared_until()

    def shared_until(self) -> int:
        """Return the time up to which nodes were born that a checkpoint may refer to."""
        return self.clock.frozen

    @property
    def frozen_count(self) -> int:
        """Number of nodes of the frozen maps that are not written yet."""
        return len(self._frozen)

    def freeze(self) -> None:
        """Keep every node as it is now, for a checkpoint; none may be frozen already."""
        assert not self._frozen
        self._frozen, self._frozen_turns = self.dirty, self._turns
        heapify(self._frozen_turns)
        self.dirty, self._dirty_logical, self._turns = {}, 0, []
        self._freed_before = len(self.pending)

    def write_frozen(self, most: int) -> None:
        """Write at most `most` nodes of the frozen maps; neighbours go in one I/O.

        Raises DataLost; then they may be written again.
        """
        nodes = self._next(most)
        try:
            self._write((page, self._encoded(page)) for page in nodes)
        except Exception:
            for node in nodes.values():
                heappush(self._frozen_turns, turn(node))
            raise
        for page, node in nodes.items():
            del self._frozen[page]
            if self.nodes.get(page) is node:
                self._remember(node)

    def _next(self, most: int) -> dict[int, Node]:
        """Take the turns of at most `most` nodes of the frozen maps; return these nodes by page."""
        nodes: dict[int, Node] = {}
        while len(nodes) < min(most, len(self._frozen)):
            number = heappop(self._frozen_turns)
            node = self._frozen.get(number % MANY)
            if node is not None and turn(node) == number:
                nodes[node.page] = node
        return nodes

    def write_changes(self, parts: list[bytes], number: int, last: int) -> list[int]:
        """Write parts of the changes of a checkpoint, each into a free page; return pointers.

        `last` is the pointer to the page before the first one, or 0. Raises NoSpace, DataLost; then
        the pages are free.
        """
        pages: dict[int, bytes] = {}
        pointers: list[int] = []
        try:
            for part in parts:
                page = self.unused.allocate()
                pages[page] = stored = changes.encode(page, number, last, part)
                pointers.append(last := changes.checksum_of(stored) * MANY + page)
            self._write(sorted(pages.items()))
        except Exception:
            for page in pages:
                self.unused.release(page)
            raise
        self.of_changes.update(pages)
        return pointers

    def load_changes(self, last: int) -> dict[int, bytes]:
        """Return the pages of changes that the last one of a checkpoint leads to, by pointer.

        The first one comes first. Raises DataLost.
        """
        found: dict[int, bytes] = {}
        while last:
            page, checksum = last % MANY, last // MANY
            accept = partial(changes.is_stored, page, checksum)
            found[last] = stored = self._leg.read(self.offset(page), PAGE, accept, "recovery")
            self.of_changes.add(page)
            last = changes.before(stored)
        return dict(reversed(found.items()))

    def free_changes(self, pointers: list[int]) -> None:
        """Free pages of changes, which no checkpoint that may count refers to any more."""
        for pointer in pointers:
            self.of_changes.remove(pointer % MANY)
            self.unused.release(pointer % MANY)

    def checkpoint_commit(self) -> None:
        """Note that a checkpoint is durable.

        Pages that only older checkpoints used are free.
        """
        assert not self._frozen
        self.free_pending(self._freed_before)
        self._freed_before = 0
        self.clock.commit()

    def free_pending(self, count: int) -> None:
        """Make the first `count` pages free that wait for a durable checkpoint."""
        self.unused.release_all(self.pending[:count])
        del self.pending[:count]

    def load(self, first_unused: int, used: Counter[MapKind]) -> None:
        """Begin with the number of pages in use; which ones below the first unused page is not
        known.

        If the first unused one is 0, that is not known either.
        """
        self.unused.load(first_unused or self.unused.pages)
        self.in_use.load(used)

    def lead_to(self, root: int, kind: MapKind, low: int) -> None:
        """Note that what a tree leads to for keys below `low` may be other nodes by now."""
        with suppress(DataLost):
            while root:
                self._lows[root] = low
                node = self.get(root, kind, "recovery")
                root = node.values[bisect_right(node.keys, low, 1) - 1] if node.level else 0

    def opened(self) -> None:
        """Note that the disk is open: from now on a read serves an operation."""
        self._opened = True

    def learn_first_unused(self) -> None:
        """Learn from the marked pages, while the disk is opened, which pages were never used."""
        self.in_use.count()
        self.unused.load(max([*self.in_use, *self.of_changes], default=0) + 1)

    def learn_free(self, most: int) -> None:
        """Find out which of the next unknown pages, at most `most`, are free.

        Nothing can be found out if not all pages in use are marked.
        """
        if self.in_use.all_marked:
            in_use, others = self.in_use, {*self.pending, *self.of_changes}
            self.unused.learn(most, lambda page: page in in_use or page in others)

    def stored(self) -> Iterator[tuple[int, int]]:
        """Yield page and birth of every node that is on the media, in the order of pages."""
        for page, (_, born) in self.in_use.items():
            if page not in self.dirty and page not in self._frozen:
                yield page, born

    def contradictions(self) -> Iterator[str]:
        """Yield where memory contradicts itself, or what is on the media."""
        nodes, kept = self.nodes, self._clean.keys() | self.dirty.keys() | self._frozen.keys()
        if astray := nodes.keys() - kept:
            yield f"the nodes of pages {sorted(astray)} stay in memory for ever"
        if lost := (self._clean.keys() | self.dirty.keys()) - nodes.keys():
            yield f"the nodes of pages {sorted(lost)} are kept in memory, and are not there"
        logical = sum(node.kind is MapKind.LOGICAL for node in self.dirty.values())
        if logical != self._dirty_logical:
            yield f"{logical} new nodes are of logical maps, {self._dirty_logical} are counted"
        if self.in_use.all_marked:
            counts = Counter(kind for kind, _ in self.in_use.values())
            if counts != self.in_use.counts:
                yield "the pages in use are not those of each map that are counted"
        if changed := [
            page
            for page in self._clean
            if (node := nodes.get(page)) is not None
            and node.level == 0
            and node.kind is not MapKind.VIEWS  # its pointers may be of what reclaim has freed
            and checksum_of(encode(node, self.checksums)) != self.checksums.expected(page)
        ]:
            yield f"the nodes of pages {sorted(changed)} in memory are not those on the media"

    def stripes(self) -> list[int]:
        """Return the stripes of the performance leg that are pages in use."""
        first = self._base // PAGE
        return [first + page for page in sorted(self.in_use.maps())]

    def stored_stripes(self) -> list[int]:
        """Return those of them whose nodes are on the media."""
        unstored = self.dirty.keys() | self._frozen.keys()
        return [self._base // PAGE + page for page in self.in_use.maps() if page not in unstored]

    def offset(self, page: int) -> int:
        """Return where a page begins, in bytes of the performance leg."""
        return self._base + page * PAGE

    def _encoded(self, page: int) -> bytes:
        """Return a frozen node as it is stored, and note its checksum."""
        stored = encode(self._frozen[page], self.checksums)
        self.checksums.written(page, checksum_of(stored))
        return stored

    def _write(self, pages: Iterable[tuple[int, bytes]]) -> None:
        """Write pages, each with what it stores, in this order; neighbours go in one I/O."""
        run: list[bytes] = []
        start = 0
        for page, stored in pages:
            if run and page != start + len(run):
                self._leg.write(self.offset(start), b"".join(run), "checkpoint")
                run = []
            if not run:
                start = page
            run.append(stored)
            self.written += 1
        if run:
            self._leg.write(self.offset(start), b"".join(run), "checkpoint")

    def _read(self, page: int, kind: MapKind, cause: str) -> Node:
        check = self.check(page, kind)
        node, pointers = decode(self._leg.read(check.offset, check.length, check.accept, cause))
        low = self._lows.get(page, 0)
        self.checksums.learn(pointers[bisect_right(node.keys, low, 1) - 1 :])
        self.loaded += 1
        return node

    def _remember(self, node: Node) -> None:
        self.nodes[node.page] = node
        self._clean[node.page] = None
        node.used = False
        self._evict()

    def _set_most(self, nodes: int) -> None:
        """Let so many nodes be in memory, and see how many leave room for the column of live."""
        self._most = nodes  # in memory
        self._most_dirty = max(LEAST_DIRTY, nodes // 2)  # of these, while nothing else is asked
        self._room = nodes - LEAST_CLEAN - -(-self.column_bytes // NODE_BYTES)

    def _evict(self) -> None:
        """Forget nodes that are on the media while there are too many, unless a step needs them."""
        if self._holders:
            return
        left = self.most_clean
        while len(self._clean) > left:
            page, _ = self._clean.popitem(last=False)
            if self.nodes[page].used:
                self.nodes[page].used = False
                self._clean[page] = None
            else:
                del self.nodes[page]
                self.evicted += 1
