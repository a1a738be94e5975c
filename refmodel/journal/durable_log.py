"""The durable log: every operation is in it before anything else is done about it.

The log is a ring of records (refmodel.journal.record) on the performance leg. A record counts only
if it is whole: it carries a checksum, its sequence number and the generation of the log. The first
record after a disk was opened begins a generation, and is flushed before any other is written. So a
record that an earlier opening left behind the end of the log never counts as its continuation.
"""

from collections.abc import Iterator

from refmodel.array.component import Component
from refmodel.array.leg import Leg
from refmodel.core.errors import DataLost
from refmodel.core.events import Events
from refmodel.core.time_spent import LOG, spent_on
from refmodel.journal.record import (
    HEADER,
    MAGIC,
    RECORD_UNIT,
    Record,
    RecordKind,
    decode,
    encode,
    stored_bytes,
)

SEARCH_BYTES = 1 << 20  # read at once in a search for later records
ALLOCATED_BYTES = 1 << 20  # the host is asked to keep this much room at a time


class DurableLog:
    """The log in a ring of `size` bytes that begins `base` bytes into the leg.

    A position counts bytes since the log began; its place in the ring is the position modulo the
    size. `cause` is what appending is counted under.
    """

    def __init__(
        self, leg: Leg, base: int, size: int, events: Events, cause: str = "foreground"
    ) -> None:
        self._leg = leg
        self._cause = cause
        self._events = events
        self._base = base
        self.size = size
        self._allocated: set[int] = set()  # first bytes of parts with room kept by the host
        self._kept = 0  # position up to which room is kept for the records behind the head
        self._begun = False  # whether the generation of this opening has begun
        self.tail = 0  # position of the oldest record that is still needed
        self.head = 0  # position behind the newest record
        self.sequence = 1  # sequence number of the next record
        self.generation = 0
        self._flushed = 0  # sequence of the last record that is durable
        self._in_flight = False  # whether an operation was written since the last flush
        self.remirrored = 0  # copies of records that recovery repaired

    def used(self) -> int:
        """Bytes between tail and head."""
        return self.head - self.tail

    def fits(self, bytes: int) -> bool:
        """Return whether records of `bytes` bytes fit behind the head, before the tail."""
        opening = 0 if self._begun else RECORD_UNIT
        return self.head - self.tail + opening + bytes <= self.size

    def could_ever_fit(self, bytes: int) -> bool:
        """Return whether records of `bytes` bytes fit into an empty log."""
        return RECORD_UNIT + bytes <= self.size

    def allocate(self, bytes: int) -> None:
        """Have the host keep room for records of `bytes` bytes at the head.

        So an append that is to come cannot fail on one mirror for want of room. Raises HostFull if
        there is none; then nothing has changed.
        """
        end = self.head + bytes + RECORD_UNIT  # the record that begins a generation may come first
        if self._kept < self.head:
            self._kept = self.head
        while self._kept < end:
            at = self._kept % self.size
            start = at - at % ALLOCATED_BYTES
            length = min(ALLOCATED_BYTES, self.size - start)
            if start not in self._allocated:
                self._leg.allocate(self._base + start, length)
                self._allocated.add(start)
            self._kept += start + length - at

    @spent_on(LOG)
    def append(self, *records: Record) -> None:
        """Write records to every component, in one I/O each; the next flush makes them durable.

        The records get their sequence numbers. They must fit.
        """
        if not self._begun:
            self.begin()
        self._write(*records)
        self._in_flight = True

    def begin(self) -> None:
        """Begin the generation of this opening, unless it has begun.

        What any component has behind the head belongs to no generation from now on.
        """
        if not self._begun:
            self.generation += 1
            self._write(Record(RecordKind.OPEN))
            self.flush(self._cause)
            self._begun = True
            self._events.emit("begin", generation=self.generation)

    def flush(self, cause: str = "foreground") -> None:
        """Make every record durable."""
        self._leg.flush(cause)
        self._flushed = self.sequence - 1
        if self._in_flight:
            self._in_flight = False
            if self._events.record is not None:
                self._events.emit("log_append", sequence=self.sequence - 1)

    def truncate(self, position: int | None = None) -> None:
        """Forget the records before a position, or all: a checkpoint holds their effects."""
        self.tail = self.head if position is None else position
        assert self.tail <= self.head

    # Recovery.

    def recover(self, tail: int, sequence: int, generation: int) -> Iterator[Record]:
        """Yield the records from a position on, each made the same on every component before.

        `sequence` and `generation` are those of the first record. The log ends where no component
        has the next record. Raises DataLost if that record was durable.
        """
        self.tail = self.head = tail
        self.sequence, self.generation = sequence, generation
        while (found := self.next_record()) is not None:
            record, raw = found
            self._remirror(record, raw)
            self.head += len(raw)
            self.sequence += 1
            self.generation = record.generation
            yield record
        self._require_end()
        self._leg.flush("recovery")
        self._flushed = self.sequence - 1

    def next_record(self) -> tuple[Record, bytes] | None:
        """Return the record at the head, and its bytes; None if no component has it whole."""
        for component in self._leg.active():
            raw = self.raw_record(component)
            record = None if raw is None else decode(raw)
            if raw is not None and record is not None and self.continues(record):
                return record, raw
        return None

    def raw_record(self, component: Component) -> bytes | None:
        """Return the bytes at the head that begin like a record on a component, if any do."""
        length = stored_bytes(self.read_head(component, RECORD_UNIT))
        if length is None or self.used() + length > self.size:
            return None
        return self.read_head(component, length)

    def continues(self, record: Record) -> bool:
        """Return whether a record is the next one of the log."""
        if record.sequence != self.sequence:
            return False
        return record.generation == self.generation or (
            record.kind is RecordKind.OPEN and record.generation > self.generation
        )

    def read_head(self, component: Component, length: int) -> bytes:
        """Return bytes at the head from one component; zeroes if its device is gone."""
        return self._read(component, self.head, length)

    # How it is done.

    def _require_end(self) -> None:
        """Raises DataLost if the record that is missing at the head was durable.

        A record in flight may be lost in a crash, and later ones be kept. But if a later one says
        that the missing record was durable, that record was damaged.
        """
        for component in self._leg.active():
            for later in self._later(component):
                if later.flushed >= self.sequence:
                    raise DataLost(
                        f"record {self.sequence} of the durable log is whole on no mirror, "
                        f"though it was acknowledged: record {later.sequence} behind it says so"
                    )

    def _later(self, component: Component) -> Iterator[Record]:
        """Yield the whole records behind the head that are newer than the missing one."""
        end = self.tail + self.size
        for start in range(self.head, end, SEARCH_BYTES):
            part = self._read(component, start, min(SEARCH_BYTES, end - start))
            at = -1
            while (at := part.find(MAGIC, at + 1)) >= 0:
                if at % RECORD_UNIT:
                    continue
                header = part[at : at + RECORD_UNIT]
                _, _, sequence, generation, *_ = HEADER.unpack_from(header)
                length = stored_bytes(header)
                if (
                    sequence <= self.sequence
                    or generation < self.generation
                    or length is None
                    or length > self.size
                ):
                    continue
                if (record := decode(self._read(component, start + at, length))) is not None:
                    yield record

    def _write(self, *records: Record) -> None:
        """Number the records, and write them at the head of every component.

        If that fails, the next record takes their place, also where a mirror has them.
        """
        raw, sequence = b"", self.sequence
        for record in records:
            record.sequence, record.generation = sequence, self.generation
            record.flushed, record.position = self._flushed, self.head + len(raw)
            sequence += 1
            if self._events.record is not None:
                numbers = {"generation": record.generation, "flushed": record.flushed}
                self._events.emit("submit", **record.facts, **numbers)
            raw += encode(record)
            end = self.head + len(raw)
            assert end == record.position + record.stored_bytes, "a record outgrew its room"
        reached = []
        for offset, part in self._ring_parts(raw):
            reached.append(self._leg.write(offset, part, self._cause))
        if self._events.record is not None:
            whole = [component for component in reached[0] if component in reached[-1]]
            for record in records:
                self._emit_stored("append", record, record.stored_bytes, whole)
        self.head, self.sequence = self.head + len(raw), sequence
        assert self.head - self.tail <= self.size, "records were appended that did not fit"

    def _ring_parts(self, raw: bytes) -> list[tuple[int, bytes]]:
        """Return bytes for the head with their offsets in the leg; two parts if the ring ends."""
        at = self.head % self.size
        room = self.size - at
        if len(raw) <= room:
            return [(self._base + at, raw)]
        return [(self._base + at, raw[:room]), (self._base, raw[room:])]

    def _read(self, component: Component, position: int, length: int) -> bytes:
        """Return bytes at a position from one component; zeroes if its device is gone."""
        at = position % self.size
        first = min(length, self.size - at)
        part = self._read_part(component, self._base + at, first)
        if first < length:
            part += self._read_part(component, self._base, length - first)
        return part

    def _read_part(self, component: Component, offset: int, length: int) -> bytes:
        return self._leg.read_component(component, offset, length, "recovery") or bytes(length)

    def _remirror(self, record: Record, raw: bytes) -> None:
        """Write a record at the head to every active component that does not have it."""
        had = []
        for component in self._leg.active():
            if self.read_head(component, len(raw)) == raw:
                had.append(component)
                continue
            for offset, part in self._ring_parts(raw):
                self._leg.write_component(component, offset, part, "recovery")
            self.remirrored += 1
        if self._events.record is not None:
            record.position = self.head
            self._emit_stored("found", record, len(raw), had if decode(raw) else [])

    def _emit_stored(self, event: str, record: Record, bytes: int, whole: list[Component]) -> None:
        """Emit where a record is in the log, and on which components it is whole."""
        self._events.emit(
            event,
            sequence=record.sequence,
            generation=record.generation,
            position=record.position,
            bytes=bytes,
            devices=sorted(component.member.index for component in whole),
        )
