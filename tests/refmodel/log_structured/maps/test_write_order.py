"""The order in which the nodes of a checkpoint are written."""

from contextlib import closing
from pathlib import Path

import pytest

from refmodel import LogStructuredDisk
from refmodel.core.errors import DataLost
from refmodel.log_structured.geometry import plan
from refmodel.log_structured.maps.node import MapKind, Node
from refmodel.log_structured.maps.page_store import PageStore

Birth = tuple[MapKind, int, list[int], list[int]]
LEAF: Birth = (MapKind.LOGICAL, 0, [1], [1])
INNER: Birth = (MapKind.LOGICAL, 1, [1], [1])
VIEWS: Birth = (MapKind.VIEWS, 0, [], [])


@pytest.fixture
def pages(tmp_path: Path) -> PageStore:
    LogStructuredDisk.create(tmp_path / "disk", plan(64), sync=False)
    with closing(LogStructuredDisk.open(tmp_path / "disk", sync=False)) as disk:
        disk.checkpoint()
        return disk.state.pages


def written(pages: PageStore, most: int, patch: pytest.MonkeyPatch) -> list[int]:
    """Write frozen nodes; return their pages in the order of writing."""
    order: list[int] = []
    patch.setattr(pages, "_write", lambda stored: order.extend(page for page, _ in stored))
    pages.write_frozen(most)
    return order


def born(pages: PageStore, *what: Birth) -> list[Node]:
    pages.clock.advance(1)
    return [pages.new(*one) for one in what]


def test_each_node_is_written_behind_what_it_refers_to(
    pages: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    views, inner, first, second = born(pages, VIEWS, INNER, LEAF, LEAF)
    pages.freeze()
    in_order = [first.page, second.page, inner.page, views.page]
    assert written(pages, 1, monkeypatch) == in_order[:1]
    assert written(pages, 9, monkeypatch) == in_order[1:] and not pages.frozen_count


def test_a_page_that_was_freed_has_the_turn_of_its_last_node(
    pages: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed, leaf = born(pages, LEAF, LEAF)
    pages.free(freed)
    (inner,) = born(pages, INNER)
    assert inner.page == freed.page
    pages.freeze()
    assert written(pages, 9, monkeypatch) == [leaf.page, inner.page]


def test_nodes_that_could_not_be_written_keep_their_turn(
    pages: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, leaf = born(pages, INNER, LEAF)
    pages.freeze()

    def refuse(stored: object) -> None:
        raise DataLost("no device is left")

    monkeypatch.setattr(pages, "_write", refuse)
    with pytest.raises(DataLost):
        pages.write_frozen(2)
    assert pages.frozen_count == 2
    assert written(pages, 2, monkeypatch) == [leaf.page, inner.page]
