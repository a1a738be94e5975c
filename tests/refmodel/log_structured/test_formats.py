"""A second implementation, of reading only, written from docs/formats.md.

It shares no code with the engine, only the library of the checksum.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
import zstandard

from refmodel import LogStructuredDisk
from support.disks import block

LEAF = {1: "Q", 2: "QI", 3: "Q", 4: "IQ", 5: "QQQQQQQQQQQQQB", 6: "QQQ", 7: "IQ"}

ALIAS = 1 << 63
REDUCTIONS = [
    {},
    {"compression": True},
    {"deduplication": True},
    {"compression": True, "deduplication": True},
]


def crc(data: bytes) -> int:
    value: int = google_crc32c.value(data)
    return value


class Reader:
    """Reads the views of a disk from one device: the newest checkpoint, and the log behind it."""

    def __init__(self, device: Path) -> None:
        self.data = device.read_bytes()
        assert self.data[:8] == b"LFSLABEL" and crc(self.data[12:4096]) == self.u32(8)
        self.shape = json.loads(self.data[56 : 56 + self.u32(52)])
        self.performance = 16384
        self.pages = self.performance + 8192 + -(-self.shape["log_bytes"] // 4096) * 4096
        self.capacity = self.pages + 4096 * self.shape["pages"]
        slots = [self.slot(0), self.slot(1)]
        newest = max(filter(None, slots))
        number, _, position, sequence, generation, _, middle, owners, usage, views = newest[:10]
        index, references, first_unused, first_free, sealed, live, whole, last = newest[10:18]
        used = list(newest[18:])
        self.used: dict[int, set[int]] = {kind: set() for kind in LEAF}  # the pages of each map
        self.increments = newest[0] - (whole or newest[0])
        self.changes = self.changed(last)
        assert bool(last) == bool(self.increments)
        table = self.map(4, usage)
        assert len(table) == sealed and max(table, default=-1) < first_free
        assert sum(units for units, _ in table.values()) == live
        places, written = self.map(2, middle), dict(self.entries(owners))
        moved = {mba: places[mba][0] for mba in self.changes[2] if mba in places}
        written |= {pba: mba for mba, pba in moved.items() if pba < ALIAS}
        owned = {pba: mba for mba, (pba, _) in places.items() if pba < ALIAS}
        assert owned.items() <= written.items()
        assert len(owned) <= live and not self.changes[3] and not self.changes[5]
        self.chunks = {mba: self.chunk(*place) for mba, place in places.items() if place[0] < ALIAS}
        shared = {mba: pba - ALIAS for mba, (pba, _) in places.items() if pba >= ALIAS}
        self.chunks |= {mba: self.chunks[target] for mba, target in shared.items()}
        self.shared, self.references = shared, self.map(7, references)
        for *mark, mba in ((key, *value) for key, value in self.map(6, index).items()):
            assert hashlib.blake2b(
                self.stored(places[mba][0]), digest_size=24
            ).digest() == struct.pack("<3Q", *mark)
        self.live: dict[int, bytes] = {}
        self.snapshots: dict[str, dict[int, bytes]] = {}
        for _, (*words, root, _, _, _, cursor, state) in self.entries(views):
            if cursor:
                continue  # of what it leads to, something may be gone
            leads_to = self.map(1, root) if state == 0 else dict(self.entries(root))
            content = {lba: self.chunks[mba] for lba, mba in leads_to.items()}
            if state == 0:
                self.live = content
            elif state == 1:
                name = struct.pack("<8Q", *words).rstrip(b"\0").decode()
                self.snapshots[name] = content
        assert max(set().union(*self.used.values())) < first_unused <= self.shape["pages"]
        self.reclaiming = any(entry[-2] for _, entry in self.entries(views))
        assert self.reclaiming or [len(self.used[kind]) for kind in sorted(LEAF)] == used
        for kind, lba, count, name, payload in self.records(position, sequence, generation):
            self.replay(kind, lba, count, name, payload)

    def u32(self, at: int) -> int:
        (value,) = struct.unpack_from("<I", self.data, at)
        return int(value)

    def slot(self, which: int) -> tuple[int, ...] | None:
        page = self.data[self.performance + 4096 * which :][:4096]
        if page[:8] != b"LFSCHECK" or struct.unpack_from("<I", page, 8)[0] != crc(page[12:]):
            return None
        return struct.unpack_from("<QQQQI20Q", page, 12)

    def changed(self, last: int) -> dict[int, dict[int, Any]]:
        stream = b""
        while last:
            page, checksum = last & 0xFFFFFFFF, last >> 32
            stored = self.data[self.pages + 4096 * page :][:4096]
            magic, check, number, _, last, size = struct.unpack_from("<4sIQQQI", stored)
            assert magic == b"LFSI" and check == crc(stored[8:]) == checksum and number == page
            assert not any(stored[40 + size :])
            stream = stored[40 : 40 + size] + stream
        changes: dict[int, dict[int, Any]] = {kind: {} for kind in LEAF}
        at = 0
        while at < len(stream):
            kind, put, gone, wide = struct.unpack_from("<HHHH", stream, at)
            at += 8
            columns: list[list[int]] = []
            for field, count in [*((field, put) for field in "Q" + LEAF[kind]), ("Q", gone)]:
                least = 0
                if field == "Q" and not wide & 1 << len(columns):
                    (least,) = struct.unpack_from("<Q", stream, at)
                    field, at = "I", at + 8
                columns.append(
                    [least + n for n in struct.unpack_from(f"<{count}{field}", stream, at)]
                )
                at += struct.calcsize(f"<{count}{field}")
            keys, *fields, removed = columns
            for key, value in zip(keys, zip(*fields, strict=True), strict=True):
                changes[kind][key] = value[0] if len(value) == 1 else value
            changes[kind] |= dict.fromkeys(removed)
        return changes

    def map(self, kind: int, pointer: int) -> dict[int, Any]:
        entries = {**dict(self.entries(pointer)), **self.changes[kind]}
        return {key: value for key, value in entries.items() if value is not None}

    def entries(self, pointer: int) -> Iterator[tuple[int, Any]]:
        if not pointer:
            return
        page, checksum = pointer & 0xFFFFFFFF, pointer >> 32
        node = self.data[self.pages + 4096 * page :][:4096]
        magic, check, number, _, kind, level, count = struct.unpack_from("<4sIQQHHH", node)
        assert magic == b"LFSN" and check == crc(node[8:]) == checksum and number == page
        self.used[kind].add(page)
        keys = struct.unpack_from(f"<{count}Q", node, 32)
        columns, at = [], 32 + 8 * count
        for field in "Q" if level else LEAF[kind]:
            columns.append(struct.unpack_from(f"<{count}{field}", node, at))
            at += struct.calcsize(f"<{count}{field}")
        assert not any(node[at:])
        for key, value in zip(keys, zip(*columns, strict=True), strict=True):
            if level:
                yield from self.entries(value[0])
            else:
                yield key, value[0] if len(value) == 1 else value

    def chunk(self, pba: int, check: int) -> bytes:
        data = self.stored(pba)
        assert crc(data) == check
        return (
            data
            if len(data) == self.shape["block_bytes"]
            else zstandard.ZstdDecompressor().decompress(data)
        )

    def stored(self, pba: int) -> bytes:
        size = length = self.shape["block_bytes"]
        at = pba * size
        if self.shape.get("compression"):
            at, length = (pba >> 3) * size // 8, (pba % 8 + 1) * size // 8
        return self.data[self.capacity + at :][:length]

    def records(
        self, position: int, sequence: int, generation: int
    ) -> Iterator[tuple[int, int, int, str, bytes]]:
        size = self.shape["log_bytes"]
        ring = self.data[self.performance + 8192 :][:size] * 2
        while True:
            record = ring[position % size :]
            magic, check, number, era, kind, name_length, lba, count, length, flushed = (
                struct.unpack_from("<4sIQIHHQIIQ", record)
            )
            end = -(-(48 + name_length + length) // 512) * 512
            follows = number == sequence and (era == generation or kind == 1 and era > generation)
            if magic != b"LFSR" or check != crc(record[8:end]) or not follows:
                return
            assert flushed < number
            yield (
                kind,
                lba,
                count,
                record[48 : 48 + name_length].decode(),
                record[48 + name_length :][:length],
            )
            position, sequence, generation = position + end, sequence + 1, era

    def replay(self, kind: int, lba: int, count: int, name: str, payload: bytes) -> None:
        size = self.shape["block_bytes"]
        match kind:
            case 8:
                writes = struct.unpack_from("<I", payload)[0]
                at = 4 + 12 * writes
                for lba, blocks in struct.iter_unpack("<QI", payload[4:at]):
                    self.replay(2, lba, blocks, "", payload[at : at + blocks * size])
                    at, count = at + blocks * size, count - blocks
                assert at == len(payload) and not count
            case 2:
                self.live |= {lba + at: payload[at * size : (at + 1) * size] for at in range(count)}
            case 3:
                self.live = {
                    at: data for at, data in self.live.items() if not lba <= at < lba + count
                }
            case 4:
                self.snapshots[name] = dict(self.live)
            case 5:
                del self.snapshots[name]
            case 6:
                self.live = dict(self.snapshots[name])
            case 7:
                per = self.shape["segment_blocks"]
                (segments,) = struct.unpack_from("<I", payload)
                for segment, *checks in struct.iter_unpack(
                    f"<{1 + per}I", payload[4 : 4 + segments * 4 * (1 + per)]
                ):
                    slots = [segment * per + at for at in range(per)]
                    pbas = [
                        slot * 64 + 7 if self.shape.get("compression") else slot for slot in slots
                    ]
                    self.live |= {
                        lba + at: self.chunk(pba, check)
                        for at, (pba, check) in enumerate(zip(pbas, checks, strict=True))
                    }
                    lba, count = lba + per, count - per
                self.replay(2, lba, count, "", payload[4 + segments * 4 * (1 + per) :])

    def content(self, view: dict[int, bytes]) -> bytes:
        zero = bytes(self.shape["block_bytes"])
        return b"".join(view.get(lba, zero) for lba in range(self.shape["blocks"]))


@pytest.mark.parametrize(
    "options", REDUCTIONS, ids=lambda options: " and ".join(options) or "as it is"
)
def test_a_reader_written_from_the_document_reads_every_view(
    make: Callable[..., LogStructuredDisk], folder: Path, options: dict[str, Any]
) -> None:
    disk = make(40, segments=60, log_bytes=16384 - 512, **options)
    for number in range(1, 120):
        disk.write(number * 7 % 40, block(number % 50 if options else number))
        if number % 17 == 0:
            disk.snapshot(f"s{number}")
        if number == 60:
            disk.delete("s34")
            disk.checkpoint()
        if number == 90:
            disk.write(5, b"".join(block(200 + at) for at in range(21)))
        if number == 70:
            disk.revert("s51")
            disk.unmap(3, 9)
        if number in (103, 105, 108, 111):
            disk.checkpoints.run(whole=number == 103)
        if number == 115:
            disk.write_many([(2, block(301)), (10, block(302) + block(303)), (2, block(304))])
    disk.flush()
    for device in ("device-0", "device-1"):
        reader = Reader(folder / device)
        assert reader.increments >= 3 and None in reader.changes[2].values()
        assert bool(reader.shared and reader.references) == options.get("deduplication", False)
        assert reader.content(reader.live) == disk.read(0, 40)
        assert reader.snapshots.keys() == disk.state.views.names.keys()
        for name, view in reader.snapshots.items():
            assert reader.content(view) == disk.read(0, 40, name)
