"""Bugs of increments: checkpoints of what has changed since the last one."""

from refmodel.bugs.registry import after, bug, override
from refmodel.journal.checkpoint import Checkpoint
from refmodel.log_structured.disk import LogStructuredDisk


@bug(
    56,
    "the rule itself: the roots of an increment are those of the last whole checkpoint",
    "an increment frees the pages that were freed before it, though its roots lead to them",
)
def increment_frees_pages(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages

    def free(_: None, checkpoint: Checkpoint) -> None:
        if checkpoint.is_increment:
            pages.free_pending(len(pages.pending))

    after(disk.state, "truncate", free)


@bug(
    56,
    "the rule itself: an increment has all changes since the last whole checkpoint",
    "the first page of an increment does not lead to those of older ones",
)
def older_changes_forgotten(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages
    write_changes, begun = pages.write_changes, 0

    def write_alone(parts: list[bytes], number: int, last: int) -> list[int]:
        nonlocal begun
        first, begun = number != begun, number
        return write_changes(parts, number, 0 if first else last)

    override(pages, "write_changes", write_alone)


@bug(
    56,
    "the rule itself: that something is gone is a change",
    "an increment has new values only, so what was unmapped or dropped is there again",
)
def removals_not_in_increment(disk: LogStructuredDisk) -> None:
    state = disk.state
    freeze = state.increments.freeze

    def freeze_values(now: Checkpoint) -> Checkpoint:
        for tree in (state.views.live_map, *state.service_maps):
            put = {key: value for key, value in (tree.changes or {}).items() if value is not None}
            tree.changes = put
        return freeze(now)

    override(state.increments, "freeze", freeze_values)


@bug(
    56,
    "the rule itself: pages of changes are in use until a whole checkpoint counts",
    "after a crash, pages of changes count as free",
)
def page_of_changes_is_free(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages
    learn_free = pages.learn_free

    def learn_without_changes(most: int) -> None:
        of_changes, pages.of_changes = pages.of_changes, set()
        learn_free(most)
        pages.of_changes = of_changes

    override(pages, "learn_free", learn_without_changes)


@bug(
    56,
    "the rule itself: an increment tells of live alone, so the views must be what they were",
    "an increment is taken although views have changed since the whole checkpoint",
)
def increment_over_snapshot(disk: LogStructuredDisk) -> None:
    views, increments = disk.state.views, disk.state.increments
    may_be_next = increments.may_be_next

    def may_be_next_anyway() -> bool:
        views.have_changed = False
        return may_be_next()

    override(increments, "may_be_next", may_be_next_anyway)


@bug(
    56,
    "the rule itself: what is replayed from the log has changed since the checkpoint",
    "an increment lacks what recovery has replayed before it",
)
def replayed_not_in_increment(disk: LogStructuredDisk) -> None:
    after(disk.resync, "begin_all", lambda _: disk.state.increments.record())
