"""The durable log: operations in the order in which they happened, before anything else is done about them.

A ring of records on the performance leg. A record is whole or it is not there: it carries a checksum, its sequence number and
the generation of the log. The first record after the disk was opened begins a generation and is flushed before any other is written, so
what an earlier life left behind the end of the log can never be taken for a continuation of it.
"""

from collections.abc import Callable, Iterator

from refmodel.array.component import Component
from refmodel.array.leg import Leg
from refmodel.core.errors import DataLost
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

LOOK = 1 << 20  # bytes of the ring that are looked at together


class DurableLog:
    """Positions count bytes since the log began; the place in the ring is the position modulo its size."""

    def __init__(
        self, leg: Leg, base: int, size: int, emit: Callable[..., None], cause: str = "foreground"
    ) -> None:
        self._leg = leg
        self._cause = cause  # what appending is counted under
        self.emit: Callable[..., None] | None = emit  # None while nobody listens
        self._base = base  # byte offset of the ring in the leg
        self._size = size  # bytes
        self._begun = False  # whether this life's generation has been begun
        self.tail = 0  # position of the oldest record that is still needed
        self.head = 0  # position behind the newest record
        self.sequence = 1  # of the next record
        self.generation = 0
        self._flushed = 0  # sequence of the last record that is durable
        self._in_flight = False  # whether an operation was written since the last flush
        self.remirrored = 0  # copies of records made good by recovery

    @property
    def used(self) -> int:
        """Bytes between tail and head."""
        return self.head - self.tail

    def fits(self, bytes: int) -> bool:
        """Whether records of so many bytes can be appended without forgetting any."""
        opening = 0 if self._begun else RECORD_UNIT
        return self.used + opening + bytes <= self._size

    def could_ever_fit(self, bytes: int) -> bool:
        return RECORD_UNIT + bytes <= self._size

    def append(self, *records: Record) -> None:
        """Write the records on every component, in one I/O; they are durable after the next flush."""
        self.begin()
        self._write(*records)
        self._in_flight = True

    def begin(self) -> None:
        """Begin this life's generation, unless it was begun: what any component has behind the head belongs to none from now on."""
        if not self._begun:
            self.generation += 1
            self._write(Record(RecordKind.OPEN))
            self.flush(self._cause)
            self._begun = True

    def flush(self, cause: str = "foreground") -> None:
        self._leg.flush(cause)
        self._flushed = self.sequence - 1
        if self._in_flight:
            self._in_flight = False
            if self.emit is not None:
                self.emit("log_append", sequence=self.sequence - 1)

    def truncate(self) -> None:
        """A checkpoint holds everything so far: forget it."""
        self.tail = self.head

    def recover(self, tail: int, sequence: int, generation: int) -> Iterator[Record]:
        """The records from the tail on, each made the same on every component before it is given out.

        The log ends at the first place where no component has the next record. Raises DataLost if that record was durable once.
        """
        self.tail = self.head = tail
        self.sequence, self.generation = sequence, generation
        while (found := self._find()) is not None:
            record, raw = found
            self._remirror(raw)
            self.head += len(raw)
            self.sequence += 1
            self.generation = record.generation
            yield record
        self._require_end()
        self._leg.flush("recovery")
        self._flushed = self.sequence - 1

    def _require_end(self) -> None:
        """A record in flight may be lost in a crash, and others behind it be left. But if one of those says that it was durable, it was damaged."""
        for component in self._leg.active():
            for later in self._later(component):
                if later.flushed >= self.sequence:
                    raise DataLost(
                        f"record {self.sequence} of the durable log is whole on no mirror, though it was acknowledged:"
                        f" record {later.sequence} behind it says so"
                    )

    def _later(self, component: Component) -> Iterator[Record]:
        """Whole records behind the head that are newer than the one which is missing there."""
        for start in range(self.head, self.tail + self._size, LOOK):
            part = self._read_at(component, start, min(LOOK, self.tail + self._size - start))
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
                    or length > self._size
                ):
                    continue
                if (record := decode(self._read_at(component, start + at, length))) is not None:
                    yield record

    def _write(self, *records: Record) -> None:
        for record in records:
            record.sequence, record.generation, record.flushed = (
                self.sequence,
                self.generation,
                self._flushed,
            )
            self.sequence += 1
            if self.emit is not None:
                self.emit("submit", **record.facts)
        raw = (
            b"".join([encode(record) for record in records])
            if len(records) > 1
            else encode(records[0])
        )
        for offset, part in self._places(raw):
            self._leg.write(offset, part, self._cause)
        self.head += len(raw)

    def _places(self, raw: bytes) -> list[tuple[int, bytes]]:
        """What is written at the head, cut where the ring ends."""
        at = self.head % self._size
        room = self._size - at
        if len(raw) <= room:
            return [(self._base + at, raw)]
        return [(self._base + at, raw[:room]), (self._base, raw[room:])]

    def _find(self) -> tuple[Record, bytes] | None:
        for component in self._leg.active():
            header = self._read(component, RECORD_UNIT)
            length = stored_bytes(header)
            if length is None or self.used + length > self._size:
                continue
            raw = self._read(component, length)
            record = decode(raw)
            if record is not None and self._is_next(record):
                return record, raw
        return None

    def _is_next(self, record: Record) -> bool:
        if record.sequence != self.sequence:
            return False
        return record.generation == self.generation or (
            record.kind is RecordKind.OPEN and record.generation > self.generation
        )

    def _read(self, component: Component, length: int) -> bytes:
        """So many bytes at the head, as one component has them; nothing but zeroes if its device is gone."""
        return self._read_at(component, self.head, length)

    def _read_at(self, component: Component, position: int, length: int) -> bytes:
        at = position % self._size
        part = self._leg.read_component(
            component, self._base + at, min(length, self._size - at), "recovery"
        )
        if len(part) < length:
            part += self._leg.read_component(component, self._base, length - len(part), "recovery")
        return part

    def _remirror(self, raw: bytes) -> None:
        for component in self._leg.active():
            if self._read(component, len(raw)) != raw:
                for offset, part in self._places(raw):
                    self._leg.write_component(component, offset, part, "recovery")
                self.remirrored += 1
