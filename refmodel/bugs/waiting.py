"""Bugs of bounded steps: late merges, and requests that come between two steps."""

from refmodel.bugs.registry import after, bug, override
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.snapshots.views import View


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


@bug(
    53,
    "the rule itself: a checkpoint is of one moment, and so is the position in the log",
    "the log is truncated to where it ends when the checkpoint counts, not to where it was frozen",
)
def truncated_past_freeze(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    truncate = log.truncate
    override(log, "truncate", lambda position=None: truncate())


@bug(
    53,
    "the rule itself: what a frozen checkpoint refers to is left alone until a later one counts",
    "a page that is freed while a checkpoint is written counts as freed before it",
)
def freed_after_freeze_reused(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages
    free_pending = pages.free_pending
    override(pages, "free_pending", lambda count: free_pending(len(pages.pending)))


@bug(
    53,
    "the rule itself: a frozen node is not changed, whoever changes the map copies it",
    "a node that a checkpoint has yet to write is changed in place",
)
def frozen_node_changed(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages
    override(pages, "shared_until", lambda: pages.clock.durable)


@bug(
    51,
    "the rule itself: a map is its tree and everything that waits above it",
    "a snapshot that is taken while an older one waits to be merged starts from that one's tree",
)
def frozen_layer_skipped(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    snapshot = views.snapshot

    def snapshot_of_tree(name: str) -> View:
        view = snapshot(name)
        if view.map.base is not None:
            root = view.map.root
            view.map.base = None
            view.map.root = root
        return view

    override(views, "snapshot", snapshot_of_tree)


@bug(
    53,
    "the rule itself: a checkpoint has all that happened before its position in the log",
    "a checkpoint is frozen while changes of a snapshot still wait to be merged",
)
def frozen_before_merge(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    merge_all = views.merge_all
    override(views, "merge_all", lambda: None if len(views.frozen_maps) else merge_all())


@bug(
    55,
    "the rule itself: a victim is dead when all of it lies elsewhere",
    "a victim of which only a part has moved is written over before the rest is moved",
)
def victim_reused_in_parts(disk: LogStructuredDisk) -> None:
    chunks, segments = disk.state.chunks, disk.state.segments

    def reuse(_: bool, most: int) -> None:
        parts = {pba // segments.addressing.span for pba in chunks.leaving.values()}
        for segment in parts & segments.sealed.keys():
            segments.add_free(segment)

    after(disk.cleaner, "move", reuse)


@bug(
    55,
    "the rule itself: a checkpoint frees what was dead when it was frozen",
    "a checkpoint between two steps frees a victim whose chunks have moved to memory only",
)
def emptied_freed_by_checkpoint(disk: LogStructuredDisk) -> None:
    segments = disk.state.segments
    emptied: list[int] = []

    def free_emptied(_: None) -> None:
        for segment in {*emptied} & segments.sealed.keys():
            segments.add_free(segment)
        emptied.clear()

    after(disk.cleaner, "emptied", lambda _, segment: emptied.append(segment))
    after(disk.checkpoints, "commit", free_emptied)
