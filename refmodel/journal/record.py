"""A record of the durable log: one operation as it is stored, or several writes together."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import reduce
from itertools import chain, repeat
from operator import floordiv

from refmodel.core.checksum import crc32c, extend
from refmodel.core.validation import DATA, LBA

RECORD_UNIT = 512  # bytes; the size of a record is a multiple of it
MAGIC = b"LFSR"
# magic, CRC-32C of what follows it, sequence, generation, kind, name length, LBA, count,
# payload length, flushed
HEADER = struct.Struct("<4sIQIHHQIIQ")
PREFIX, FIELDS = struct.Struct("<4sI"), struct.Struct("<QIHHQIIQ")  # the same in two parts
COVERED = 8  # the checksum covers everything from this byte on
ZEROES = bytes(RECORD_UNIT)
TABLE = struct.Struct("<I")  # the number of writes in a record
EXTENT = struct.Struct("<QI")  # LBA and count of blocks of each


class RecordKind(IntEnum):
    """The kind of a record, as it is stored."""

    __hash__ = int.__hash__  # Enum's own is written in Python

    OPEN = 1  # a generation begins
    WRITE = 2
    UNMAP = 3
    SNAPSHOT = 4
    DELETE = 5
    REVERT = 6
    PLACE = 7  # a write whose whole segments are on the capacity leg already
    WRITES = 8  # writes that were in flight together


# Global names, which every write looks up: a member of an enumeration is found ten times as slowly.
ONE_WRITE, SEVERAL_WRITES = RecordKind.WRITE, RecordKind.WRITES
OPERATIONS = {kind: kind.name.lower() for kind in RecordKind} | {
    RecordKind.PLACE: "write",
    RecordKind.WRITES: "write",
}  # the operation that a record of each kind is of


@dataclass(slots=True)
class Record:
    """A record. The log sets its numbers when the record is appended."""

    kind: RecordKind
    lba: int = 0  # logical block address
    count: int = 0  # blocks
    name: str = ""  # name of a snapshot
    data: bytes = b""
    sequence: int = 0
    generation: int = 0
    flushed: int = 0  # the last record that was durable when this one was written
    position: int = 0  # in the log: bytes since it began; it is not stored
    writes: Sequence[tuple[int, bytes]] = ()  # kind WRITES, instead of `data`: (LBA, blocks)
    stored_bytes: int = field(init=False)  # the room that it takes in the log

    def __post_init__(self) -> None:
        payload = len(self.data)
        if self.writes:
            payload = TABLE.size + EXTENT.size * len(self.writes) + self._data_bytes
        self.stored_bytes = record_bytes(payload, self.name)

    @property
    def body(self) -> list[bytes]:
        """The payload, stored behind the header and the name.

        It is in parts, so that the data of many writes is copied only once.
        """
        if self.kind is not SEVERAL_WRITES:
            return [self.data]
        blocks = [*map(DATA, self.writes)]
        numbers = chain.from_iterable(self.extents)
        return [struct.pack("<I" + "QI" * len(blocks), len(blocks), *numbers), *blocks]

    @property
    def extents(self) -> list[tuple[int, int]]:
        """The extents of a record of kind WRITES: LBA and number of blocks of each write."""
        if self.count == len(self.writes):
            return [(lba, 1) for lba, _ in self.writes]
        lengths = [*map(len, map(DATA, self.writes))]
        counts = map(floordiv, lengths, repeat(sum(lengths) // self.count))
        return [*zip(map(LBA, self.writes), counts, strict=True)]

    @property
    def _data_bytes(self) -> int:
        return sum(map(len, map(DATA, self.writes)))

    @property
    def facts(self) -> dict[str, object]:
        """The record's sequence number and operation, as events tell them."""
        facts: dict[str, object] = {"sequence": self.sequence, "op": OPERATIONS[self.kind]}
        if self.writes:
            return facts | {"count": self.count, "extents": self.extents}
        if self.count:
            return facts | {"lba": self.lba, "count": self.count}
        return facts | {"name": self.name} if self.name else facts


def record_bytes(payload: int, name: str = "") -> int:
    """Return the stored size of a record with `payload` bytes of payload, in bytes."""
    return -(-(HEADER.size + len(name) + payload) // RECORD_UNIT) * RECORD_UNIT


def encode(record: Record) -> bytes:
    """Return the bytes that store a record."""
    name, body = record.name.encode("ascii"), record.body
    length = sum(map(len, body))
    fields = (
        FIELDS.pack(
            record.sequence,
            record.generation,
            record.kind,
            len(name),
            record.lba,
            record.count,
            length,
            record.flushed,
        )
        + name
    )
    body.append(ZEROES[: -(HEADER.size + len(name) + length) % RECORD_UNIT])
    return b"".join([PREFIX.pack(MAGIC, reduce(extend, body, crc32c(fields))), fields, *body])


def stored_bytes(header: bytes) -> int | None:
    """Return the size of the record that begins with these bytes, if one does."""
    magic, _, _, _, _, name_length, _, _, payload, _ = HEADER.unpack_from(header)
    if magic != MAGIC:
        return None
    return record_bytes(name_length + payload)


def decode(raw: bytes) -> Record | None:
    """Return the record that is stored in the bytes; None if it is damaged."""
    magic, crc, sequence, generation, kind, name_length, lba, count, payload, flushed = (
        HEADER.unpack_from(raw)
    )
    if magic != MAGIC or crc32c(raw[COVERED:]) != crc:
        return None
    name_end = HEADER.size + name_length
    name = raw[HEADER.size : name_end].decode("ascii")
    body = raw[name_end : name_end + payload]
    if kind == RecordKind.WRITES:
        writes = _writes(body, count)
        return Record(
            RecordKind.WRITES, lba, count, name, b"", sequence, generation, flushed, writes=writes
        )
    return Record(RecordKind(kind), lba, count, name, body, sequence, generation, flushed)


def _writes(body: bytes, count: int) -> list[tuple[int, bytes]]:
    """Return the writes of a record that has several, of `count` blocks together."""
    at = TABLE.size + EXTENT.size * TABLE.unpack_from(body)[0]
    size = (len(body) - at) // count
    writes = []
    for lba, blocks in EXTENT.iter_unpack(body[TABLE.size : at]):
        writes.append((lba, body[at : at + blocks * size]))
        at += blocks * size
    return writes
