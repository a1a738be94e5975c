"""The trees against dictionaries, and which nodes copy-on-write may change."""

from typing import cast

import hypothesis
import pytest
from hypothesis import strategies as st

from refmodel.array.leg import Leg
from refmodel.core.clock import Clock
from refmodel.core.errors import DataLost
from refmodel.log_structured.geometry import plan
from refmodel.log_structured.maps import cached_tree
from refmodel.log_structured.maps.cached_tree import CachedTree
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.logical_map import LiveMap
from refmodel.log_structured.maps.node import MapKind, checksum_of, decode, encode, is_node
from refmodel.log_structured.maps.page_store import PageStore
from refmodel.log_structured.maps.pointers import Checksums

KEYS = st.integers(0, 60)


def new_pages() -> PageStore:
    no_leg = cast(Leg, None)  # every node stays in memory
    return PageStore(no_leg, plan(64, pages=20000), Clock())


def new_tree() -> Tree[int]:
    return Tree(new_pages(), MapKind.LOGICAL, fanout=3)


@hypothesis.given(st.lists(st.tuples(KEYS, st.booleans())))
def test_is_a_map(steps: list[tuple[int, bool]]) -> None:
    tree = new_tree()
    model: dict[int, int] = {}
    for number, (key, put) in enumerate(steps):
        if put:
            assert tree.put(key, number) == model.get(key)
            model[key] = number
        else:
            assert tree.remove(key) == model.pop(key, None)
    assert list(tree.items()) == sorted(model.items())
    assert list(tree.items(10, 30)) == [
        item for item in sorted(model.items()) if 10 <= item[0] < 30
    ]
    assert all(tree.get(key) == model.get(key) for key in range(61))
    if not model:
        assert tree.root == 0 and not tree.pages.in_use


@hypothesis.given(
    st.lists(st.tuples(st.lists(KEYS, unique=True), st.booleans())), st.integers(1, 80)
)
def test_a_tree_that_remembers_entries_is_a_map(
    steps: list[tuple[list[int], bool]], most: int
) -> None:
    tree = CachedTree[int](new_pages(), MapKind.LOGICAL, fanout=3)
    model: dict[int, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_tree, "MOST_KNOWN", most)
        for number, (keys, put) in enumerate(steps):
            if put:
                tree.put_many(sorted(keys), [number] * len(keys))
                model.update(dict.fromkeys(keys, number))
            else:
                tree.remove_many(sorted(model.keys() & {*keys}))
                model = {key: value for key, value in model.items() if key not in keys}
            assert tree.get_many(keys) == [*map(model.get, keys)]
            assert len(tree._known) <= most
    assert tree.get_many(range(61)) == [*map(model.get, range(61))]


def test_a_large_tree_remembers_no_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_tree, "MOST_KNOWN", 6)
    tree = CachedTree[int](new_pages(), MapKind.LOGICAL, fanout=3)
    for key in range(60):
        tree.put(key, key)
        assert tree.get_many([key]) == [key]
        if key == 2:
            assert tree._known
    assert not tree._known


@hypothesis.given(st.lists(st.tuples(KEYS, st.sampled_from(["replace", "remove", "merge"]))))
def test_a_live_map_is_a_map_whether_or_not_it_is_merged(steps: list[tuple[int, str]]) -> None:
    live = LiveMap(new_pages(), MapKind.LOGICAL, fanout=3)
    model: dict[int, int] = {}
    for number, (key, step) in enumerate(steps):
        if step == "replace":
            assert live.replace([key], [number]) == [model.get(key)]
            model[key] = number
        elif step == "remove":
            assert live.replace([key], [None]) == [model.pop(key, None)]
        else:
            while live.recent:
                live.merge(len(live.recent))
        recent = dict(live.recent)
        assert list(live.items()) == sorted(model.items())
        assert list(live.items(10, 30)) == [
            item for item in sorted(model.items()) if 10 <= item[0] < 30
        ]
        assert live.recent == recent  # a question changes nothing
    assert live.get_many(range(61)) == [model.get(key) for key in range(61)]


