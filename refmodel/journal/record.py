"""A record of the durable log: one operation, as it is stored."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce

from refmodel.core.checksum import crc32c, extend

RECORD_UNIT = 512  # bytes; the size of a record is a multiple of it
MAGIC = b"LFSR"
HEADER = struct.Struct(
    "<4sIQIHHQIIQ"
)  # magic, CRC-32C of what follows it, sequence, generation, kind, name length,
PREFIX, FIELDS = struct.Struct("<4sI"), struct.Struct("<QIHHQIIQ")  # the same in two parts
ZEROES = bytes(RECORD_UNIT)
COVERED = 8  #                           LBA, count, payload length, flushed; the checksum covers from this byte on
TABLE, EXTENT = (
    struct.Struct("<I"),
    struct.Struct("<QI"),
)  # how many writes there are; LBA and count of blocks of each


class RecordKind(IntEnum):
    __hash__ = int.__hash__  # Enum's own is written in Python

    OPEN = 1  # a generation begins
    WRITE = 2
    UNMAP = 3
    SNAPSHOT = 4
    DELETE = 5
    REVERT = 6
    PLACE = 7  # a write whose whole segments are on the capacity leg already
    WRITES = 8  # writes that were in flight together


OPERATIONS = {kind: kind.name.lower() for kind in RecordKind} | {
    RecordKind.PLACE: "write",
    RecordKind.WRITES: "write",
}


@dataclass(slots=True)
class Record:
    kind: RecordKind
    lba: int = 0
    count: int = 0
    name: str = ""
    data: bytes = b""
    sequence: int = 0
    generation: int = 0
    flushed: int = 0  # the last record that was durable when this one was written
    writes: Sequence[
        tuple[int, bytes]
    ] = ()  # of WRITES, in place of `data`: LBA and whole blocks of each

    @property
    def body(self) -> list[bytes]:
        """What is stored behind the header and the name, in parts, so that the data of many writes is copied once."""
        if self.kind is not RecordKind.WRITES:
            return [self.data]
        blocks = [data for _, data in self.writes]
        size = sum(map(len, blocks)) // self.count
        numbers = [number for lba, data in self.writes for number in (lba, len(data) // size)]
        return [struct.pack("<I" + "QI" * len(blocks), len(blocks), *numbers), *blocks]

    @property
    def facts(self) -> dict[str, object]:
        """Which record it is, and of what operation, as events tell it."""
        op = OPERATIONS[self.kind]
        return {"sequence": self.sequence, "op": op} | (
            {"lba": self.lba, "count": self.count}
            if self.count
            else {"name": self.name}
            if self.name
            else {}
        )

    @property
    def stored_bytes(self) -> int:
        """How long it is in the log."""
        table = TABLE.size + EXTENT.size * len(self.writes) if self.writes else 0
        return record_bytes(
            len(self.data) + table + sum([len(data) for _, data in self.writes]), self.name
        )


def record_bytes(payload: int, name: str = "") -> int:
    """Stored size of a record."""
    return -(-(HEADER.size + len(name) + payload) // RECORD_UNIT) * RECORD_UNIT


def encode(record: Record) -> bytes:
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
    """How long the record is that begins like this, if one does."""
    magic, _, _, _, _, name_length, _, _, payload, _ = HEADER.unpack_from(header)
    if magic != MAGIC:
        return None
    length = HEADER.size + name_length + payload
    return length + -length % RECORD_UNIT


def decode(raw: bytes) -> Record | None:
    """The record, if it is whole."""
    magic, crc, sequence, generation, kind, name_length, lba, count, payload, flushed = (
        HEADER.unpack_from(raw)
    )
    if magic != MAGIC or crc32c(raw[COVERED:]) != crc:
        return None
    name_end = HEADER.size + name_length
    name = raw[HEADER.size : name_end].decode("ascii")
    body = raw[name_end : name_end + payload]
    if kind == RecordKind.WRITES:
        return Record(
            RecordKind.WRITES,
            lba,
            count,
            name,
            b"",
            sequence,
            generation,
            flushed,
            _writes(body, count),
        )
    return Record(RecordKind(kind), lba, count, name, body, sequence, generation, flushed)


def _writes(body: bytes, count: int) -> list[tuple[int, bytes]]:
    """The writes of a record that has several, of so many blocks together."""
    at = TABLE.size + EXTENT.size * TABLE.unpack_from(body)[0]
    size = (len(body) - at) // count
    writes = []
    for lba, blocks in EXTENT.iter_unpack(body[TABLE.size : at]):
        writes.append((lba, body[at : at + blocks * size]))
        at += blocks * size
    return writes
