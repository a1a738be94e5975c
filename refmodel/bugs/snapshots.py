"""Bugs of snapshots, unmaps and the nodes that views share."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from refmodel.bugs.registry import bug, override
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.logical_map import LiveMap
from refmodel.log_structured.snapshots.views import View


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

    override(views, "owns_alone", owns_alone)


@bug(11, "dm-thin f046f89a99cc", "what live overwrites is dropped though a snapshot holds it")
def overwrite_drops_shared(disk: LogStructuredDisk) -> None:
    override(disk.state.views, "owns_alone", lambda lba, mba: True)


@bug(
    12,
    "dm-thin 2a0fbffb1e50; cloud-hypervisor 8624",
    "a discard is carried out late, on a block given out again",
)
def late_discard(disk: LogStructuredDisk) -> None:
    state = disk.state
    unmap, apply = state.unmap, state.apply
    late: list[tuple[int, int]] = []

    def unmap_twice(lba: int, count: int) -> None:
        unmap(lba, count)
        late.append((lba, count))

    def apply_then_discard(record: Record) -> None:
        apply(record)
        if record.kind is RecordKind.WRITE and late:
            unmap(*late.pop())

    override(state, "unmap", unmap_twice)
    override(state, "apply", apply_then_discard)


@bug(
    15,
    "btrfs 0568e82dbe25",
    "an unmap is put off, and carried out on a map that a revert has retired",
)
def deferred_on_deleted_tree(disk: LogStructuredDisk) -> None:
    state, read = disk.state, disk.read
    apply = state.apply
    late: list[tuple[LiveMap, int, int]] = []

    def put_off(lba: int, count: int) -> None:
        late.append((state.views.live_map, lba, count))

    def catch_up() -> None:
        for live, lba, count in late:
            mapped = [at for at, _ in live.items(lba, lba + count)]
            state.drop_from_live(mapped, live.replace(mapped, [None] * len(mapped)))
        late.clear()

    def apply_late(record: Record) -> None:
        if record.kind is not RecordKind.REVERT:
            catch_up()
        apply(record)

    def read_all(lba: int, count: int = 1, view: str | None = None) -> bytes:
        catch_up()
        return read(lba, count, view)

    override(state, "unmap", put_off)
    override(state, "apply", apply_late)
    override(disk, "read", read_all)


@bug(16, "OpenZFS 4996", "what is written into a hole is taken for newer than it is")
def birth_wrong_on_holes(disk: LogStructuredDisk) -> None:
    chunks, views = disk.state.chunks, disk.state.views
    add, owns_alone = chunks.add, views.owns_alone
    into_holes: set[int] = set()

    def add_and_note(mbas: range, data: Iterable[bytes], replaced: Sequence[int | None]) -> None:
        into_holes.update(mba for mba, before in zip(mbas, replaced, strict=True) if before is None)
        add(mbas, data, replaced)

    override(chunks, "add", add_and_note)
    override(views, "owns_alone", lambda lba, mba: mba in into_holes or owns_alone(lba, mba))


@bug(22, "ceph PR 52109", "a snapshot records the map as it was before the last write")
def snapshot_of_earlier_map(disk: LogStructuredDisk) -> None:
    state = disk.state
    apply, roots = state.apply, [0]

    def apply_and_remember(record: Record) -> None:
        if record.kind is RecordKind.WRITE:
            roots[0] = state.views.live.map.root
        apply(record)
        if record.kind is RecordKind.SNAPSHOT and roots[0]:
            state.views.merge_all()
            state.views.names[record.name].map.root = roots[0]

    override(state, "apply", apply_and_remember)


@bug(23, "dattobd 129", "an unmap changes the leaf that a snapshot shares")
def unmap_in_shared_leaf(disk: LogStructuredDisk) -> None:
    state = disk.state

    def unmap(lba: int, count: int) -> None:
        live = state.views.live_map
        state.views.merge_all()
        for mapped in [at for at, _ in live.items(lba, lba + count)]:
            leaf = live.leaf(mapped)
            if len(leaf.keys) == 1:
                live.remove(mapped)
                continue
            at = leaf.keys.index(mapped)
            del leaf.keys[at], leaf.values[at]
        live.remembers = False

    override(state, "unmap", unmap)


@bug(24, "bcachefs 629", "a snapshot is taken in the middle of one write")
def snapshot_splits_write(disk: LogStructuredDisk) -> None:
    state, read = disk.state, disk.read
    apply, size = state.apply, disk.geometry.block_bytes
    late: list[Record] = []

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

    override(state, "apply", apply_late)
    override(disk, "read", read_all)


@bug(25, "paimon-cpp 298; OpenZFS 10931", "a cache of live blocks outlives a revert")
def cache_outlives_revert(disk: LogStructuredDisk) -> None:
    read, write, unmap = disk.read, disk.write, disk.unmap
    size = disk.geometry.block_bytes
    cache: dict[int, bytes] = {}

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

    override(disk, "read", cached_read)
    override(disk, "write", write_and_forget)
    override(disk, "unmap", unmap_and_forget)


@bug(
    26,
    "the ownership rule compared with the wrong snapshot",
    "a node is changed in place though a newer snapshot shares it",
)
def shared_node_changed_in_place(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    snapshot = views.snapshot

    def snapshot_without_freeze(name: str) -> View:
        frozen = views.live_map.frozen
        view = snapshot(name)
        views.live_map.frozen = frozen
        return view

    override(views, "snapshot", snapshot_without_freeze)
