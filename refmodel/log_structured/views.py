"""The views of the disk: live and snapshots, each a logical map, and which came from which.

Views form a tree: a snapshot's parent is the newest snapshot that live came from when it was taken. A view that is deleted
stays, nameless, until `reclaim` has freed what only it held; then its children become its parent's.

Who else holds a node or a chunk of a view? All the views that hold it are connected by inheritance. So it is enough to ask the view's
neighbours: the parent, by birth (what was there when the parent was taken, and is still here, the parent holds too);
the children, by a look at the same key; and the siblings by a look as well, but only for what was born before `fork`,
when the last view that has since been removed between them was taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from refmodel.core.errors import NoSuchSnapshot, SnapshotExists
from refmodel.log_structured.maps.cached_tree import LiveMap
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.node import Kind, Node
from refmodel.log_structured.maps.page_store import Pages


class State(IntEnum):
    LIVE = 0
    SNAPSHOT = 1
    DELETED = 2


@dataclass(slots=True, eq=False)
class View:
    id: int
    name: str  # empty unless a snapshot
    map: Tree  # LBA -> MBA
    parent: int  # a view's id; 0: none
    taken: int  # when it stopped changing
    fork: int  # when the newest removed view between it and its parent was taken; 0: none
    cursor: int  # of its reclaim: nothing below this LBA is its own any more
    state: State


class Views:
    def __init__(self, pages: Pages, fanout: int) -> None:
        self._pages = pages
        self._fanout = fanout
        self.table = Tree(pages, Kind.VIEWS)
        self.by_id: dict[int, View] = {}
        self.names: dict[str, View] = {}
        self.deleted: list[View] = []  # waiting for reclaim; the first is being reclaimed
        self._changed: set[int] = set()
        self._next_id = 1
        self.live = self._add("", 0, 0, State.LIVE)

    def snapshot(self, name: str) -> View:
        """Live's map gets a second root; no node is touched. Raises SnapshotExists."""
        if name in self.names:
            raise SnapshotExists(f"a snapshot named {name!r} exists")
        live = self.live
        live.map.settle()
        view = self._add(name, live.map.root, live.parent, State.SNAPSHOT, fork=live.fork)
        view.taken = live.map.frozen = self._pages.clock.tick()
        self.names[name] = view
        live.parent, live.fork = view.id, 0
        self.touch(live)
        return view

    def delete(self, name: str) -> View:
        """The snapshot loses its name, and waits for reclaim. Raises NoSuchSnapshot."""
        view = self.named(name)
        del self.names[name]
        view.name = ""
        self._retire(view)
        return view

    def revert(self, name: str) -> View:
        """Live becomes the snapshot's child; what live was waits for reclaim. Raises NoSuchSnapshot."""
        snapshot = self.named(name)
        old = self.live
        old.map.settle()
        old.taken = self._pages.clock.tick()
        self._retire(old)
        self.live = self._add("", snapshot.map.root, snapshot.id, State.LIVE)
        self.live.map.frozen = old.taken
        return old

    def named(self, name: str) -> View:
        if (view := self.names.get(name)) is None:
            raise NoSuchSnapshot(f"there is no snapshot named {name!r}")
        return view

    def held_elsewhere(
        self, view: View, born: int, key: int, holds: Callable[[View], bool]
    ) -> bool:
        """Whether the parent or a sibling of the view holds what the view holds at the key.

        Where the reclaim of a neighbour has passed the key, that neighbour is as good as removed.
        """
        parent, fork = self.by_id.get(view.parent), view.fork
        siblings = self.children(view.parent, but=view)
        if parent is not None and key < parent.cursor:
            siblings += self.children(parent.parent, but=parent)
            fork = max(fork, parent.taken)
            parent = self.by_id.get(parent.parent)
        if parent is not None and born <= parent.taken:
            return True
        if born > fork:
            return False
        return any(
            holds(sibling) if key >= sibling.cursor else self.held_below(sibling, holds)
            for sibling in siblings
        )

    def held_below(self, view: View, holds: Callable[[View], bool]) -> bool:
        """Whether a child of the view holds something of it."""
        return any(holds(child) for child in self.children(view.id))

    @property
    def live_alone(self) -> bool:
        """Whether live shares nothing, as it came from no snapshot."""
        return not self.live.parent and not self.live.fork

    def owns_alone(self, lba: int, mba: int) -> bool:
        """Whether no view but live holds the chunk, which was live's at the block."""
        if self.live_alone:
            return True
        return not self.held_elsewhere(self.live, mba, lba, lambda view: view.map.get(lba) == mba)

    def children(self, parent: int, *, but: View | None = None) -> list[View]:
        return [view for view in self.by_id.values() if view.parent == parent and view is not but]

    def remove(self, view: View) -> None:
        """Nothing is the view's own any more: its children become its parent's."""
        for child in self.children(view.id):
            child.parent = view.parent
            child.fork = max(child.fork, view.taken)
            self.touch(child)
        del self.by_id[view.id]
        self.deleted.remove(view)
        self._changed.discard(view.id)
        self.table.remove(view.id)

    def touch(self, view: View) -> None:
        """The view has to be stored again."""
        self._changed.add(view.id)

    def store(self) -> None:
        """Bring the stored table up to date; its nodes are written with all others."""
        self.live.map.settle()
        self._changed.add(self.live.id)
        for id in sorted(self._changed):
            view = self.by_id[id]
            stored = (
                view.name.encode(),
                view.map.root,
                view.parent,
                view.taken,
                view.fork,
                view.cursor,
                view.state,
            )
            self.table.put(id, stored)
        self._changed.clear()

    def load(self, root: int, next_id: int) -> None:
        """Read the table that a checkpoint refers to."""
        self.table.root = root
        self.by_id.clear()
        self.names.clear()
        self.deleted.clear()
        self._changed.clear()
        self._next_id = next_id
        for id, (name, map_root, parent, taken, fork, cursor, state) in self.table.items():
            view = View(
                id,
                name.rstrip(b"\0").decode(),
                self._tree(map_root, State(state)),
                parent,
                taken,
                fork,
                cursor,
                State(state),
            )
            self.by_id[id] = view
            if view.state is State.LIVE:
                self.live = view
            elif view.state is State.SNAPSHOT:
                self.names[view.name] = view
            else:
                self.deleted.append(view)
        self.deleted.sort(key=lambda view: view.cursor == 0)

    @property
    def next_id(self) -> int:
        return self._next_id

    def in_order(self) -> Iterator[View]:
        """Snapshots, oldest first."""
        yield from sorted(self.names.values(), key=lambda view: view.taken)

    def _retire(self, view: View) -> None:
        view.state = State.DELETED
        self.deleted.append(view)
        self.touch(view)

    def _add(self, name: str, root: int, parent: int, state: State, *, fork: int = 0) -> View:
        view = View(self._next_id, name, self._tree(root, state), parent, 0, fork, 0, state)
        self._next_id += 1
        self.by_id[view.id] = view
        self.touch(view)
        return view

    def _tree(self, root: int, state: State) -> Tree:
        if state is State.LIVE:
            return LiveMap(
                self._pages, Kind.LOGICAL, root, fanout=self._fanout, release=self._release_of_live
            )
        return Tree(self._pages, Kind.LOGICAL, root, fanout=self._fanout)

    def _release_of_live(self, node: Node) -> None:
        """Live lets go of a node: it is free unless another view holds it."""
        key = node.keys[0] if node.keys else 0
        if not self.held_elsewhere(self.live, node.born, key, lambda view: view.map.contains(node)):
            self._pages.free(node)
