"""Bugs of deletion: what is freed when a snapshot goes, and who still holds it."""

from collections.abc import Callable

from refmodel.bugs.registry import after, bug, override
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.node import MapKind, Node
from refmodel.log_structured.snapshots.views import View, ViewState
from refmodel.log_structured.survey import TreeAt


@bug(13, "dm-thin 19fa1a6756ed", "a node once shared is taken for shared for ever, and not freed")
def shared_flag_stale(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    release = views.release_node

    def release_what_never_was_shared(id: int, node: Node) -> None:
        if views.next_id <= 2:
            release(id, node)

    override(views, "release_node", release_what_never_was_shared)


@bug(14, "btrfs aea6f028d01d", "the progress of a deletion is not saved with what it freed")
def reclaim_forgets_progress(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    store = views.store

    def store_without_cursor() -> None:
        cursors = {view: view.cursor for view in views.deleted}
        for view in cursors:
            view.cursor = 0
        store()
        for view, cursor in cursors.items():
            view.cursor = cursor

    override(views, "store", store_without_cursor)


@bug(17, "longhorn-engine 108", "deleting a snapshot folds its data into the older one")
def delete_folds_into_parent(disk: LogStructuredDisk) -> None:
    views = disk.state.views

    def fold(view: View, name: str) -> None:
        if (parent := views.by_id.get(view.parent)) is not None:
            views.merge_all()
            parent.map.root = view.map.root

    after(views, "delete", fold)


@bug(18, "cloudstack 9446", "a deleted snapshot's children lose their ancestors")
def delete_loses_chain(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    remove = views.remove

    def remove_and_cut_off(view: View) -> None:
        children = views.children(view.id)
        remove(view)
        for child in children:
            child.parent = child.fork = 0

    override(views, "remove", remove_and_cut_off)


@bug(
    20,
    "SPDK 3431",
    "after a crash what a deleted snapshot holds is given out while it is still being freed",
)
def deleted_view_unmarked(disk: LogStructuredDisk) -> None:
    state = disk.state
    tree_of = state.tree_of

    def nothing_if_deleted(view: View) -> TreeAt:
        return (0, MapKind.LOGICAL, 0) if view.state is ViewState.DELETED else tree_of(view)

    override(state, "tree_of", nothing_if_deleted)


@bug(
    21,
    "bcachefs 1027",
    "a snapshot between two others is forgotten when it is deleted, not reclaimed",
)
def interior_orphaned(disk: LogStructuredDisk) -> None:
    views = disk.state.views

    def forget(view: View, name: str) -> None:
        if view.parent in views.by_id and views.children(view.id):
            views.remove(view)

    after(views, "delete", forget)


@bug(
    27,
    "the neighbour test on a chain that a revert made a tree",
    "siblings are not asked whether they hold something",
)
def siblings_not_asked(disk: LogStructuredDisk) -> None:
    views = disk.state.views

    def held_elsewhere(view: View, born: int, key: int, holds: Callable[[View], bool]) -> bool:
        parent = views.by_id.get(view.parent)
        if parent is not None and key < parent.cursor:
            parent = views.by_id.get(parent.parent)
        return parent is not None and born <= parent.taken

    override(views, "held_elsewhere", held_elsewhere)
