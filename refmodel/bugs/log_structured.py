"""Bugs of the log-structured engine."""

from dataclasses import replace

from refmodel import log as logs
from refmodel.bugs.registry import bug
from refmodel.checksum import crc32c
from refmodel.disk import LogStructuredDisk
from refmodel.leg import State as Standing
from refmodel.log import Kind, Record
from refmodel.node import Node
from refmodel.views import State as ViewState
from refmodel.views import View


# Cleaning and allocation.


@bug(1, "nilfs2 70f2fe3a2624", "a victim is free as soon as its chunks are on the move, before they are written elsewhere")
def victim_freed_early(disk: LogStructuredDisk) -> None:
    cleaner, segments = disk.cleaner, disk.state.segments
    empty = cleaner._empty

    def empty_and_free(segment: int) -> None:
        empty(segment)
        segments._free.append(segment)

    cleaner._empty = empty_and_free


@bug(2, "nilfs2 fbb24a3a915f", "the cleaner moves a cached copy of what was at the address before")
def cleaner_moves_stale_copy(disk: LogStructuredDisk) -> None:
    chunks = disk.state.chunks
    read = chunks.read
    cache: dict[int, bytes] = {}

    def read_cached(mba: int, cause: str = "foreground") -> bytes:
        if cause != "clean":
            return read(mba, cause)
        return cache.setdefault(chunks.middle.get(mba)[0], read(mba, cause))

    chunks.read = read_cached


@bug(3, "nilfs2 143511046765", "a reader uses the address from before the move")
def reader_keeps_old_address(disk: LogStructuredDisk) -> None:
    chunks = disk.state.chunks
    read_many, lookup, known = chunks.read_many, chunks.middle.get_many, {}

    def remembered(mbas: list[int]) -> list[tuple[int, int]]:
        return [known.setdefault(mba, place) for mba, place in zip(mbas, lookup(mbas))]

    def read_where_it_was(mbas: list[int | None], cause: str = "foreground") -> list[bytes]:
        chunks.middle.get_many = remembered if cause == "foreground" else lookup
        try:
            return read_many(mbas, cause)
        finally:
            chunks.middle.get_many = lookup

    chunks.read_many = read_where_it_was


@bug(5, "f2fs 1dc0f8991d4d", "a checkpoint counts before what it refers to is durable")
def checkpoint_before_data(disk: LogStructuredDisk) -> None:
    state = disk.state

    def write_maps() -> None:
        state.segments.store()
        state.views.store()
        state.pages.write_dirty()

    state.write_maps = write_maps


@bug(6, "fjall lsm-tree 321", "the last chunk written before a snapshot does not count as the snapshot's")
def birth_test_off_by_one(disk: LogStructuredDisk) -> None:
    views = disk.state.views

    def owns_alone(lba: int, mba: int) -> bool:
        parent = views.by_id.get(views.live.parent)
        return parent is None or mba + 1 >= parent.taken

    views.owns_alone = owns_alone


@bug(7, "WiredTiger PR 227", "a dead segment is reused before a checkpoint without it is durable")
def dead_segment_reused_early(disk: LogStructuredDisk) -> None:
    segments = disk.state.segments
    drop = segments.drop

    def drop_and_free(pbas: list[int]) -> None:
        drop(pbas)
        segments.checkpointed()

    segments.drop = drop_and_free


