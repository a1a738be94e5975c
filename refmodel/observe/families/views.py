"""Counters of the log-structured engine's views: what each holds, and what they share."""

from collections import Counter
from collections.abc import Callable

from refmodel.log_structured import audit
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.cow_btree import LAST
from refmodel.log_structured.snapshots import space_report
from refmodel.log_structured.snapshots.views import ViewState
from refmodel.observe.families.family import GAUGE, Family, Samples, Value, single

LIVE, DELETED = "(live)", "(deleted)"  # label `view`: no snapshot can have such a name
BY_VIEW = ("view",)


def reduction(disk: LogStructuredDisk) -> float:
    """Return blocks that views hold, divided by the blocks of space that they take.

    1.0 for none.
    """
    occupied = disk.state.space_usage.occupied
    return len(_holders(disk)) * disk.geometry.chunk_units / occupied if occupied else 1.0


def _pages_shared(disk: LogStructuredDisk) -> int:
    reached: Counter[int] = Counter()
    for view in disk.state.views.by_id.values():
        pages: set[int] = set()
        audit.reach(view.map, view.map.root, view.cursor, LAST, pages)
        reached.update(pages)
    return sum(count > 1 for count in reached.values())


def _mapped(disk: LogStructuredDisk) -> Samples:
    return [((held.name or LIVE,), held.mapped) for held in space_report.by_view(disk.state.views)]


def _exclusive(disk: LogStructuredDisk) -> Samples:
    views = space_report.by_view(disk.state.views)
    leaving = sum(set(states) == {ViewState.DELETED} for states in _holders(disk).values())
    return [((held.name or LIVE,), held.exclusive) for held in views] + [((DELETED,), leaving)]


def _shared(disk: LogStructuredDisk) -> int:
    return sum(
        len(states) > 1 and set(states) != {ViewState.DELETED} for states in _holders(disk).values()
    )


def _holders(disk: LogStructuredDisk) -> dict[int, list[ViewState]]:
    """Return MBA (middle block address) of each chunk -> the states of the views that hold it."""
    holders: dict[int, list[ViewState]] = {}
    for view in disk.state.views.by_id.values():
        for _, mba in view.map.items(view.cursor):
            holders.setdefault(mba, []).append(view.state)
    return holders


def _gauge(
    name: str, unit: str, help: str, get: Callable[[LogStructuredDisk], Value], walks: bool = False
) -> Family:
    return Family(name, GAUGE, unit, help, single(get), walks=walks)


VIEWS = [
    _gauge("views.snapshots", "views", "snapshots", lambda disk: len(disk.state.views.names)),
    _gauge(
        "views.deleted",
        "views",
        "deleted views that reclaim has not finished",
        lambda disk: len(disk.state.views.deleted),
    ),
    Family(
        "space.mapped", GAUGE, "chunks", "blocks that a view maps", _mapped, BY_VIEW, walks=True
    ),
    Family(
        "space.exclusive",
        GAUGE,
        "chunks",
        "chunks that only this view holds; (deleted): chunks that only deleted views hold",
        _exclusive,
        BY_VIEW,
        walks=True,
    ),
    _gauge("space.shared", "chunks", "chunks that several views hold", _shared, walks=True),
    _gauge(
        "pages.shared",
        "pages",
        "nodes of logical maps that several views share",
        _pages_shared,
        walks=True,
    ),
    _gauge(
        "reduction.ratio",
        "ratio",
        "chunks that views hold per chunk of space that they take; 1 without data reduction, and "
        "for an empty disk",
        reduction,
        walks=True,
    ),
]
