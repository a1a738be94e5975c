"""Bugs of snapshots, deletion and the nodes that views share."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from refmodel.bugs.registry import after, bug
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.node import Node
from refmodel.log_structured.views import State as ViewState
from refmodel.log_structured.views import View


@bug(
    6,
    "fjall lsm-tree 321",
    "the last chunk written before a snapshot does not count as the snapshot's",
)
def birth_test_off_by_one(disk: LogStructuredDisk) -> None:
    views = disk.state.views

    def owns_alone(lba: int, mba: int) -> bool:
        parent = views.by_id.get(views.live.parent)
        return parent is None or mba + 1 >= parent.taken

    views.owns_alone = owns_alone


@bug(11, "dm-thin f046f89a99cc", "what live overwrites is dropped though a snapshot holds it")
def overwrite_drops_shared(disk: LogStructuredDisk) -> None:
    disk.state.views.owns_alone = lambda lba, mba: True


@bug(
    12,
    "dm-thin 2a0fbffb1e50; cloud-hypervisor 8624",
    "a discard is carried out late, on a block given out again",
)
def late_discard(disk: LogStructuredDisk) -> None:
    state = disk.state
    unmap, apply, late = state._unmap, state.apply, []

    def unmap_twice(lba: int, count: int) -> None:
        unmap(lba, count)
        late.append((lba, count))

    def apply_then_discard(record: Record) -> None:
        apply(record)
        if record.kind is RecordKind.WRITE and late:
            unmap(*late.pop())

    state._unmap, state.apply = unmap_twice, apply_then_discard


@bug(13, "dm-thin 19fa1a6756ed", "a node once shared is taken for shared for ever, and not freed")
def shared_flag_stale(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    release = views._release_of_live

    def release_what_never_was_shared(node: Node) -> None:
        if views.next_id <= 2:
            release(node)

    views._release_of_live = release_what_never_was_shared


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

    views.store = store_without_cursor


@bug(
    15,
    "btrfs 0568e82dbe25",
    "an unmap is put off, and carried out on a map that a revert has retired",
)
def deferred_on_deleted_tree(disk: LogStructuredDisk) -> None:
    state, read = disk.state, disk.read
    apply, late = state.apply, []

    def put_off(lba: int, count: int) -> None:
        late.append((state.views.live.map, lba, count))

    def catch_up() -> None:
        for live, lba, count in late:
            for mapped in [at for at, _ in live.items(lba, lba + count)]:
                state._drop([mapped], [live.remove(mapped)])
        late.clear()

    def apply_late(record: Record) -> None:
        if record.kind is not RecordKind.REVERT:
            catch_up()
        apply(record)

    def read_all(lba: int, count: int = 1, view: str | None = None) -> bytes:
        catch_up()
        return read(lba, count, view)

    state._unmap, state.apply, disk.read = put_off, apply_late, read_all


@bug(16, "OpenZFS 4996", "what is written into a hole is taken for newer than it is")
def birth_wrong_on_holes(disk: LogStructuredDisk) -> None:
    chunks, views = disk.state.chunks, disk.state.views
    add, owns_alone, into_holes = chunks.add, views.owns_alone, set()

    def add_and_note(
        mbas: Sequence[int], data: Iterable[bytes], replaced: Sequence[int | None]
    ) -> None:
        into_holes.update(mba for mba, before in zip(mbas, replaced) if before is None)
        add(mbas, data, replaced)

    chunks.add = add_and_note
    views.owns_alone = lambda lba, mba: mba in into_holes or owns_alone(lba, mba)


@bug(17, "longhorn-engine 108", "deleting a snapshot folds its data into the older one")
def delete_folds_into_parent(disk: LogStructuredDisk) -> None:
    views = disk.state.views

    def fold(view: View, name: str) -> None:
        if (parent := views.by_id.get(view.parent)) is not None:
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

    views.remove = remove_and_cut_off


@bug(
    20,
    "SPDK 3431",
    "after a crash what a deleted snapshot holds is given out while it is still being freed",
)
def deleted_view_unmarked(disk: LogStructuredDisk) -> None:
    state = disk.state
    mark = state._mark
    deleted = ViewState.DELETED

    def mark_named(tree, page: int, low: int, end: int) -> None:
        if all(
            view.map is not tree or view.state is not deleted for view in state.views.by_id.values()
        ):
            mark(tree, page, low, end)

    state._mark = mark_named


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


@bug(22, "ceph PR 52109", "a snapshot records the map as it was before the last write")
def snapshot_of_earlier_map(disk: LogStructuredDisk) -> None:
    state = disk.state
    apply, roots = state.apply, [0]

    def apply_and_remember(record: Record) -> None:
        if record.kind is RecordKind.WRITE:
            roots[0] = state.views.live.map.root
        apply(record)
        if record.kind is RecordKind.SNAPSHOT and roots[0]:
            state.views.names[record.name].map.root = roots[0]

    state.apply = apply_and_remember


@bug(23, "dattobd 129", "an unmap changes the leaf that a snapshot shares")
def unmap_in_shared_leaf(disk: LogStructuredDisk) -> None:
    state = disk.state

    def unmap(lba: int, count: int) -> None:
        live = state.views.live.map
        for mapped in [at for at, _ in live.items(lba, lba + count)]:
            leaf = live.leaf(mapped)
            if len(leaf.keys) == 1:
                live.remove(mapped)
                continue
            at = leaf.keys.index(mapped)
            del leaf.keys[at], leaf.values[at]

    state._unmap = unmap


@bug(24, "bcachefs 629", "a snapshot is taken in the middle of one write")
def snapshot_splits_write(disk: LogStructuredDisk) -> None:
    state, read = disk.state, disk.read
    apply, size, late = state.apply, disk.geometry.block_bytes, []

    def catch_up() -> None:
        while late:
            apply(late.pop())

    def apply_late(record: Record) -> None:
        if record.kind is not RecordKind.SNAPSHOT:
            catch_up()
        if record.kind is RecordKind.WRITE and record.count > 1:
            last, lba = record.data[-size:], record.lba + record.count - 1
            record = replace(record, count=record.count - 1, data=record.data[:-size])
            late.append(Record(RecordKind.WRITE, lba, 1, data=last))
        apply(record)
        if record.kind is RecordKind.SNAPSHOT:
            catch_up()

    def read_all(lba: int, count: int = 1, view: str | None = None) -> bytes:
        catch_up()
        return read(lba, count, view)

    state.apply, disk.read = apply_late, read_all


@bug(25, "paimon-cpp 298; OpenZFS 10931", "a cache of live blocks outlives a revert")
def cache_outlives_revert(disk: LogStructuredDisk) -> None:
    read, write, unmap = disk.read, disk.write, disk.unmap
    size, cache = disk.geometry.block_bytes, {}

    def cached_read(lba: int, count: int = 1, view: str | None = None) -> bytes:
        data = read(lba, count, view)
        if view is not None:
            return data
        return b"".join(
            cache.setdefault(lba + at, data[at * size : (at + 1) * size]) for at in range(count)
        )

    def forget(lba: int, count: int) -> None:
        for at in range(lba, min(lba + count, disk.geometry.blocks)):
            cache.pop(at, None)

    def write_and_forget(lba: int, data: bytes) -> None:
        write(lba, data)
        forget(lba, len(data) // size)

    def unmap_and_forget(lba: int, count: int) -> None:
        unmap(lba, count)
        forget(lba, count)

    disk.read, disk.write, disk.unmap = cached_read, write_and_forget, unmap_and_forget


@bug(
    26,
    "the ownership rule compared with the wrong snapshot",
    "a node is changed in place though a newer snapshot shares it",
)
def shared_node_changed_in_place(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    snapshot = views.snapshot

    def snapshot_without_freeze(name: str) -> View:
        frozen = views.live.map.frozen
        view = snapshot(name)
        views.live.map.frozen = frozen
        return view

    views.snapshot = snapshot_without_freeze


@bug(
    27,
    "the neighbour test on a chain that a revert made a tree",
    "siblings are not asked whether they hold something",
)
def siblings_not_asked(disk: LogStructuredDisk) -> None:
    views = disk.state.views

    def held_elsewhere(view: View, born: int, key: int, holds) -> bool:
        parent = views.by_id.get(view.parent)
        if parent is not None and key < parent.cursor:
            parent = views.by_id.get(parent.parent)
        return parent is not None and born <= parent.taken

    views.held_elsewhere = held_elsewhere