@hypothesis.given(st.lists(KEYS, min_size=1), st.lists(st.tuples(KEYS, st.booleans())))
def test_a_frozen_tree_never_changes(before: list[int], after: list[tuple[int, bool]]) -> None:
    tree = new_tree()
    for key in before:
        tree.put(key, key)
    snapshot: Tree[int] = Tree(tree.pages, MapKind.LOGICAL, tree.root, fanout=3)
    pages_before = set(tree.pages.in_use)
    tree.frozen = tree.pages.clock.tick()
    tree.release = lambda node: None
    for key, put in after:
        if put:
            tree.put(key, 1000)
        else:
            tree.remove(key)
    assert list(snapshot.items()) == [(key, key) for key in sorted(set(before))]
    assert pages_before <= tree.pages.in_use.keys()


def test_an_update_copies_the_path_once() -> None:
    tree = new_tree()
    for key in range(50):
        tree.put(key, key)
    height = tree.height()
    tree.frozen = tree.pages.clock.tick()
    tree.release = lambda node: None
    created = tree.pages.created
    tree.put(7, 1)
    assert tree.pages.created == created + height
    tree.put(7, 2)
    assert tree.pages.created == created + height


def test_growing_at_the_right_end_fills_leaves() -> None:
    tree = new_tree()
    for key in range(300):
        tree.put(key, key)
    assert tree.pages.created <= 300 / 3 * 1.6


def test_a_node_knows_its_page_and_a_flipped_bit() -> None:
    tree = new_tree()
    tree.put(1, 2)
    node = tree.pages.get(tree.root, MapKind.LOGICAL)
    data = encode(node, Checksums())
    checksum = checksum_of(data)
    again, pointers = decode(data)
    assert not pointers
    assert ([*again.keys], [*again.values], again.born) == ([1], [2], node.born)
    assert is_node(node.page, MapKind.LOGICAL, data, checksum)
    assert not is_node(node.page + 1, MapKind.LOGICAL, data, checksum)
    assert not is_node(node.page, MapKind.MIDDLE, data, checksum)
    assert not is_node(node.page, MapKind.LOGICAL, data, checksum ^ 1)
    for at in (0, 5, 9, 30, 40, 4095):
        flipped = bytearray(data)
        flipped[at] ^= 1
        assert not is_node(node.page, MapKind.LOGICAL, bytes(flipped), checksum_of(bytes(flipped)))


def test_an_inner_node_says_which_nodes_it_means() -> None:
    tree = new_tree()
    for key in range(2000):
        tree.put(key, key)
    node = tree.pages.get(tree.root, MapKind.LOGICAL)
    assert node.level and len(node.values) > 1
    checksums, learned = Checksums(), Checksums()
    for at, page in enumerate(node.values):
        checksums.written(page, 0xFFFFFFFF - at)
    again, pointers = decode(encode(node, checksums))
    assert [*again.values] == [*node.values]
    learned.learn(pointers)
    for at, page in enumerate(node.values):
        assert learned.expected(page) == checksums.expected(page) == 0xFFFFFFFF - at


@hypothesis.settings(derandomize=True, deadline=None)
@hypothesis.given(
    st.sets(KEYS, min_size=1), st.sets(KEYS, min_size=1), st.lists(KEYS), st.sampled_from([3, 40])
)
def test_many_keys_at_once_in_rows_of_two_columns(
    put: set[int], removed: set[int], wanted: list[int], fanout: int
) -> None:
    tree: Tree[tuple[int, int]] = Tree(new_pages(), MapKind.MIDDLE, fanout=fanout)
    model = {key: (2 * key, 3 * key) for key in sorted(put)}
    tree.put_many([*model], [*model.values()])
    if there := sorted(removed & put):
        assert tree.remove_many(there) == [model.pop(key) for key in there]
    assert list(tree.items()) == [*model.items()]
    if model and (missing := sorted(removed - put)):
        with pytest.raises(DataLost):
            tree.remove_many(missing)
    assert tree.get_many(wanted) == [model.get(key) for key in wanted]
    assert tree.get_many(range(61)) == [model.get(key) for key in range(61)]


def test_keys_of_which_one_is_missing_are_not_taken_for_neighbours() -> None:
    tree = new_tree()
    tree.put_many([1, 3, 4], [10, 30, 40])
    with pytest.raises(DataLost, match="lacks key 2"):
        tree.remove_many([1, 2, 4])
    assert tree.get(3) == 30
