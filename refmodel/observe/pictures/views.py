"""Draws the logical maps as trees: every node once, in a row per level."""

from typing import Any

from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.cow_btree import LAST
from refmodel.log_structured.maps.node import Node
from refmodel.log_structured.snapshots.views import View, ViewState

WIDE = 40  # leaves that are drawn at most: the trees are cut at the LBA where there are as many
STEP, NODE_WIDTH, NODE_HEIGHT = 104, 20, 24  # pixels
WIDTH, MARGIN = 1100, 40  # pixels
COLOURS = ("#2c7a3f", "#b3261e", "#6b4fa0", "#946200", "#00797a", "#a23b72", "#4a6785", "#7a5c3d")
LIVE_COLOUR, SHARED_COLOUR = "#1f4e8c", "#d9d9d4"


def picture(disk: LogStructuredDisk) -> dict[str, Any]:
    """Return what views.svg.j2 draws."""
    disk.state.update_maps()
    views = sorted(disk.state.views.by_id.values(), key=lambda view: view.taken or LAST)
    trees, cut = _trees(disk, views)
    reached: dict[int, set[int]] = {}
    nodes: dict[int, Node] = {}
    for view, found in zip(views, trees, strict=True):
        for node in found:
            nodes[node.page] = node
            reached.setdefault(node.page, set()).add(view.id)
    top = max((node.level for node in nodes.values()), default=0)
    colours = {
        view.id: LIVE_COLOUR if view.state is ViewState.LIVE else COLOURS[at % len(COLOURS)]
        for at, view in enumerate(views)
    }
    drawn = {}
    for level in range(top + 1):
        row = sorted(
            (node for node in nodes.values() if node.level == level),
            key=lambda node: (node.keys[0], node.born),
        )
        for at, node in enumerate(row):
            holders = reached[node.page]
            drawn[node.page] = {
                "x": _spread(at, len(row)),
                "y": 150 + (top - level) * STEP,
                "views": len(holders),
                "colour": colours[next(iter(holders))] if len(holders) == 1 else SHARED_COLOUR,
                "title": _title(node, holders, views),
                "leaf": level == 0,
                "first": node.keys[0],
                "last": node.keys[-1],
            }
    boxes = {
        view.id: {
            "x": _spread(at, len(views)),
            "name": _name(view),
            "colour": colours[view.id],
            "nodes": sum(len(reached[node.page]) == 1 for node in found),
            "all": len(found),
        }
        for at, (view, found) in enumerate(zip(views, trees, strict=True))
    }
    edges = [
        {"from": drawn[node.page], "to": drawn[child], "colour": drawn[child]["colour"]}
        for node in nodes.values()
        if node.level
        for child in node.values
        if child in drawn
    ]
    bottom = 150 + top * STEP + 44
    return {
        "boxes": list(boxes.values()),
        "nodes": list(drawn.values()),
        "edges": edges,
        "width": WIDTH,
        "height": bottom + 70,
        "bottom": bottom,
        "roots": [
            {"from": boxes[view.id], "to": drawn[view.map.root]}
            for view in views
            if view.map.root in drawn
        ],
        "descent": [
            {"from": boxes[view.parent], "to": boxes[view.id]}
            for view in views
            if view.parent in boxes
        ],
        "shared": sum(len(holders) > 1 for holders in reached.values()),
        "distinct": len(reached),
        "cut": cut,
        "wide": NODE_WIDTH,
        "high": NODE_HEIGHT,
        "live": LIVE_COLOUR,
        "shared_colour": SHARED_COLOUR,
    }


def _trees(disk: LogStructuredDisk, views: list[View]) -> tuple[list[list[Node]], int | None]:
    """Return the nodes that each view reaches, and None.

    If the trees are too wide to draw: only the nodes below some LBA, and that LBA.
    """
    end, cut = LAST, None
    while True:
        trees = [_nodes(view, end) for view in views]
        leaves = {node.page: node.keys[0] for found in trees for node in found if node.level == 0}
        firsts = sorted(set(leaves.values()))
        if len(leaves) <= WIDE or len(firsts) < 2:
            return trees, cut
        end = cut = firsts[max(1, len(firsts) * WIDE // len(leaves) - 1)]


def _nodes(view: View, end: int) -> list[Node]:
    """Return the nodes that a view reaches below the LBA `end`, without those that reclaim has
    passed.
    """
    found: list[Node] = []

    def walk(page: int, limit: int) -> None:
        node = view.map.pages.get(page, view.map.kind, "scrub")
        found.append(node)
        for at, child in enumerate(node.values if node.level else ()):
            child_limit = node.keys[at + 1] if at + 1 < len(node.keys) else limit
            if child_limit > view.cursor and (node.keys[at] < end or at == 0):
                walk(child, child_limit)

    if view.map.root:
        walk(view.map.root, LAST)
    return found


def _spread(at: int, count: int) -> float:
    """Return the x coordinate of one of `count` things in a row."""
    return round(MARGIN + (WIDTH - 2 * MARGIN) * (at + 0.5) / count, 1)


def _name(view: View) -> str:
    return view.name or ("live" if view.state is ViewState.LIVE else "deleted")


def _title(node: Node, holders: set[int], views: list[View]) -> str:
    names = ", ".join(_name(view) for view in views if view.id in holders)
    if node.level == 0:
        what = f"leaf of {len(node.keys)} blocks, LBA {node.keys[0]} to {node.keys[-1]}"
    else:
        what = f"{len(node.keys)} children, from LBA {node.keys[0]}"
    return f"page {node.page}, born at {node.born}: {what}; reached from {names}"
