"""Bugs of the log, checkpoints and recovery."""

from collections.abc import Iterator

from refmodel.bugs.registry import bug, override
from refmodel.core.checksum import stored_checksum
from refmodel.journal import record as records
from refmodel.journal.record import Record, RecordKind
from refmodel.log_structured.disk import LogStructuredDisk


@bug(28, "f2fs 1e87a78d95ec, a468f0ef516f", "a torn record is accepted at roll-forward")
def torn_record_accepted(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    next_record, leg = log.next_record, disk.state.performance

    def next_unchecked() -> tuple[Record, bytes] | None:
        if (found := next_record()) is not None:
            return found
        raw = log.raw_record(leg.active()[0])
        if raw is None:
            return None
        fixed = records.MAGIC + stored_checksum(raw[records.COVERED :]) + raw[records.COVERED :]
        record = records.decode(fixed)
        return (record, raw) if record is not None and log.continues(record) else None

    override(log, "next_record", next_unchecked)


@bug(29, "cqlite 1390", "the log goes on behind a torn tail instead of over it")
def append_behind_torn_tail(disk: LogStructuredDisk) -> None:
    log, leg = disk.state.log, disk.state.performance
    recover = log.recover

    def recover_and_skip(tail: int, sequence: int, generation: int) -> Iterator[Record]:
        yield from recover(tail, sequence, generation)
        if log.read_head(leg.active()[0], records.RECORD_UNIT).startswith(records.MAGIC):
            log.head += records.RECORD_UNIT

    override(log, "recover", recover_and_skip)


@bug(30, "Typhon 712", "sequence numbers start again after recovery")
def sequence_starts_again(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    recover = log.recover

    def recover_and_restart(tail: int, sequence: int, generation: int) -> Iterator[Record]:
        yield from recover(tail, sequence, generation)
        log.sequence = 1

    override(log, "recover", recover_and_restart)


@bug(31, "nilfs2 c85399c2da8b", "recovery counts one used segment too few")
def recovery_miscounts_segments(disk: LogStructuredDisk) -> None:
    segments = disk.state.segments
    first_unused = segments.first_unused
    override(segments, "first_unused", lambda: max(0, first_unused() - 1))


@bug(
    32,
    "ceph PR 46890, 60753",
    "replay writes over the place that the block had, which may be given out again",
    layout="mirror",
)
def replay_writes_over(disk: LogStructuredDisk) -> None:
    state = disk.state
    recover, size = state.log.recover, disk.geometry.block_bytes

    def recover_in_place(tail: int, sequence: int, generation: int) -> Iterator[Record]:
        for record in recover(tail, sequence, generation):
            for at in range(record.count if record.kind is RecordKind.WRITE else 0):
                entry = state.chunks.middle.get(state.views.live.map.get(record.lba + at) or 0)
                if entry is not None:
                    data = record.data[at * size :][:size]
                    state.capacity.write(state.chunks.offset(entry[0]), data, "recovery")
            yield record

    override(state.log, "recover", recover_in_place)


@bug(33, "littlefs PR 948; Open-CAS 519, 393", "an operation is acknowledged before it is flushed")
def acknowledged_before_flush(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    flush = log.flush

    def flush_unless_foreground(cause: str = "foreground") -> None:
        if cause != "foreground":
            flush(cause)

    override(log, "flush", flush_unless_foreground)


@bug(
    34,
    "the log forgotten before the checkpoint that replaces it is durable",
    "a checkpoint leaves out the bank",
)
def log_truncated_early(disk: LogStructuredDisk) -> None:
    chunks = disk.state.chunks
    override(chunks, "destage_all", chunks.destage_full)


@bug(
    35, "replay that is not idempotent", "a crash during recovery makes the last record count twice"
)
def record_replayed_twice(disk: LogStructuredDisk) -> None:
    log = disk.state.log
    recover = log.recover

    def recover_twice(tail: int, sequence: int, generation: int) -> Iterator[Record]:
        record = None
        for record in recover(tail, sequence, generation):
            yield record
        if record is not None and record.kind is not RecordKind.OPEN:
            yield record

    override(log, "recover", recover_twice)


@bug(
    33,
    "the rule itself: a clean restart is a flush",
    "a clean close flushes nothing, and the power is off before the disk is opened again",
    write_back=True,
)
def closed_without_flush(disk: LogStructuredDisk) -> None:
    override(disk, "close", disk.abandon)
