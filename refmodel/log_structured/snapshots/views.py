"""The views of the disk: live and the snapshots; each has a logical map, and a parent.

Views form a tree: the parent of a snapshot is the newest snapshot that live came from when it was
taken. A deleted view stays, without a name, until reclaim has freed what only it held; then its
children become children of its parent.

Who else holds a node or a chunk of a view? All views that hold it are connected by inheritance, so
it is enough to ask the neighbours. The parent: by birth, since what was there when the parent was
taken, and still is in the view, the parent holds, too. The children: by a look at the same key. The
siblings: by a look, too, but only for what was born before `fork`, the time when the newest view
was taken that has since been removed between them.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from refmodel.core.errors import NoSuchSnapshot, SnapshotExists
from refmodel.log_structured.maps.cow_btree import Tree
from refmodel.log_structured.maps.logical_map import LiveMap, LogicalMap
from refmodel.log_structured.maps.merge_queue import MergeQueue
from refmodel.log_structured.maps.node import ROOT, MapKind, Node
from refmodel.log_structured.maps.page_store import PageStore

MERGED_AT_ONCE = 1 << 16  # changes, where all that wait are merged


class ViewState(IntEnum):
    """The state of a view; the number is stored."""

    LIVE = 0
    SNAPSHOT = 1
    DELETED = 2


StoredView = tuple[int, ...]  # a view's fields, but its id: eight of its name, then the others
NAME = struct.Struct("<8Q")


@dataclass(slots=True, eq=False)
class View:
    """A view: live, a snapshot, or a deleted view that waits for reclaim. Times are the disk's."""

    id: int
    name: str  # empty unless it is a snapshot
    map: LogicalMap
    parent: int  # the id of a view; 0: none
    taken: int  # when it stopped changing
    fork: int  # when the newest removed view between it and its parent was taken; 0: none
    cursor: int  # progress of its reclaim: it holds nothing below this LBA
    state: ViewState


