"""Bugs of mirrors, parity and rebuilds."""

from collections.abc import Iterator

from refmodel.array.component import Component
from refmodel.array.leg import Check, Leg
from refmodel.array.member import ComponentState, Member
from refmodel.bugs.registry import after, bug, override
from refmodel.journal.record import Record
from refmodel.log_structured.disk import LogStructuredDisk

COPYING = ("resync", "rebuild")  # the causes of writes that bring a member up to date


@bug(
    36,
    "the rule itself: acknowledged means on every active mirror",
    "a record is acknowledged when one mirror has it",
)
def acknowledged_after_one_mirror(disk: LogStructuredDisk) -> None:
    """Plant it: while a record is appended, one component is written."""
    log, leg = disk.state.log, disk.state.performance
    write, append = leg.write_component, log.append

    def append_to_one(record: Record) -> None:
        written: list[Member] = []

        def write_first(component: Component, offset: int, data: bytes, cause: str) -> bool:
            if component.member.reachable and component.member not in written[:1]:
                written.append(component.member)
            return component.member in written[:1] and write(component, offset, data, cause)

        override(leg, "write_component", write_first)
        try:
            append(record)
        finally:
            override(leg, "write_component", write)

    override(log, "append", append_to_one)


@bug(37, "DRBD 145", "what a device missed is forgotten before it was copied")
def missed_is_forgotten(disk: LogStructuredDisk) -> None:
    override(disk.resync, "births", lambda leg, since: iter(()))


@bug(38, "md 1a855a060665", "a device whose rebuild a power cut interrupted is taken for in sync")
def partly_rebuilt_is_in_sync(disk: LogStructuredDisk) -> None:
    """Plant it: a member that was being rebuilt is active after the disk was opened."""
    for member in disk.array.in_state(ComponentState.STALE):
        if member.catches_up == "rebuild":
            member.activate()


@bug(39, "md 8313b8e57f55", "a device that returns is taken for in sync")
def returned_without_resync(disk: LogStructuredDisk) -> None:
    """Plant it: no member that left missed writes."""
    override(disk.array, "missed_writes", lambda member: False)


@bug(40, "md 133d4527eab8", "a write that races a rebuild skips its target")
def write_skips_resyncing(disk: LogStructuredDisk) -> None:
    """Plant it: a member that is resyncing gets only what is copied to it."""

    def plant(leg: Leg) -> None:
        write = leg.write_component

        def write_elsewhere(component: Component, offset: int, data: bytes, cause: str) -> bool:
            resyncing = component.member.state is ComponentState.RESYNCING
            wanted = not resyncing or cause in COPYING
            return wanted and write(component, offset, data, cause)

        override(leg, "write_component", write_elsewhere)

    plant(disk.state.performance)
    plant(disk.state.capacity)


@bug(41, "OpenZFS 5806", "a checkpoint clears the record of what an absent device missed")
def missed_is_cleared(disk: LogStructuredDisk) -> None:
    array, keep_progress = disk.array, disk.resync.keep_progress

    def keep_and_clear() -> None:
        keep_progress()
        absent = array.in_state(ComponentState.ABSENT)
        array.record_progress({member.index: array.clock.durable for member in absent})

    override(disk.resync, "keep_progress", keep_and_clear)


@bug(
    42, "longhorn 7425", "of a good device and one that comes back, the good one is taken for stale"
)
def good_one_is_thrown_away(disk: LogStructuredDisk) -> None:
    """Plant it: when a stale member returns, it becomes active and an active one stale."""
    array, resync = disk.array, disk.resync

    def swap(member: Member | None, device: int) -> None:
        others = array.in_state(ComponentState.ACTIVE)
        if member is None or member.state is not ComponentState.STALE or not others:
            return
        good = others[0]
        good_device = good.device
        assert good_device is not None
        member.activate()
        good.leave(ComponentState.ABSENT, array.now(), array.clock.durable)
        good.come_back(good_device, missed=True)
        resync.begin(good)

    after(array, "return_", swap)


@bug(
    43,
    "longhorn 4513",
    "a rebuild copies the segments that live holds, and not those of snapshots alone",
)
def rebuild_without_snapshots(disk: LogStructuredDisk) -> None:
    state, resync = disk.state, disk.resync
    births = resync.births

    def births_of_live(leg: Leg, since: int) -> Iterator[tuple[int, int]]:
        found = births(leg, since)
        if leg is not state.capacity or since:
            return found
        live = {mba for _, mba in state.views.live.map.items()}
        return (
            (segment, born)
            for segment, born in found
            if not live.isdisjoint(state.chunks.living(segment))
        )

    override(resync, "births", births_of_live)


@bug(
    44,
    "btrfs 651",
    "a stripe that is written while a device is gone gets the parity of what was not written there",
)
def degraded_write_poisons_parity(disk: LogStructuredDisk) -> None:
    """Plant it: while a device is gone, parity is that of a stripe whose last piece is zero."""
    leg = disk.state.capacity
    pieces = leg.striping.pieces

    def pieces_of_those_there(data: bytes) -> list[memoryview]:
        whole = pieces(data)
        if leg.k > 1 and not all(component.member.reachable for component in leg.components):
            poisoned = data[: -leg.piece_bytes].ljust(len(data), b"\0")
            return whole[: leg.k] + pieces(poisoned)[leg.k :]
        return whole

    override(leg.striping, "pieces", pieces_of_those_there)


@bug(46, "maharmstone btrfs 816", "what is copied to a device is written a stripe too far")
def copied_to_wrong_offset(disk: LogStructuredDisk) -> None:
    """Plant it: writes of resync and rebuild are one piece too far."""

    def plant(leg: Leg) -> None:
        write = leg.write_component

        def write_too_far(component: Component, offset: int, data: bytes, cause: str) -> bool:
            shift = leg.piece_bytes if cause in COPYING else 0
            return write(component, offset + shift, data, cause)

        override(leg, "write_component", write_too_far)

    plant(disk.state.performance)
    plant(disk.state.capacity)


@bug(
    47,
    "the rule itself: a second failure during a rebuild",
    "a rebuild reads devices that are being rebuilt, its own among them, and believes them",
)
def half_built_is_read(disk: LogStructuredDisk) -> None:
    """Plant it: a resyncing component lacks nothing, and a copied stripe is not checked."""

    def readable(component: Component, offset: int, length: int) -> bool:
        return component.member.state in (ComponentState.ACTIVE, ComponentState.RESYNCING)

    def plant(leg: Leg) -> None:
        resync = leg.resync

        def resync_unchecked(
            to: Component, stripe: int, checks: list[Check], cause: str
        ) -> list[Check]:
            return resync(to, stripe, [], cause)

        override(leg, "readable", readable)
        override(leg, "resync", resync_unchecked)

    plant(disk.state.performance)
    plant(disk.state.capacity)
