"""Pointers: how the media refer to a node, by its page and the checksum that it has there.

A device that lost a write has another node in the page, which is whole. It may even be as old: of a
checkpoint that was cut short before the disk was opened again. So a pointer says which node it
refers to. A pointer is a u64: the page in its lower half, the checksum in the upper half. In memory
the page alone is a reference, and the checksums are here.
"""

from collections.abc import Iterable, Sequence

from refmodel.log_structured.maps.sparse_column import SparseColumn

MANY = 1 << 32  # pages are fewer, so one fits half of a pointer


class Checksums:
    """The checksums of nodes on the media, by page, as pointers to them say."""

    def __init__(self) -> None:
        self._pointers = SparseColumn("Q")  # by page; 0: none is known

    def expected(self, page: int) -> int:
        """Return the checksum of the node in a page; -1, which no node has, if none is known."""
        pointer = self._pointers[page]
        return pointer // MANY if pointer else -1

    def written(self, page: int, checksum: int) -> None:
        """Note that a node is in a page from now on."""
        self._pointers[page] = checksum * MANY + page

    def learn(self, pointers: Iterable[int]) -> None:
        """Note what pointers say of pages of which nothing is known."""
        known = self._pointers
        for pointer in pointers:
            if not known[pointer % MANY]:
                known[pointer % MANY] = pointer

    def pointer(self, page: int) -> int:
        """Return how the media refer to the node in a page; 0 stays 0, an empty tree.

        What reclaim has freed before it was written has no checksum: that pointer is never
        followed.
        """
        return self._pointers[page] or page

    def pointers(self, pages: Sequence[int]) -> list[int]:
        """Return how the media refer to the nodes in pages."""
        found = self._pointers.many(pages)
        return [*map(self.pointer, pages)] if 0 in found else found

    def refer(self, pointer: int) -> int:
        """Return the page that a pointer refers to, and note what it says."""
        self.learn([pointer])
        return pointer % MANY
