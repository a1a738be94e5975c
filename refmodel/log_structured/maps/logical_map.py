"""The logical maps of views: a tree, and changes that wait in memory to be merged into it.

Changes of live wait, and are merged later in key order. One change of a tree costs a walk to a
leaf, and the first time after a checkpoint a copy of the path; thousands of changes in key order
share both (as in the in-memory part of a log-structured merge tree: O'Neil et al., 1996). The
durable log has the changes that wait, so a crash loses nothing.

A snapshot freezes what waits: it becomes the snapshot's. Live goes on with nothing that waits, on
top of the snapshot's map, which is its `base` until the base is merged; then live has the same
root. What is merged late is born when it was frozen, so births say the same as if it had been
merged at once.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from refmodel.log_structured.maps.columns import Column
from refmodel.log_structured.maps.cow_btree import LAST, Tree

MOST_RECENT = 8192  # changes of live that wait before their merge begins


class LogicalMap(Tree[int]):
    """Logical block address (LBA) -> middle block address (MBA), of one view."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.base: LogicalMap | None = None  # the map below `recent`, until it is merged
        self.recent: dict[int, int | None] = {}  # newer than the tree; None: no longer mapped
        self._order: list[int] = []  # the LBAs that a merge has yet to deal with, the last first
        self._based: list[LogicalMap] = []  # the maps that have this one as base
        super().__init__(*arguments, **options)

    @property
    def root(self) -> int:
        """The root of the tree, as far as it is merged; a page, 0 when empty."""
        return self._root if self.base is None else self.base.root

    @root.setter
    def root(self, page: int) -> None:
        assert self.base is None
        self._root = page

    @property
    def waits(self) -> bool:
        """True if changes wait, here or in a base."""
        return bool(self.recent) or self.base is not None

    def is_merging(self) -> bool:
        """True if enough changes wait to be merged, or their merge has begun."""
        return bool(self._order) or len(self.recent) >= MOST_RECENT

    def get_many(self, wanted: Sequence[int]) -> list[int | None]:
        """Return the MBA of each LBA, or None. Raises DataLost."""
        below = super().get_many(wanted) if self.base is None else self.base.get_many(wanted)
        return [*map(self.recent.get, wanted, below)] if self.recent else below

    def items(self, low: int = 0, high: int = LAST, cause: str = "") -> Iterator[tuple[int, int]]:
        """Yield LBA and MBA of each mapped block, low <= LBA < high, in order. Raises DataLost.

        The map must not change meanwhile.
        """
        items = super().items if self.base is None else self.base.items
        below = items(low, high, cause)
        recent = sorted(lba for lba in self.recent if low <= lba < high)
        if not recent:
            yield from below
            return
        at = 0
        for lba, mba in below:
            while at < len(recent) and recent[at] < lba:
                yield from self._recent_item(recent[at])
                at += 1
            if at < len(recent) and recent[at] == lba:
                yield from self._recent_item(lba)
                at += 1
            else:
                yield lba, mba
        for lba in recent[at:]:
            yield from self._recent_item(lba)

    def contains(self, page: int, level: int, key: int) -> bool:
        """Return what the tree's own method says: changes that wait count for nothing."""
        contains = super().contains if self.base is None else self.base.contains
        return contains(page, level, key)

    def siblings(self, level: int, key: int) -> Sequence[int]:
        """Return what the tree's own method says: changes that wait count for nothing."""
        siblings = super().siblings if self.base is None else self.base.siblings
        return siblings(level, key)

    def height(self) -> int:
        """Return the number of levels of the tree; 0 if it is empty."""
        return super().height() if self.base is None else self.base.height()

    def merge(self, most: int) -> dict[int, int | None]:
        """Put at most `most` of the changes that wait into the tree; there must be no base.

        Returns those that were put. Raises NoSpace, DataLost. If a node cannot be read, nothing is
        lost, and it may be tried again.
        """
        assert self.base is None
        if not self._order:
            self._order = sorted(self.recent, reverse=True)
        cut = max(0, len(self._order) - most)
        recent: dict[int, Any] = self.recent
        lbas = [lba for lba in reversed(self._order[cut:]) if lba in recent]
        del self._order[cut:]
        unmapped = [lba for lba in lbas if recent[lba] is None]
        mapped = [lba for lba in lbas if recent[lba] is not None] if unmapped else lbas
        self.put_many(mapped, [*map(recent.__getitem__, mapped)])
        stored = super().get_many(unmapped)
        self.remove_many(
            [lba for lba, mba in zip(unmapped, stored, strict=True) if mba is not None]
        )
        return {lba: recent.pop(lba) for lba in lbas}

    def start_from(self, other: "LogicalMap") -> None:
        """Be the same as another map, which does not change any more."""
        if not other.waits:
            self.root = other.root
            return
        self.base = other if other.recent or other.base is None else other.base
        self.base._based.append(self)

    def give_tree(self) -> None:
        """Give the tree, now that it is merged, to the maps that have this one as base."""
        assert not self.waits
        for map in self._based:
            map.base = None
            map.root = self.root
        self._based.clear()

    def _recent_item(self, lba: int) -> Iterator[tuple[int, int]]:
        if (mba := self.recent[lba]) is not None:
            yield lba, mba