class Views:
    """The views of one disk."""

    def __init__(self, pages: PageStore, fanout: int) -> None:
        self._pages = pages
        self._fanout = fanout
        self.table: Tree[StoredView] = Tree(pages, MapKind.VIEWS)
        self.by_id: dict[int, View] = {}
        self.names: dict[str, View] = {}
        self.deleted: list[View] = []  # waiting for reclaim; the first is being reclaimed
        self._changed: set[int] = set()
        self.have_changed = False  # since the table was stored, other than by writes to live
        self.frozen_maps = MergeQueue()
        self._next_id = 1
        self.live_map = self._new_live_map(self._next_id, 0)
        self.live = self._add("", self.live_map, 0, ViewState.LIVE)

    def snapshot(self, name: str) -> View:
        """Take a snapshot: what waits to be merged is frozen with it; no node changes.

        Raises SnapshotExists.
        """
        if name in self.names:
            raise SnapshotExists(f"a snapshot named {name!r} exists")
        live = self.live
        shared = self._snapshot_map(self._next_id, 0)
        view = self._add(name, shared, live.parent, ViewState.SNAPSHOT, fork=live.fork)
        view.taken = self._pages.clock.tick()
        self.live_map.freeze_into(shared, view.taken)
        self.frozen_maps.add(shared)
        self.names[name] = view
        live.parent, live.fork = view.id, 0
        self.touch(live)
        return view

    def delete(self, name: str) -> View:
        """Delete a snapshot: it loses its name and waits for reclaim. Raises NoSuchSnapshot."""
        view = self.named(name)
        del self.names[name]
        view.name = ""
        self._retire(view)
        return view

    def revert(self, name: str) -> View:
        """Make a new live view, a child of the snapshot. The old one waits for reclaim.

        Returns the old one. Raises NoSuchSnapshot.
        """
        snapshot = self.named(name)
        old = self.live
        old.taken = old.map.born = self._pages.clock.tick()
        self._retire(old)
        self.live_map.remembers = False
        self.frozen_maps.add(old.map)
        self.live_map = self._new_live_map(self._next_id, 0)
        self.live_map.frozen = old.taken
        self.live_map.start_from(snapshot.map)
        self.live = self._add("", self.live_map, snapshot.id, ViewState.LIVE)
        return old

    def named(self, name: str) -> View:
        """Return the snapshot of this name. Raises NoSuchSnapshot."""
        if (view := self.names.get(name)) is None:
            raise NoSuchSnapshot(f"there is no snapshot named {name!r}")
        return view

    def held_elsewhere(
        self, view: View, born: int, key: int, holds: Callable[[View], bool]
    ) -> bool:
        """Return whether the parent or a sibling of the view holds what the view holds at the key.

        `born` is when that was born, `holds` looks into a view. A neighbour whose reclaim has
        passed the key counts as removed. Raises DataLost.
        """
        parent, fork, above = self.by_id.get(view.parent), view.fork, None
        if parent is not None and key < parent.cursor:
            fork, above = max(fork, parent.taken), parent
            parent = self.by_id.get(parent.parent)
        if parent is not None and born <= parent.taken:
            return True
        if born > fork:
            return False
        siblings = self.children(view.parent, but=view)
        if above is not None:
            siblings += self.children(above.parent, but=above)
        return any(
            holds(sibling) if key >= sibling.cursor else self.held_below(sibling, holds)
            for sibling in siblings
        )

    def held_below(self, view: View, holds: Callable[[View], bool]) -> bool:
        """Return whether a child of the view holds something of it. Raises DataLost."""
        return any(holds(child) for child in self.children(view.id))

    def live_alone(self) -> bool:
        """True if live shares nothing, since it came from no snapshot."""
        return not self.live.parent and not self.live.fork

    def owns_alone(self, lba: int, mba: int) -> bool:
        """Return whether only live holds a chunk that it maps, or mapped, at the LBA.

        Raises DataLost.
        """
        if self.live_alone():
            return True
        return not self.held_elsewhere(self.live, mba, lba, lambda view: view.map.get(lba) == mba)

    def merge(self, most: int, *, whole: bool = False) -> bool:
        """Merge at most `most` changes that wait; see MergeQueue. Raises NoSpace, DataLost."""
        return self.frozen_maps.merge(most, self.live_map, whole=whole)

    def merge_all(self) -> None:
        """Merge all changes that wait. Raises NoSpace, DataLost."""
        while not self.merge(MERGED_AT_ONCE, whole=True):
            pass

    def waiting_count(self) -> int:
        """Number of changes that wait in all maps together."""
        return sum(self.waiting_changes()) if self.frozen_maps else len(self.live_map.recent)

    def waiting_changes(self) -> list[int]:
        """Return how many changes wait in each map, live the last."""
        return [len(map.recent) for map in (*self.frozen_maps, self.live_map)]

    def children(self, parent: int, *, but: View | None = None) -> list[View]:
        """Return the views whose parent has this id, without the view `but`."""
        return [view for view in self.by_id.values() if view.parent == parent and view is not but]

    def remove(self, view: View) -> None:
        """Remove a view that is reclaimed: its children become children of its parent."""
        for child in self.children(view.id):
            child.parent = view.parent
            child.fork = max(child.fork, view.taken)
            self.touch(child)
        del self.by_id[view.id]
        self.deleted.remove(view)
        self._changed.discard(view.id)
        self.have_changed = True
        self.table.remove(view.id)

    def touch(self, view: View) -> None:
        """Note that the view has to be stored again."""
        self._changed.add(view.id)
        self.have_changed = True

    def store(self) -> None:
        """Bring the stored table up to date. Raises NoSpace, DataLost."""
        self.merge_all()
        self._changed.add(self.live.id)
        for id in sorted(self._changed):
            self.table.put(id, _stored(self.by_id[id]))
        self._changed.clear()
        self.have_changed = False

    def stored_otherwise(self) -> list[int]:
        """Return the views of which the stored table says something else than memory, though they
        need not be stored again; of live all but its root. Raises DataLost.
        """
        stored = dict(self.table.items())
        known = {id: _stored(view) for id, view in self.by_id.items()}
        for maps in (stored, known):  # what live writes is not stored before the next checkpoint
            if (live := maps.get(self.live.id)) is not None:
                maps[self.live.id] = (*live[:ROOT], *live[ROOT + 1 :])
        return sorted(
            id
            for id in (stored.keys() | known.keys()) - self._changed
            if stored.get(id) != known.get(id)
        )

    def load(self, root: int, next_id: int) -> None:
        """Read the table that a checkpoint refers to, when the disk is opened. Raises DataLost."""
        self.table.root = root
        self.by_id.clear()
        self._changed.clear()
        self.have_changed = False
        self._next_id = next_id
        for id, stored in self.table.items():
            name = NAME.pack(*stored[:8])
            map_root, parent, taken, fork, cursor, state = stored[8:]
            is_live = state == ViewState.LIVE
            view = View(
                id,
                name.rstrip(b"\0").decode(),
                self._new_live_map(id, map_root) if is_live else self._snapshot_map(id, map_root),
                parent,
                taken,
                fork,
                cursor,
                ViewState(state),
            )
            self.by_id[id] = view
            if isinstance(view.map, LiveMap):
                self.live, self.live_map = view, view.map
            elif view.state is ViewState.SNAPSHOT:
                self.names[view.name] = view
            else:
                self.deleted.append(view)
        self.deleted.sort(key=lambda view: view.cursor == 0)

    @property
    def next_id(self) -> int:
        """The id of the next view."""
        return self._next_id

    def in_order(self) -> Iterator[View]:
        """Yield the snapshots, the oldest first."""
        yield from sorted(self.names.values(), key=lambda view: view.taken)

    def _retire(self, view: View) -> None:
        """Let the view wait for reclaim."""
        view.state = ViewState.DELETED
        self.deleted.append(view)
        self.touch(view)

    def _add(
        self, name: str, map: LogicalMap, parent: int, state: ViewState, *, fork: int = 0
    ) -> View:
        view = View(self._next_id, name, map, parent, 0, fork, 0, state)
        self._next_id += 1
        self.by_id[view.id] = view
        self.touch(view)
        return view

    def _snapshot_map(self, id: int, root: int) -> LogicalMap:
        return LogicalMap(
            self._pages,
            MapKind.LOGICAL,
            root,
            fanout=self._fanout,
            release=lambda node: self.release_node(id, node),
        )

    def _new_live_map(self, id: int, root: int) -> LiveMap:
        return LiveMap(
            self._pages,
            MapKind.LOGICAL,
            root,
            fanout=self._fanout,
            release=lambda node: self.release_node(id, node),
        )

    def release_node(self, id: int, node: Node) -> None:
        """Free a node that the view gives up, unless another view holds it. Raises DataLost."""
        key = node.keys[0] if node.keys else 0
        view = self.by_id[id]

        def holds(other: View) -> bool:
            return other.map.contains(node.page, node.level, key)

        if not self.held_elsewhere(view, node.born, key, holds):
            self._pages.free(node)


def _stored(view: View) -> StoredView:
    """Return what the table says of a view."""
    return (
        *NAME.unpack(view.name.encode().ljust(NAME.size, b"\0")),
        view.map.root,
        view.parent,
        view.taken,
        view.fork,
        view.cursor,
        view.state,
    )
