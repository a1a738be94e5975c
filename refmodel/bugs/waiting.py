"""Bugs of what waits in bounded steps: maps that are merged after they were frozen."""

from refmodel.bugs.registry import bug, override
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.views import View


@bug(
    51,
    "the rule itself: what is merged late is born when it was frozen",
    "a node that a snapshot's late merge makes counts as live's, and live changes it in place",
)
def late_merge_born_late(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    snapshot = views.snapshot

    def snapshot_born_late(name: str) -> View:
        view = snapshot(name)
        view.map.born = 0
        return view

    override(views, "snapshot", snapshot_born_late)


@bug(
    51,
    "the rule itself: a map is its tree and everything that waits above it",
    "a revert starts from the snapshot's tree, and forgets what waits to be merged into it",
)
def revert_forgets_waiting(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    revert = views.revert

    def revert_to_tree(name: str) -> View:
        target = views.named(name).map
        waiting, target.recent = target.recent, {}
        try:
            return revert(name)
        finally:
            target.recent = waiting

    override(views, "revert", revert_to_tree)


@bug(
    51,
    "the rule itself: reclaim asks trees, so everything that waits is merged before",
    "reclaim passes over a leaf that live shares, though live maps its blocks elsewhere by now",
)
def reclaim_before_merge(disk: LogStructuredDisk) -> None:
    views, reclaimer = disk.state.views, disk.state.reclaimer
    merge, reclaim = views.merge, reclaimer.reclaim

    def reclaim_at_once() -> bool:
        override(views, "merge", lambda most, **how: True)
        try:
            return reclaim()
        finally:
            override(views, "merge", merge)

    override(reclaimer, "reclaim", reclaim_at_once)
