"""Increments: checkpoints that store the entries of the maps that have changed, and no nodes.

A whole checkpoint writes every node that has changed, even if one entry of it has. An increment
writes the changed entries of all maps side by side, into pages of their own. Its slot has the roots
of the last whole checkpoint, and the pages of all increments since. Recovery loads those maps and
puts the changes into them, then replays the log. The owners of places are not stored: they follow
from the middle map. So an increment frees segments and truncates the
log as a whole checkpoint does. But its roots are older, so it frees no page: the nodes that the
whole checkpoint has stay, and those in memory are still changed in place.

The next checkpoint is whole

- if a view has changed other than by writes: the changes are of live alone;
- if a member lacks something: what it has to get is known by the births of nodes;
- if the pages of changes are too many, or pages or memory are scarce;
- if it would write no more than an increment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from refmodel.array.array import Array
from refmodel.array.member import ComponentState
from refmodel.journal.checkpoint import ROOTS, Checkpoint
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.maps.changes import Changes, cut, decode, pages_for
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.maps.page_store import PageStore
from refmodel.log_structured.maps.pointers import MANY
from refmodel.log_structured.snapshots.views import Views

LEAST_PAGES, MOST_PAGES = 4, 1024  # of changes, that may be behind a whole checkpoint
ONE_PAGE_IN = 64  # of the disk's pages may be one of changes
RECORDED = 128  # changes of a map that are kept in memory, for each of these pages,
MOST_RECORDED = 1 << 16  # and in all
KEPT_FREE = 64  # pages, besides one for each in use


class Increments:
    """The changes of one disk's maps since its last checkpoint, and the pages of earlier ones."""

    def __init__(
        self, array: Array[Geometry], pages: PageStore, views: Views, maps: Sequence[Tree[Any]]
    ) -> None:
        self._array = array
        self._pages = pages
        self._views = views
        self._maps = maps  # whose changes are stored, besides that of live
        self._whole: Checkpoint | None = None  # the slot of the last whole checkpoint that counts
        self._pointers: list[int] = []  # to the pages of changes since then
        self._parts: Iterator[bytes] = iter(())  # of the frozen changes, not written yet
        self._next: list[bytes] = []  # the first of them
        self.left = 0  # pages that these take, at most
        shape = array.geometry
        self.most = min(MOST_PAGES, max(LEAST_PAGES, shape.pages // ONE_PAGE_IN))
        self.count = 0  # since the disk was opened

    @property
    def page_count(self) -> int:
        """Number of pages of changes since the last whole checkpoint."""
        return len(self._pointers)

    @property
    def pages_of_changes(self) -> set[int]:
        """The pages of changes since the last whole checkpoint."""
        return {pointer % MANY for pointer in self._pointers}

    def may_be_next(self) -> bool:
        """Return whether the next checkpoint may be an increment."""
        pages, changes = self._pages, self._changes()
        if self._whole is None or changes is None or self._views.have_changed:
            return False
        if pages.crowded(lambda: 0):
            return False
        if len(self._array.in_state(ComponentState.ACTIVE)) < len(self._array.members):
            return False
        needed = pages_for(changes)
        if needed >= 2 * len(pages.dirty) or self.page_count + needed > self.most:
            return False
        return pages.free_count() - needed >= pages.used_count + KEPT_FREE

    def freeze(self, now: Checkpoint) -> Checkpoint:
        """Freeze the changes of this moment; return its checkpoint, but for the pages of changes.

        `now` is what a whole checkpoint would be.
        """
        changes, whole = self._changes(), self._whole
        assert changes is not None and whole is not None
        self._parts, self.left = cut(changes), pages_for(changes)
        self.record()
        roots = {name: getattr(whole, name) for name in ROOTS}
        return replace(now, **roots, pages=whole.pages, whole=whole.number)

    def write(self, most: int, number: int) -> None:
        """Write at most `most` pages of the frozen changes, of the checkpoint of this number.

        Raises NoSpace, DataLost; then they may be written again.
        """
        self._next += islice(self._parts, max(0, most - len(self._next)))
        self._pointers += self._pages.write_changes(self._next, number, self._last)
        self.left = self.left - most if len(self._next) >= most else 0
        self._next = []

    def slot(self, frozen: Checkpoint) -> Checkpoint:
        """Return the slot of a frozen increment, all of which is written."""
        self.count += 1
        first_unused = self._pages.unused.first_unused
        return replace(frozen, first_unused_page=first_unused, changes=self._last)

    def follow(self, whole: Checkpoint) -> None:
        """Go on from a whole checkpoint, whose slot counts: older changes are in its maps."""
        self._pages.free_changes(self._pointers)
        self._whole, self._pointers = whole, []

    def record(self) -> None:
        """Record the changes of the maps from now on."""
        for tree in self._trees():
            tree.changes, tree.most_changes = {}, min(MOST_RECORDED, self.most * RECORDED)

    def load(self, slot: Checkpoint) -> dict[MapKind, Changes]:
        """Begin with the newest checkpoint, whose changes are returned. Raises DataLost."""
        self._whole = replace(slot, number=slot.whole or slot.number, changes=0)
        stored = self._pages.load_changes(slot.changes)
        self._pointers = [*stored]
        return decode(stored.values())

    @property
    def _last(self) -> int:
        """Pointer to the last page of changes, or 0."""
        return self._pointers[-1] if self._pointers else 0

    def _trees(self) -> list[Tree[Any]]:
        return [self._views.live_map, *self._maps]

    def _changes(self) -> dict[MapKind, Changes] | None:
        """Return the changes by map; None if not all were recorded."""
        changes: dict[MapKind, Changes] = {}
        for tree in self._trees():
            if tree.changes is None:
                return None
            changes[tree.kind] = tree.changes
        return changes
