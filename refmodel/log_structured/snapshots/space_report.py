"""Space by view: what deleting each view alone would free, and what views share."""

from collections import Counter
from typing import NamedTuple

from refmodel.log_structured.snapshots.views import Views, ViewState


class ViewSpace(NamedTuple):
    """The space of one view, in chunks."""

    name: str  # empty for live
    mapped: int
    exclusive: int  # held by no other view, those that are being reclaimed included


def by_view(views: Views) -> list[ViewSpace]:
    """Return the space of every snapshot, the oldest first, and of live. It walks every map.

    Raises DataLost.
    """
    maps = {
        view.id: [mba for _, mba in view.map.items(view.cursor)] for view in views.by_id.values()
    }
    holders = Counter(mba for held in maps.values() for mba in held)
    shown = [*views.in_order(), views.live]
    return [
        ViewSpace(view.name, len(maps[view.id]), sum(holders[mba] == 1 for mba in maps[view.id]))
        for view in shown
    ]


def pinned(views: Views) -> str:
    """Say in words what only snapshots hold, the largest snapshot first. Raises DataLost."""
    live = {mba for _, mba in views.live.map.items()}
    held = {
        mba
        for view in views.by_id.values()
        if view.state is ViewState.SNAPSHOT
        for _, mba in view.map.items()
    } - live
    if not held:
        return "no snapshot holds any of them alone"
    largest = sorted(
        (space for space in by_view(views) if space.name and space.exclusive),
        key=lambda space: -space.exclusive,
    )
    each = ", ".join(f"{space.name} {space.exclusive}" for space in largest[:5])
    shared = len(held) - sum(space.exclusive for space in largest)
    also = [f"{len(largest) - 5} more"] if len(largest) > 5 else []
    also += [f"{shared} shared by several"] if shared else []
    return f"{len(held)} of them by snapshots only ({', '.join(filter(None, [each, *also]))})"
