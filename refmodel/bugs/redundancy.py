"""Bugs of mirrors, parity and rebuilds."""

from refmodel.array.component import ComponentState
from refmodel.bugs.registry import after, bug
from refmodel.journal.record import Record
from refmodel.log_structured.disk import LogStructuredDisk


@bug(
    36,
    "the rule itself: acknowledged means on every active mirror",
    "a record is acknowledged when one mirror has it",
)
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
    for member in disk.array.in_state(ComponentState.STALE):
        if member.catches_up == "rebuild":
            member.state = ComponentState.ACTIVE


@bug(39, "md 8313b8e57f55", "a device that returns is taken for in sync")
def returned_without_resync(disk: LogStructuredDisk) -> None:
    array = disk.array
    return_ = array.return_

    def return_active(device: int):
        for member in array.in_state(ComponentState.ABSENT):
            member.recorded = member.recorded and member.index != device
        return return_(device)

    array.return_ = return_active


@bug(40, "md 133d4527eab8", "a write that races a rebuild skips its target")
def write_skips_resyncing(disk: LogStructuredDisk) -> None:
    for leg in (disk.state.performance, disk.state.capacity):
        write = leg._write

        def write_elsewhere(component, offset: int, data: bytes, cause: str, write=write) -> bool:
            wanted = component.member.state is not ComponentState.RESYNCING or cause in (
                "resync",
                "rebuild",
            )
            return wanted and write(component, offset, data, cause)

        leg._write = write_elsewhere


@bug(41, "OpenZFS 5806", "a checkpoint clears the record of what an absent device missed")
def missed_is_cleared(disk: LogStructuredDisk) -> None:
    array, keep_progress = disk.array, disk.resync.keep_progress

    def keep_and_clear() -> None:
        keep_progress()
        array.progressed(
            {member.index: array.durable() for member in array.in_state(ComponentState.ABSENT)}
        )

    disk.state.on_checkpoint = keep_and_clear


@bug(
    42, "longhorn 7425", "of a good device and one that comes back, the good one is taken for stale"
)
def good_one_is_thrown_away(disk: LogStructuredDisk) -> None:
    array, resync = disk.array, disk.resync

    def swap(member, device: int) -> None:
        if (
            member is not None
            and member.state is ComponentState.STALE
            and (others := array.in_state(ComponentState.ACTIVE))
        ):
            member.state, others[0].state = ComponentState.ACTIVE, ComponentState.STALE
            others[0].since = array.durable()
            resync.begin(others[0])

    after(array, "return_", swap)


@bug(
    43,
    "longhorn 4513",
    "a rebuild copies the segments that live holds, and not those of snapshots alone",
)
def rebuild_without_snapshots(disk: LogStructuredDisk) -> None:
    state, resync = disk.state, disk.resync
    births = resync._births

    def births_of_live(leg, since: int) -> dict[int, int]:
        found = births(leg, since)
        if leg is not state.capacity or since:
            return found
        live = {mba for _, mba in state.views.live.map.items()}
        return {
            segment: born
            for segment, born in found.items()
            if any(mba in live for _, mba in state.segments.living(segment))
        }

    resync._births = births_of_live


@bug(
    44,
    "btrfs 651",
    "a stripe that is written while a device is gone gets the parity of what was not written there",
)
def degraded_write_poisons_parity(disk: LogStructuredDisk) -> None:
    leg = disk.state.capacity
    pieces = leg._pieces

    def pieces_of_those_there(data: bytes) -> list[bytes]:
        whole = pieces(data)
        if leg.k > 1 and not all(component.member.reachable for component in leg.components):
            return (
                whole[: leg.k] + pieces(data[: -leg.piece_bytes].ljust(len(data), b"\0"))[leg.k :]
            )
        return whole

    leg._pieces = pieces_of_those_there


@bug(46, "maharmstone btrfs 816", "what is copied to a device is written a stripe too far")
def copied_to_wrong_offset(disk: LogStructuredDisk) -> None:
    for leg in (disk.state.performance, disk.state.capacity):
        write = leg._write

        def write_too_far(
            component, offset: int, data: bytes, cause: str, write=write, leg=leg
        ) -> bool:
            return write(
                component,
                offset + leg.piece_bytes if cause in ("resync", "rebuild") else offset,
                data,
                cause,
            )

        leg._write = write_too_far


@bug(
    47,
    "the rule itself: a second failure during a rebuild",
    "a rebuild reads devices that are being rebuilt, its own among them, and believes them",
)
def half_built_is_read(disk: LogStructuredDisk) -> None:
    for leg in (disk.state.performance, disk.state.capacity):
        leg.readable = lambda component, offset, length: (
            component.member.state in (ComponentState.ACTIVE, ComponentState.RESYNCING)
        )
        leg.resync = lambda to, stripe, checks, cause, resync=leg.resync: resync(
            to, stripe, [], cause
        )
