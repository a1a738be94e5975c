"""Marking: when a disk is opened, its trees are walked to find the pages that are in use."""

from refmodel.core.errors import DataLost
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.maps.page_store import PageStore


def mark(pages: PageStore, page: int, kind: MapKind, low: int, end: int) -> None:
    """Mark the pages below a page, which ends before key `end`, that lead to keys from `low` on.

    A page that no component can give is marked as damaged. Raises DataLost if a tree refers to a
    page that does not exist.
    """
    if not page or page in pages.in_use:
        return
    try:
        node = pages.get(page, kind, "recovery", low)
    except DataLost:
        pages.mark_damaged(page, kind)
        return
    if not pages.mark_in_use(node) or node.level == 0:
        return
    for at, child in enumerate(node.values):
        child_end = node.keys[at + 1] if at + 1 < len(node.keys) else end
        if child_end > low:
            mark(pages, child, kind, low, child_end)
