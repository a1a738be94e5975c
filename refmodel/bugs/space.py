"""Bugs by which space is lost, or given to whom it does not belong."""

from refmodel.bugs.registry import bug
from refmodel.disk import LogStructuredDisk
from refmodel.errors import NoSpace
from refmodel.log import Record
from refmodel.node import Node
from refmodel.views import View


@bug(9, "WiredTiger 237", "an operation that is refused for want of space keeps the segment that it had taken")
def refusal_leaks_segment(disk: LogStructuredDisk) -> None:
    make, segments = disk._room.make, disk.state.segments

    def make_and_leak(*records: Record, refusable: bool = True) -> None:
        try:
            make(*records, refusable=refusable)
        except NoSpace:
            if segments.free_count:
                segments.open()
            raise

    disk._room.make = make_and_leak


@bug(13, "dm-thin 19fa1a6756ed", "a node once shared is taken for shared for ever, and not freed")
def shared_flag_stale(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    release = views._release_of_live

    def release_what_never_was_shared(node: Node) -> None:
        if views.next_id <= 2:
            release(node)

    views._release_of_live = release_what_never_was_shared


@bug(21, "bcachefs 1027", "a snapshot between two others is forgotten when it is deleted, not reclaimed")
def interior_orphaned(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    delete = views.delete

    def delete_and_forget(name: str) -> View:
        view = delete(name)
        if view.parent in views.by_id and views.children(view.id):
            views.remove(view)
        return view

    views.delete = delete_and_forget
