"""Which pages are in use: a walk over the trees when a disk is opened, since it is not stored.

Only inner nodes are read, one in some two hundred: they say where leaves are. Of the first nodes
the leaves are read, too, so that a small disk has all in memory. When a leaf that was not read was
born is found out if somebody asks.
"""

from refmodel.core.errors import DataLost
from refmodel.log_structured.maps.cow_btree import LAST
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.maps.page_store import PageStore

READ_AHEAD = 256  # nodes; from then on no leaf is read
LITTLE_AHEAD = 16  # the same, where nodes are small so that a small disk is like a large one
UNKNOWN = -1  # the birth of a leaf that is not read


def mark_pages(
    pages: PageStore, page: int, kind: MapKind, ahead: int, low: int = 0, end: int = LAST
) -> None:
    """Mark the pages below a page that lead to keys from `low` on; `page` 0 is an empty tree.

    Leaves are read until `ahead` nodes have been. Raises DataLost if there is no such page.
    """
    if not page or page in pages.in_use:
        return
    try:
        node = pages.get(page, kind, "recovery", low)
    except DataLost:
        pages.mark_damaged(page, kind)
        return
    pages.mark_in_use(page, kind, node.born)
    if node.level == 0:
        return
    ends = [*node.keys[1:], end]
    children = [part for part in zip(node.values, ends, strict=True) if part[1] > low]
    for child, child_end in children:
        if node.level > 1 or pages.loaded < ahead:
            mark_pages(pages, child, kind, ahead, low, child_end)
        elif child not in pages.in_use:
            pages.mark_in_use(child, kind, UNKNOWN)


def learn_births(pages: PageStore) -> None:
    """Find out when every node was born. A leaf that no component gives counts as new.

    So a resync copies it when more devices are back.
    """
    unknown = [(page, kind) for page, (kind, born) in pages.in_use.items() if born == UNKNOWN]
    for page, kind in unknown:
        try:
            born = pages.get(page, kind, "recovery").born
        except DataLost:
            born = pages.clock.durable
        pages.in_use[page] = kind, born