class LiveMap(LogicalMap):
    """The map of the live view, which changes.

    What it was asked for, and what has waited, is in a column too: a number for each block, while
    the nodes leave memory for it. That costs no walk. The column speaks of what is below `recent`,
    which changes only when something leaves `recent`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.remembers = True  # until it is not live any more
        self._column: Column | None = None  # by LBA: what is below `recent`; 0: not known, or none

    def get_many(self, wanted: Sequence[int]) -> list[int | None]:
        """Return the MBA of each LBA, or None. Raises DataLost."""
        if not (self.remembers and self.pages.leaves_column()):
            self._column = None
            return super().get_many(wanted)
        if (column := self._column) is None:
            column = self._column = array("Q", bytes(self.pages.column_bytes))
        recent = self.recent.get
        found: list[Any] = [recent(lba, column[lba]) for lba in wanted]
        if 0 in found:
            unknown = [lba for lba, mba in zip(wanted, found, strict=True) if mba == 0]
            walked = super().get_many(unknown)
            for lba, mba in zip(unknown, walked, strict=True):
                column[lba] = mba or 0
            rest = iter(walked)
            found = [next(rest) if mba == 0 else mba for mba in found]
        return found

    def remembered(self) -> Iterator[tuple[int, int]]:
        """Yield LBA and MBA of each block that the column speaks of and no change that waits."""
        for lba, mba in enumerate(self._column or ()):
            if mba and lba not in self.recent:
                yield lba, mba

    def merge(self, most: int) -> dict[int, int | None]:
        """Put changes into the tree; the column speaks of them from now on."""
        merged = super().merge(most)
        self._note(merged)
        return merged

    def _note(self, below: dict[int, int | None]) -> None:
        """Let the column speak of changes that have left `recent`."""
        if (column := self._column) is not None:
            for lba, mba in below.items():
                column[lba] = mba or 0

    def replace(self, lbas: Sequence[int], mbas: Iterable[int | None]) -> list[int | None]:
        """Map LBAs to MBAs, or to nothing for None. Returns what each was mapped to before.

        Raises DataLost; then nothing has changed.
        """
        before = self.get_many(lbas)
        self.recent.update(zip(lbas, mbas, strict=True))
        return before

    def freeze_into(self, snapshot: LogicalMap, taken: int) -> None:
        """Let a snapshot's map, taken at this time, be what this one is; go on on top of it.

        No node changes, and nothing is merged: what waits is the snapshot's from now on.
        """
        snapshot.frozen, snapshot.born, self.frozen = self.frozen, taken, taken
        if self.base is None:
            snapshot.root = self.root
        else:
            snapshot.start_from(self.base)
        snapshot.recent, snapshot._order = self.recent, self._order
        self.recent, self._order = {}, []
        self._note(snapshot.recent)
        if self.base is not None:
            self.base._based.remove(self)
        self.start_from(snapshot)
