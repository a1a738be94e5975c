"""The event `tree`: what became of the trees of the views, for the judges of traces.

Nothing is recorded where a node changes. Each event tells what differs from the event before it, so
it is told when one action has ended and before another begins.
"""

from zlib import crc32

from refmodel.core.events import Events
from refmodel.log_structured.maps.columns import Column
from refmodel.log_structured.maps.node import MapKind, Node
from refmodel.log_structured.maps.page_store import PageStore
from refmodel.log_structured.snapshots.views import View, Views, ViewState

LARGEST = 0x7FFFFFFF  # the largest number in a trace
NodeFacts = list[int | list[int]]  # page, born, level, keys, values


class TreeEvents:
    """Tells of the trees of one disk, if its events are recorded."""

    def __init__(self, views: Views, pages: PageStore, events: Events) -> None:
        self._views = views
        self._pages = pages
        self._events = events
        self._told: dict[int, NodeFacts] = {}
        self._used: set[int] = set()  # pages of the trees, by then
        self._others: set[int] = set()  # pages of the other maps
        self._roots: list[int] = []

    def tell(self, action: str, **facts: int) -> None:
        """Record what this action did, or all that was done since the last event."""
        if self._events.record is None:
            return
        pages, told = self._pages, self._told
        if pages.damaged:
            self._events.emit("tree", action="damaged")
            return
        in_use = pages.in_use.maps()
        used = {page for page, kind in in_use.items() if kind is MapKind.LOGICAL}
        nodes = [described(pages.nodes[page]) for page in sorted(used & pages.nodes.keys())]
        changed = [node for node in nodes if told.get(_page(node)) != node]
        freed = sorted(self._used - used)
        for page in freed:
            told.pop(page, None)
        told.update((_page(node), node) for node in changed)
        others = in_use.keys() - used
        came, left = sorted(others - self._others), sorted(self._others - others)
        self._used, self._others = used, others
        roots = [view.map.root for view in self._views.by_id.values()]
        moved = roots != self._roots
        if action == "merge" and not (changed or freed or came or left or moved):
            return
        self._roots = roots
        self._events.emit(
            "tree",
            action=action,
            **facts,
            **({"held": sorted(used)} if action == "load" else {}),
            nodes=changed,
            freed=freed,
            others=came,
            left=left,
            views=[_view(view) for view in self._views.by_id.values()],
            deleted=[view.id for view in self._views.deleted],
        )


def described(node: Node) -> NodeFacts:
    """Return what is told of a node. Of a leaf, which refers to no node, one number stands for its
    entries.
    """
    if node.level:
        return [node.page, node.born, node.level, _numbers(node.keys), _numbers(node.values)]
    entries = crc32(node.values.tobytes(), crc32(node.keys.tobytes()))
    return [node.page, node.born, node.level, [], [entries & LARGEST]]


def _page(node: NodeFacts) -> int:
    page = node[0]
    assert isinstance(page, int)
    return page


def _numbers(column: Column) -> list[int]:
    return [min(number, LARGEST) for number in column]


def _view(view: View) -> dict[str, str | int | bool]:
    """`changes`: the view is live, or changes of it wait to be merged."""
    return {
        "id": view.id,
        "name": view.name,
        "root": view.map.root,
        "parent": view.parent,
        "taken": view.taken,
        "cursor": min(view.cursor, LARGEST),
        "live": view.state is ViewState.LIVE,
        "changes": view.state is ViewState.LIVE or view.map.waits,
    }
