"""The pages that can be allocated.

The checkpoint says which page is the first that was never used. Of the pages below, it is not
stored which are free: until that is found out (page_marking.py), they are unknown, and none of them
is allocated. What becomes free among them meanwhile stays unknown until then.
"""

from collections.abc import Callable

from refmodel.core.errors import NoSpace
from refmodel.core.number_set import NumberSet
from refmodel.log_structured.maps.columns import Column


class FreePages:
    """The free pages of one disk. Page 0 is never used."""

    def __init__(self, count: int) -> None:
        self.pages = count  # number of pages of the disk
        self.first_unused = 1  # pages from here on were never used
        self.unknown = range(0)  # pages of which nobody knows whether they are free
        self._released = NumberSet()  # low pages are used first

    def count(self) -> int:
        """Return how many pages can be allocated now."""
        return self._released.count + self.pages - self.first_unused

    def __contains__(self, page: int) -> bool:
        """Return whether a page can be allocated now."""
        return page >= self.first_unused or page in self._released

    def load(self, first_unused: int) -> None:
        """Let all pages below the first unused one be unknown, and the others free."""
        self.first_unused = first_unused
        self.unknown = range(1, first_unused)
        self._released.clear()

    def allocate(self) -> int:
        """Take a free page. Raises NoSpace."""
        if self._released:
            return self._released.pop_lowest()
        if self.first_unused == self.pages:
            raise NoSpace("no page is left for the maps")
        self.first_unused += 1
        return self.first_unused - 1

    def release(self, page: int) -> None:
        """Make a page free, as soon as it is not unknown."""
        if page not in self.unknown:
            self._released.add(page)

    def release_all(self, pages: Column) -> None:
        """Make pages free, none of which is free; fast, for there may be thousands."""
        if not self.unknown:
            self._released.update(pages)
        else:
            for page in pages:
                self.release(page)

    def learn(self, most: int, is_taken: Callable[[int], bool]) -> None:
        """Find out which of the next unknown pages, at most `most`, are free."""
        known, self.unknown = self.unknown[:most], self.unknown[most:]
        for page in known:
            if not is_taken(page):
                self._released.add(page)
