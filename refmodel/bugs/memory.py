"""Bugs of maps that do not fit in memory."""

from typing import Any

from refmodel.bugs.registry import after, bug, override
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.node import Node

FEW = 12  # nodes that are not on the media


@bug(
    54,
    "the rule itself: which pages are in use does not depend on what is in memory",
    "a page that was forgotten while the disk was opened counts as free",
    memory=0,
)
def forgotten_page_is_free(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages
    finish = pages.in_use.finish_marking

    def finish_with_what_is_in_memory() -> None:
        for page in [page for page in pages.in_use if page not in pages.nodes]:
            del pages.in_use[page]
        finish()

    override(pages.in_use, "finish_marking", finish_with_what_is_in_memory)


@bug(
    54,
    "the rule itself: what is forgotten can be loaded again",
    "a node that is not on the media yet is forgotten when memory is short",
    memory=0,
)
def unwritten_node_forgotten(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages

    def forget_oldest(node: Node, *_: Any) -> None:
        oldest = next(iter(pages.dirty))
        if len(pages.dirty) > FEW and oldest != node.page:
            pages.nodes.pop(oldest, None)

    after(pages, "new", forget_oldest)


@bug(
    54,
    "the rule itself: what nobody knows to be free is not given out",
    "a page that the survey has not come to yet counts as free",
    memory=0,
)
def unmarked_page_is_free(disk: LogStructuredDisk) -> None:
    pages, survey = disk.state.pages, disk.state.survey

    def count_as_free(*_: Any) -> None:
        if not survey.is_done:
            pages.unused.learn(pages.unused.pages, pages.in_use.__contains__)

    after(pages, "opened", count_as_free)
