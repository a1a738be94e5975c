"""The survey: it finds the pages and segments in use, in bounded steps after a disk is opened.

A checkpoint says how much is in use, and from where on nothing ever was. So a disk of any size can
be opened at once. Where pages and segments are free among those that were used before is found out
later: each operation does a step, and so does an idle moment. Until then what is new goes where
nothing ever was. If too little of that is left, the survey ends at once.

What is in use at a small disk is known when it is open.
"""

from contextlib import suppress

from refmodel.core.errors import DataLost
from refmodel.log_structured.chunks.segments import Segments
from refmodel.log_structured.maps.node import MapKind, Node
from refmodel.log_structured.maps.page_marking import PageMarking, learn_births, pages_in_use
from refmodel.log_structured.maps.page_store import PageStore

SWEPT = 4096  # pages that one step finds free or in use, once all in use are marked
SWEPT_AT_OPENING = 16 * SWEPT
LEAST_FREE = 256  # pages, besides two for each one in use; with fewer the survey ends at once
TreeAt = tuple[int, MapKind, int]  # root, map, the lowest key that it leads to


class Survey:
    """The survey of one disk."""

    def __init__(self, pages: PageStore, segments: Segments, read_ahead: int, leaves: int) -> None:
        self.steps = 0  # since the disk was opened
        self._pages = pages
        self._segments = segments
        self._read_ahead = read_ahead  # nodes that are read while the disk is opened,
        self._leaves_ahead = leaves  # and of these the first, among which there are leaves
        self._marking = self._new_marking()
        self._ended = False  # whether a change has found it done: it stays so

    @property
    def is_done(self) -> bool:
        """True if all pages and segments in use are known, as far as they can be."""
        swept = not self._pages.unused.unknown or bool(self._pages.damaged)
        return swept and self._marking.is_done and self._segments.all_known

    def open(self, trees: list[TreeAt], first_unused: int, *, foreseen: bool) -> None:
        """Begin, while the disk is opened, with some nodes; what is left is done later.

        If no first unused page is known, all is done now. If it is `foreseen`, events can tell at
        once what is in use. Raises DataLost.
        """
        pages, marking = self._pages, self._marking
        for tree in trees:
            marking.add(*tree)
        most = min(self._read_ahead, pages.most_clean)
        while not marking.is_done and (not first_unused or pages.loaded < most):
            marking.step(leaves=pages.loaded < min(self._leaves_ahead, most))
        if marking.is_done:
            pages.in_use.finish_marking()
            if pages.in_use.all_marked or not first_unused:
                pages.learn_first_unused()
            pages.learn_free(SWEPT_AT_OPENING)
        else:
            marking.read = pages.look
            if foreseen:
                pages.in_use.foresee(pages_in_use(pages, trees))

    def step(self) -> bool:
        """Do a step. Returns False if nothing is left to do."""
        if self.is_done:
            return False
        self.steps += 1
        pages = self._pages
        if not self._segments.all_known:
            with suppress(DataLost):  # it is tried again
                self._segments.learn()
                return True
        if not self._marking.is_done:
            self._marking.step()
            if self._marking.is_done:
                pages.in_use.finish_marking()
                self._marking = self._new_marking()
        else:
            pages.learn_free(SWEPT)
        return True

    def keep_up(self) -> None:
        """Do the step that a change earns, or more if it needs more. Raises DataLost."""
        if not self._ended:
            self.step()
            self.finish_if_scarce()
            self._ended = self.is_done

    def finish(self) -> None:
        """Do all that is left. Raises DataLost."""
        self._segments.learn_all()
        while self.step():
            pass

    def finish_if_scarce(self) -> None:
        """Do all that is left if few pages are known to be free. Raises DataLost."""
        pages = self._pages
        if not self.is_done and pages.free_count() < 2 * pages.used_count + LEAST_FREE:
            self.finish()

    def learn_births(self) -> None:
        """Find out of each page in use when its node was born. Raises DataLost."""
        self.finish()
        learn_births(self._pages)

    def _new_marking(self) -> PageMarking:
        pages = self._pages

        def read(page: int, kind: MapKind) -> Node:
            return pages.get(page, kind, "recovery")

        return PageMarking(
            read, pages.in_use.mark, pages.in_use.mark_damaged, lambda: pages.can_read
        )
