"""The pages in use, as far as they are known.

Pages that were in use when the disk was opened are marked one after another (page_marking.py), and
may be freed before. How many are in use is always known.
"""

from collections import Counter
from collections.abc import Iterator, MutableMapping

from refmodel.core.errors import DataLost
from refmodel.log_structured.maps.free_pages import FreePages
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.maps.sparse_column import SparseColumn

KINDS = {int(kind): kind for kind in MapKind}
KIND = 8  # kinds are fewer, so that an entry is one number


class PagesInUse(MutableMapping[int, tuple[MapKind, int]]):
    """The marked pages in use: page -> its map, and when its node was born."""

    def __init__(self, unused: FreePages) -> None:
        self._entries = SparseColumn("q")  # birth * KIND + kind; 0: not marked
        self._marked = 0
        self.all_marked = True
        self.counts: Counter[MapKind] = Counter()  # marked or not
        self.total = 0  # the sum of these counts
        self.damaged: list[int] = []  # pages that no component could give
        self._unused = unused
        self._unmarked: dict[int, MapKind] = {}  # pages that are not marked, for events
        self._gone: set[int] = set()  # pages freed before all were marked

    def __contains__(self, page: object) -> bool:
        """Return whether a page is marked."""
        return isinstance(page, int) and self._entries[page] != 0

    def __getitem__(self, page: int) -> tuple[MapKind, int]:
        born, kind = divmod(self._entries[page], KIND)
        return KINDS[kind], born

    def birth(self, page: int) -> int:
        """Return when the node in a page was born; 0 if that is not known."""
        return max(0, self._entries[page] // KIND)

    def __setitem__(self, page: int, entry: tuple[MapKind, int]) -> None:
        self._marked += not self._entries[page]
        kind, born = entry
        self._entries[page] = born * KIND + kind

    def __delitem__(self, page: int) -> None:
        if not self._entries[page]:
            raise KeyError(page)
        self._entries[page] = 0
        self._marked -= 1

    def __iter__(self) -> Iterator[int]:
        return self._entries.places()

    def __len__(self) -> int:
        """Return how many pages are marked."""
        return self._marked

    def load(self, counts: Counter[MapKind]) -> None:
        """Begin with no page marked; `counts` is the number of pages in use, by map."""
        self.counts, self.total = counts, counts.total()
        self.all_marked = False

    def add(self, page: int, kind: MapKind, born: int) -> None:
        """Note that a page is in use from now on, which was free."""
        self._entries[page] = born * KIND + kind
        self._marked += 1
        self.counts[kind] += 1
        self.total += 1

    def remove(self, page: int, kind: MapKind) -> None:
        """Note that a page is free. Raises DataLost if it was not in use: then maps are wrong."""
        if self._entries[page]:
            self._entries[page] = 0
            self._marked -= 1
        elif self.all_marked or page in self._gone or page not in self._unused.unknown:
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
        self.counts = Counter([KINDS[entry % KIND] for entry in self._entries.numbers()])
        self.total = self._marked

    def foresee(self, unmarked: dict[int, MapKind]) -> None:
        """Let events tell of pages that are in use and not yet marked."""
        self._unmarked = unmarked

    def maps(self) -> dict[int, MapKind]:
        """Return each page and its map; pages that are not marked only if they are foreseen."""
        unmarked = {page: kind for page, kind in self._unmarked.items() if page not in self._gone}
        return unmarked | {page: self[page][0] for page in self._entries.places()}
