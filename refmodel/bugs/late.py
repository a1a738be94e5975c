"""Bugs of updates that come too late, or land where something newer is."""

from collections.abc import Iterable, Sequence

from refmodel.bugs.registry import bug
from refmodel.disk import LogStructuredDisk
from refmodel.log import Kind, Record
from refmodel.streams import Stream


@bug(10, "the rule itself: a move lands only where nothing is newer", "a chunk that was moved takes the place of a newer write")
def move_overwrites_newer(disk: LogStructuredDisk) -> None:
    state, chunks = disk.state, disk.state.chunks
    move, drop, destage = chunks.move, chunks.drop, chunks._destage
    blocks: dict[int, int] = {}  # of the chunks that are moving

    def move_and_remember(mba: int) -> bool:
        blocks.update((mba, lba) for lba, held in state.views.live.map.items() if held == mba)
        return move(mba)

    def drop_unless_moving(mbas: list[int]) -> None:
        drop([mba for mba in mbas if mba not in chunks.moving])

    def destage_and_land(*groups: Iterable[tuple[int, int]], stream: int = Stream.LONG) -> list[int]:
        mbas = destage(*groups, stream=stream)
        live = state.views.live.map
        for mba in mbas:
            lba = blocks.pop(mba, None)
            if lba is not None and live.get(lba) not in (None, mba):
                live.replace([lba], [mba])
        return mbas

    chunks.move, chunks.drop, chunks._destage = move_and_remember, drop_unless_moving, destage_and_land


@bug(15, "btrfs 0568e82dbe25", "an unmap is put off, and carried out on a map that a revert has retired")
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

    def apply_late(*records: Record) -> None:
        if records[0].kind is not Kind.REVERT:
            catch_up()
        apply(*records)

    def read_all(lba: int, count: int = 1, view: str | None = None) -> bytes:
        catch_up()
        return read(lba, count, view)

    state._unmap, state.apply, disk.read = put_off, apply_late, read_all


@bug(16, "OpenZFS 4996", "what is written into a hole is taken for newer than it is")
def birth_wrong_on_holes(disk: LogStructuredDisk) -> None:
    chunks, views = disk.state.chunks, disk.state.views
    add, owns_alone, into_holes = chunks.add, views.owns_alone, set()

    def add_and_note(mbas: Sequence[int], data: Iterable[bytes], replaced: Sequence[int | None]) -> None:
        into_holes.update(mba for mba, before in zip(mbas, replaced) if before is None)
        add(mbas, data, replaced)

    chunks.add = add_and_note
    views.owns_alone = lambda lba, mba: mba in into_holes or owns_alone(lba, mba)


@bug(32, "ceph PR 46890, 60753", "replay writes over the place that the block had, which may be given out again", layout="mirror")
def replay_writes_over(disk: LogStructuredDisk) -> None:
    state = disk.state
    recover, size = state.log.recover, disk.geometry.block_bytes

    def recover_in_place(tail: int, sequence: int, generation: int):
        for record in recover(tail, sequence, generation):
            for at in range(record.count if record.kind is Kind.WRITE else 0):
                place = state.chunks.middle.get(state.views.live.map.get(record.lba + at) or 0)
                if place is not None:
                    state.capacity.write(state.chunks.offset(place[0]), record.data[at * size :][:size], "recovery")
            yield record

    state.log.recover = recover_in_place
