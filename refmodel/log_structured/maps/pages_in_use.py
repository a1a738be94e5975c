"""Which pages are in use, as far as that is known.

Pages that were in use when the disk was opened are marked one after another (page_marking.py), and
may be freed before. How many are in use is always known.
"""

from collections import Counter

from refmodel.core.errors import DataLost
from refmodel.log_structured.maps.free_pages import FreePages
from refmodel.log_structured.maps.node import MapKind


class PagesInUse(dict[int, tuple[MapKind, int]]):
    """The marked pages in use: page -> its map, and when its node was born."""

    def __init__(self, unused: FreePages) -> None:
        super().__init__()
        self.all_marked = True
        self.counts: Counter[MapKind] = Counter()  # marked or not
        self.total = 0  # of these counts
        self.damaged: list[int] = []  # pages that no component could give
        self._unused = unused
        self._unmarked: dict[int, MapKind] = {}  # what is not marked, for events
        self._gone: set[int] = set()  # pages freed before all were marked

    def load(self, counts: Counter[MapKind]) -> None:
        """Let no page be marked, but so many be in use of each map."""
        self.counts, self.total = counts, counts.total()
        self.all_marked = False

    def add(self, page: int, kind: MapKind, born: int) -> None:
        """Note that a page is in use from now on."""
        self[page] = kind, born
        self.counts[kind] += 1
        self.total += 1

    def remove(self, page: int, kind: MapKind) -> None:
        """Note that a page is free. Raises DataLost if it was not in use: then maps are wrong."""
        if self.pop(page, None) is None and (
            self.all_marked or page in self._gone or page not in self._unused.unknown
        ):
            raise DataLost(f"the maps contradict each other: page {page} had two owners")
        self.counts[kind] -= 1
        self.total -= 1
        if not self.all_marked:
            self._gone.add(page)

    def mark(self, page: int, kind: MapKind, born: int) -> None:
        """Mark a page that the checkpoint uses, if the maps still do.

        Raises DataLost if there is no such page.
        """
        if page not in self._unused.unknown:
            self.damaged.append(page)
            raise DataLost(f"a tree refers to page {page}, which does not exist")
        if page not in self._gone:
            self[page] = kind, born

    def mark_damaged(self, page: int, kind: MapKind) -> None:
        """Mark a page that no component can give. What it refers to stays unknown."""
        self.damaged.append(page)
        if page not in self._gone:
            self[page] = kind, 0

    def finish_marking(self) -> None:
        """Note that every page in use is marked that leads not through a damaged one."""
        if not self.damaged:
            self.all_marked = True
            self._gone.clear()
            self._unmarked = {}

    def count(self) -> None:
        """Count the marked pages: all that are in use, if nothing is damaged."""
        self.counts, self.total = Counter(kind for kind, _ in self.values()), len(self)

    def foresee(self, unmarked: dict[int, MapKind]) -> None:
        """Let events tell of pages that are in use and not yet marked."""
        self._unmarked = unmarked

    def maps(self) -> dict[int, MapKind]:
        """Return each page and its map; pages that are not marked only if they are foreseen."""
        unmarked = {page: kind for page, kind in self._unmarked.items() if page not in self._gone}
        return unmarked | {page: kind for page, (kind, _) in self.items()}
