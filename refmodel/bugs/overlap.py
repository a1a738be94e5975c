"""Bugs that show only where requests overlap: with one in flight each of them is harmless."""

from collections.abc import Callable
from dataclasses import replace

from refmodel.bugs.cache import SMALL
from refmodel.bugs.registry import bug, override
from refmodel.cache.disk import CachedDisk
from refmodel.cache.requests import CachedRequests
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.runtime.effects import FLUSH, READ, TURN, Effect, Process

NUMBER = 52
LONG = 8  # steps of others, while a flush takes long


def _slowly(log: Process[None]) -> Process[None]:
    """Return the log process with flushes that take long, which is no bug."""
    for effect in log:
        yield effect
        for _ in range(LONG if effect is FLUSH else 0):
            yield TURN


@bug(
    NUMBER,
    "the rule itself: an answer waits for the flush that covers its own record",
    "what waits behind another record of its group is acknowledged before the group is durable",
)
def group_acknowledged_early(disk: LogStructuredDisk) -> None:
    state = disk.state
    override(state, "awaits", lambda record: record in list(state.in_flight)[:1])


@bug(
    NUMBER,
    "the rule itself: a group happens in the order of its records",
    "the snapshots of a group happen before its writes, and after a crash behind them",
)
def group_out_of_order(disk: LogStructuredDisk) -> None:
    state = disk.state
    log_append = state.log_append

    def snapshots_first() -> None:
        durable = [record for record in state.in_flight if record.sequence < state.log.sequence]
        first = next((r for r in durable if r.kind is RecordKind.SNAPSHOT), state.in_flight[0])
        state.in_flight.remove(first)
        state.in_flight.appendleft(first)
        log_append()

    override(state, "log_append", snapshots_first)


@bug(
    NUMBER,
    "bcachefs 629, between two requests",
    "the last block of a write comes with the next record: a snapshot takes the write in half",
)
def write_happens_in_halves(disk: LogStructuredDisk) -> None:
    state, size = disk.state, disk.geometry.block_bytes
    log_append = state.log_append
    late: list[Record] = []

    def append_in_halves() -> None:
        record = state.in_flight[0]
        if record.kind is RecordKind.WRITE and record.count > 1 and len(state.in_flight) > 1:
            last, lba = record.data[-size:], record.lba + record.count - 1
            late.append(Record(RecordKind.WRITE, lba, 1, data=last))
            state.in_flight[0] = replace(record, count=record.count - 1, data=record.data[:-size])
            log_append()
            return
        log_append()
        while late:
            state.apply(late.pop())

    override(state, "log_append", append_in_halves)


@bug(
    NUMBER,
    "the rule itself: a read is one step",
    "a read of several blocks takes one block after another, and a write comes between",
)
def read_block_by_block(disk: LogStructuredDisk) -> None:
    requests = disk.requests
    read_many = requests.read_many

    def read_in_parts(
        reads: list[tuple[int, int]], view: str | None = None
    ) -> Process[list[bytes]]:
        found = []
        for lba, count in reads:
            blocks = []
            for at in range(lba, lba + count):
                blocks += yield from read_many([(at, 1)], view)
                yield READ
            found.append(b"".join(blocks))
        return found

    override(requests, "read_many", read_in_parts)


@bug(
    NUMBER,
    "the rule itself: what is not durable is shown to nobody",
    "a read shows a write that is in flight, and a power cut takes it back",
)
def shown_before_durable(disk: LogStructuredDisk) -> None:
    requests, in_flight, size = disk.requests, disk.state.in_flight, disk.geometry.block_bytes
    read_many, log = requests.read_many, requests.log

    def read_newest(reads: list[tuple[int, int]], view: str | None = None) -> Process[list[bytes]]:
        coming = {
            record.lba + at: record.data[at * size : (at + 1) * size]
            for record in in_flight
            if record.kind is RecordKind.WRITE and view is None
            for at in range(record.count)
        }
        found = yield from read_many(reads, view)
        return [
            b"".join(coming.get(lba + at, data[at * size : (at + 1) * size]) for at in range(count))
            for (lba, count), data in zip(reads, found, strict=True)
        ]

    override(requests, "read_many", read_newest)
    override(requests, "log", lambda: _slowly(log()))


@bug(
    NUMBER,
    "btrfs b9fae2ebee1a; PostgreSQL's group commit: whose flush covers what",
    "a flush that is called while another one is under way is answered with it",
    write_back=True,
)
def flush_joins_earlier(disk: LogStructuredDisk) -> None:
    requests, log = disk.requests, disk.state.log
    under_way: list[object] = []

    def flush() -> Process[None]:
        if under_way:
            first = under_way[0]
            yield Effect("the other flush", lambda: first not in under_way)
            return
        mine = object()
        under_way.append(mine)
        try:
            log.flush()
            for _ in range(LONG):
                yield FLUSH
        finally:
            under_way.remove(mine)

    override(requests, "flush", flush)


@bug(
    NUMBER,
    "the rule itself: what is in flight has happened before a name is looked up",
    "two snapshots of one name are both admitted, since the first is not there yet",
)
def name_checked_early(disk: LogStructuredDisk) -> None:
    override(disk.state, "speaks_of", lambda name: False)


@bug(
    NUMBER,
    "the rule itself: room is what is left when all that is in flight has happened",
    "each request in flight counts on the same room",
)
def room_promised_twice(disk: LogStructuredDisk) -> None:
    override(disk.space, "has_room", lambda record, refusable=True: True)


@bug(
    NUMBER,
    "the rule itself: the log's order is the order in which operations happen",
    "an unmap happens when its process goes on, behind what came later in the log",
)
def unmap_happens_late(disk: LogStructuredDisk) -> None:
    requests, state = disk.requests, disk.state
    unmap, apply = requests.unmap, state.apply
    late: list[Callable[[], None]] = []

    def apply_later(record: Record) -> None:
        if record.kind is RecordKind.UNMAP and disk.scheduler.in_flight > 1:
            late.append(lambda: apply(record))
        else:
            apply(record)

    def unmap_later(lba: int, count: int) -> Process[None]:
        yield from unmap(lba, count)
        yield TURN
        while late:
            late.pop(0)()

    override(state, "apply", apply_later)
    override(requests, "unmap", unmap_later)


@bug(
    NUMBER,
    "the rule itself: what was read is put into the cache only if nobody has changed it meanwhile",
    "a read fills the cache with what a write has replaced while the read was under way",
    cache_bytes=SMALL,
)
def stale_fill(disk: CachedDisk) -> None:
    assert isinstance(disk.requests, CachedRequests)
    override(disk.requests, "touch", lambda blocks: None)