@bug(8, "the rule itself: nothing that the durable checkpoint refers to is overwritten", "a freed page is reused at once")
def freed_page_reused_early(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages
    free = pages.free

    def free_now(node: Node) -> None:
        free(node)
        pages._released += pages.pending
        pages.pending.clear()

    pages.free = free_now


# Snapshots and shared nodes.


@bug(11, "dm-thin f046f89a99cc", "what live overwrites is dropped though a snapshot holds it")
def overwrite_drops_shared(disk: LogStructuredDisk) -> None:
    disk.state.views.owns_alone = lambda lba, mba: True


@bug(12, "dm-thin 2a0fbffb1e50; cloud-hypervisor 8624", "a discard is carried out late, on a block given out again")
def late_discard(disk: LogStructuredDisk) -> None:
    state = disk.state
    unmap, apply, late = state._unmap, state.apply, []

    def unmap_twice(lba: int, count: int) -> None:
        unmap(lba, count)
        late.append((lba, count))

    def apply_then_discard(record: Record) -> None:
        apply(record)
        if record.kind is Kind.WRITE and late:
            unmap(*late.pop())

    state._unmap, state.apply = unmap_twice, apply_then_discard


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


@bug(17, "longhorn-engine 108", "deleting a snapshot folds its data into the older one")
def delete_folds_into_parent(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    delete = views.delete

    def delete_and_fold(name: str) -> View:
        view = delete(name)
        if (parent := views.by_id.get(view.parent)) is not None:
            parent.map.root = view.map.root
        return view

    views.delete = delete_and_fold


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


@bug(20, "SPDK 3431", "after a crash what a deleted snapshot holds is given out while it is still being freed")
def deleted_view_unmarked(disk: LogStructuredDisk) -> None:
    state = disk.state
    mark = state._mark
    deleted = ViewState.DELETED

    def mark_named(tree, page: int, low: int, end: int) -> None:
        if all(view.map is not tree or view.state is not deleted for view in state.views.by_id.values()):
            mark(tree, page, low, end)

    state._mark = mark_named


@bug(22, "ceph PR 52109", "a snapshot records the map as it was before the last write")
def snapshot_of_earlier_map(disk: LogStructuredDisk) -> None:
    state = disk.state
    apply, roots = state.apply, [0]

    def apply_and_remember(record: Record) -> None:
        if record.kind is Kind.WRITE:
            roots[0] = state.views.live.map.root
        apply(record)
        if record.kind is Kind.SNAPSHOT and roots[0]:
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


@bug(25, "paimon-cpp 298; OpenZFS 10931", "a cache of live blocks outlives a revert")
def cache_outlives_revert(disk: LogStructuredDisk) -> None:
    read, write, unmap = disk.read, disk.write, disk.unmap
    size, cache = disk.geometry.block_bytes, {}

    def cached_read(lba: int, count: int = 1, view: str | None = None) -> bytes:
        data = read(lba, count, view)
        if view is not None:
            return data
        return b"".join(cache.setdefault(lba + at, data[at * size : (at + 1) * size]) for at in range(count))

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


@bug(26, "the ownership rule compared with the wrong snapshot", "a node is changed in place though a newer snapshot shares it")
def shared_node_changed_in_place(disk: LogStructuredDisk) -> None:
    views = disk.state.views
    snapshot = views.snapshot

    def snapshot_without_freeze(name: str) -> View:
        frozen = views.live.map.frozen
        view = snapshot(name)
        views.live.map.frozen = frozen
        return view

    views.snapshot = snapshot_without_freeze


@bug(27, "the neighbour test on a chain that a revert made a tree", "siblings are not asked whether they hold something")
def siblings_not_asked(disk: LogStructuredDisk) -> None:
    views = disk.state.views

    def held_elsewhere(view: View, born: int, key: int, holds) -> bool:
        parent = views.by_id.get(view.parent)
        if parent is not None and key < parent.cursor:
            parent = views.by_id.get(parent.parent)
        return parent is not None and born <= parent.taken

    views.held_elsewhere = held_elsewhere


# Log, checkpoint, recovery.


@bug(28, "f2fs 1e87a78d95ec, a468f0ef516f", "a torn record is accepted at roll-forward")
def torn_record_accepted(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    find = log._find

    def find_unchecked():
        if (found := find()) is not None:
            return found
        header = log._read(log._leg.active()[0], logs.RECORD_UNIT)
        length = logs.stored_bytes(header)
        if length is None or log.used + length > log._size:
            return None
        raw = log._read(log._leg.active()[0], length)
        fixed = logs.MAGIC + crc32c(raw[logs.COVERED :]).to_bytes(4, "little") + raw[logs.COVERED :]
        record = logs.decode(fixed)
        return (record, raw) if record is not None and log._is_next(record) else None

    log._find = find_unchecked


@bug(29, "cqlite 1390", "the log goes on behind a torn tail instead of over it")
def append_behind_torn_tail(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    recover = log.recover

    def recover_and_skip(tail: int, sequence: int, generation: int):
        yield from recover(tail, sequence, generation)
        if log._read(log._leg.active()[0], logs.RECORD_UNIT).startswith(logs.MAGIC):
            log.head += logs.RECORD_UNIT

    log.recover = recover_and_skip


@bug(30, "Typhon 712", "sequence numbers start again after recovery")
def sequence_starts_again(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    recover = log.recover

    def recover_and_restart(tail: int, sequence: int, generation: int):
        yield from recover(tail, sequence, generation)
        log.sequence = 1

    log.recover = recover_and_restart


@bug(31, "nilfs2 c85399c2da8b", "recovery counts one used segment too few")
def recovery_miscounts_segments(disk: LogStructuredDisk) -> None:
    segments = disk.state.segments
    load = segments.load

    def load_one_short(owners_root: int, table_root: int) -> None:
        load(owners_root, table_root)
        segments._fresh = max(0, segments._fresh - 1)

    segments.load = load_one_short


@bug(33, "littlefs PR 948; Open-CAS 519, 393", "an operation is acknowledged before it is flushed")
def acknowledged_before_flush(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    flush = log.flush
    log.flush = lambda cause="foreground": None if cause == "foreground" else flush(cause)


@bug(34, "the log forgotten before the checkpoint that replaces it is durable", "a checkpoint leaves out the bank")
def log_truncated_early(disk: LogStructuredDisk) -> None:
    disk.state.chunks.destage_all = disk.state.chunks.destage_full


@bug(35, "replay that is not idempotent", "a crash during recovery makes the last record count twice")
def record_replayed_twice(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    recover = log.recover

    def recover_twice(tail: int, sequence: int, generation: int):
        record = None
        for record in recover(tail, sequence, generation):
            yield record
        if record is not None and record.kind is not Kind.OPEN:
            yield record

    log.recover = recover_twice


# Snapshots and devices.


@bug(24, "bcachefs 629", "a snapshot is taken in the middle of one write")
def snapshot_splits_write(disk: LogStructuredDisk) -> None:
    state, read = disk.state, disk.read
    apply, size, late = state.apply, disk.geometry.block_bytes, []

    def catch_up() -> None:
        while late:
            apply(late.pop())

    def apply_late(record: Record) -> None:
        if record.kind is not Kind.SNAPSHOT:
            catch_up()
        if record.kind is Kind.WRITE and record.count > 1:
            last, lba = record.data[-size:], record.lba + record.count - 1
            record = replace(record, count=record.count - 1, data=record.data[:-size])
            late.append(Record(Kind.WRITE, lba, 1, data=last))
        apply(record)
        if record.kind is Kind.SNAPSHOT:
            catch_up()

    def read_all(lba: int, count: int = 1, view: str | None = None) -> bytes:
        catch_up()
        return read(lba, count, view)

    state.apply, disk.read = apply_late, read_all


@bug(36, "the rule itself: acknowledged means on every active mirror", "a record is acknowledged when one mirror has it")
def acknowledged_after_one_mirror(disk: LogStructuredDisk) -> None:
    log, leg = disk.state.log, disk.state.performance
    write, append = leg._write, log.append

    def append_to_one(record: Record) -> None:
        written = []

        def write_first(component, offset: int, data: bytes, cause: str) -> bool:
            if component.member.reachable and component.member not in written[:1]:
                written.append(component.member)
            return component.member in written[:1] and write(component, offset, data, cause)

        leg._write = write_first
        try:
            append(record)
        finally:
            leg._write = write

    log.append = append_to_one


@bug(37, "DRBD 145", "what a device missed is forgotten before it was copied")
def missed_is_forgotten(disk: LogStructuredDisk) -> None:
    disk.resync._births = lambda leg, since: {}


@bug(38, "md 1a855a060665", "a device whose rebuild a power cut interrupted is taken for in sync")
def partly_rebuilt_is_in_sync(disk: LogStructuredDisk) -> None:
    for member in disk.array.in_state(Standing.STALE):
        if member.catches_up == "rebuild":
            member.state = Standing.ACTIVE


@bug(39, "md 8313b8e57f55", "a device that returns is taken for in sync")
def returned_without_resync(disk: LogStructuredDisk) -> None:
    array = disk.array
    return_ = array.return_

    def return_active(device: int):
        for member in array.in_state(Standing.ABSENT):
            member.recorded = member.recorded and member.index != device
        return return_(device)

    array.return_ = return_active


@bug(40, "md 133d4527eab8", "a write that races a rebuild skips its target")
def write_skips_resyncing(disk: LogStructuredDisk) -> None:
    for leg in (disk.state.performance, disk.state.capacity):
        write = leg._write

        def write_elsewhere(component, offset: int, data: bytes, cause: str, write=write) -> bool:
            wanted = component.member.state is not Standing.RESYNCING or cause in ("resync", "rebuild")
            return wanted and write(component, offset, data, cause)

        leg._write = write_elsewhere


@bug(41, "OpenZFS 5806", "a checkpoint clears the record of what an absent device missed")
def missed_is_cleared(disk: LogStructuredDisk) -> None:
    array, keep_progress = disk.array, disk.resync.keep_progress

    def keep_and_clear() -> None:
        keep_progress()
        array.progressed({member.index: array.durable() for member in array.in_state(Standing.ABSENT)})

    disk.state.on_checkpoint = keep_and_clear


@bug(42, "longhorn 7425", "of a good device and one that comes back, the good one is taken for stale")
def good_one_is_thrown_away(disk: LogStructuredDisk) -> None:
    array, resync = disk.array, disk.resync
    return_ = array.return_

    def return_and_swap(device: int):
        member = return_(device)
        if member is not None and member.state is Standing.STALE and (others := array.in_state(Standing.ACTIVE)):
            member.state, others[0].state = Standing.ACTIVE, Standing.STALE
            others[0].since = array.durable()
            resync.begin(others[0])
        return member

    array.return_ = return_and_swap


@bug(43, "longhorn 4513", "a rebuild copies the segments that live holds, and not those of snapshots alone")
def rebuild_without_snapshots(disk: LogStructuredDisk) -> None:
    state, resync = disk.state, disk.resync
    births = resync._births

    def births_of_live(leg, since: int) -> dict[int, int]:
        found = births(leg, since)
        if leg is not state.capacity or since:
            return found
        live = {mba for _, mba in state.views.live.map.items()}
        return {segment: born for segment, born in found.items() if any(mba in live for _, mba in state.segments.living(segment))}

    resync._births = births_of_live


@bug(44, "btrfs 651", "a stripe that is written while a device is gone gets the parity of what was not written there")
def degraded_write_poisons_parity(disk: LogStructuredDisk) -> None:
    leg = disk.state.capacity
    pieces = leg._pieces

    def pieces_of_those_there(data: bytes) -> list[bytes]:
        whole = pieces(data)
        if leg.k > 1 and not all(component.member.reachable for component in leg.components):
            return whole[: leg.k] + pieces(data[: -leg.piece_bytes].ljust(len(data), b"\0"))[leg.k :]
        return whole

    leg._pieces = pieces_of_those_there


@bug(46, "maharmstone btrfs 816", "what is copied to a device is written a stripe too far")
def copied_to_wrong_offset(disk: LogStructuredDisk) -> None:
    for leg in (disk.state.performance, disk.state.capacity):
        write = leg._write

        def write_too_far(component, offset: int, data: bytes, cause: str, write=write, leg=leg) -> bool:
            return write(component, offset + leg.piece_bytes if cause in ("resync", "rebuild") else offset, data, cause)

        leg._write = write_too_far


@bug(47, "the rule itself: a second failure during a rebuild", "a rebuild reads devices that are being rebuilt, its own among them, and believes them")
def half_built_is_read(disk: LogStructuredDisk) -> None:
    for leg in (disk.state.performance, disk.state.capacity):
        leg.readable = lambda component, offset, length: component.member.state in (Standing.ACTIVE, Standing.RESYNCING)
        leg.resync = lambda to, stripe, checks, cause, resync=leg.resync: resync(to, stripe, [], cause)
