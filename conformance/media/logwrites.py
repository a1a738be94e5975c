"""Logs of writes in the format of Linux's dm-log-writes, and crash states made from them.

qemu's driver blklogwrites writes this format.

The format (Documentation/admin-guide/device-mapper/log-writes.rst and drivers/md/dm-log-writes.c
of Linux): sector 0 is a superblock; each entry after it takes one sector, with little-endian
numbers

    sector 8 | number of sectors 8 | flags 8 | length of a mark's text 8

and its data in the sectors behind it, but for a discard, which has none.
"""

import random
import struct
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

SECTOR = 512  # bytes; also what a power cut tears a write at
SUPERBLOCK = struct.Struct("<QQQI")
MAGIC, VERSION = 0x6A736677736872, 1
ENTRY = struct.Struct("<QQQQ")
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
START = SECTOR  # the byte at which the first entry begins
WRITTEN_SECONDS = 5.0  # time limit to finish an entry that was begun


class BadLog(Exception):
    """The file is no log of writes. The message is one line."""


class Write(NamedTuple):
    """One entry of the log. `data` has the length of the range; a discard has zeroes."""

    offset: int  # bytes
    data: bytes
    flags: int

    @property
    def moves(self) -> bool:
        """True if it is a write or a discard, and not a flush alone."""
        return bool(self.data)

    def atoms(self, size: int) -> list["Write"]:
        """Return its parts between multiples of `size` bytes: a torn write is some of them."""
        end = self.offset + len(self.data)
        bounds = [self.offset, *range(self.offset - self.offset % size + size, end, size), end]
        return [
            Write(at, self.data[at - self.offset : until - self.offset], self.flags)
            for at, until in pairwise(bounds)
        ]


def read(path: Path, start: int = START, until: int | None = None) -> tuple[list[Write], int]:
    """Return the entries from byte `start` to the end of the log, and the end. Raises BadLog.

    With `until`, those that begin at that byte or behind it are left out."""
    with path.open("rb") as log:
        if start == START:
            magic, version, _, sector_size = SUPERBLOCK.unpack_from(
                log.read(SECTOR).ljust(SECTOR, b"\0")
            )
            if magic and (magic, version, sector_size) != (
                MAGIC,
                VERSION,
                SECTOR,
            ):  # 0 until the first flush
                raise BadLog(f"{path}: no log of writes with sectors of {SECTOR} bytes")
        log.seek(start)
        data = log.read()
    most = len(data) if until is None else until - start
    return _entries(data, path, most), start + len(data) + -len(data) % SECTOR


def count(path: Path, start: int, end: int) -> tuple[int, int]:
    """Return how many writes begin from byte `start` on and before `end`, and where the next is.

    The log may be growing. Raises BadLog if an entry stays unwritten."""
    writes, deadline = 0, time.monotonic() + WRITTEN_SECONDS
    with path.open("rb", buffering=0) as log:
        while start < end:
            log.seek(start)
            header = log.read(ENTRY.size)
            _, sectors, flags, _ = ENTRY.unpack(header.ljust(ENTRY.size, b"\0"))
            if not sectors and not flags:  # its place is reserved, but it is not written yet
                if time.monotonic() > deadline:
                    raise BadLog(f"{path}: the entry at byte {start} is empty")
                time.sleep(0.0001)
                continue
            writes += sectors > 0
            start += SECTOR * (1 if flags & DISCARD else 1 + sectors)
    return writes, start


def _entries(data: bytes, path: Path, most: int) -> list[Write]:
    entries, at = [], 0
    while at + ENTRY.size <= len(data) and at < most:
        sector, sectors, flags, _ = ENTRY.unpack_from(data, at)
        at += SECTOR
        if flags & MARK:
            raise BadLog(f"{path}: marks are not read here")
        length = sectors * SECTOR
        if flags & DISCARD:
            entries.append(Write(sector * SECTOR, bytes(length), flags))
            continue
        content = data[at : at + length]
        entries.append(
            Write(sector * SECTOR, content.ljust(length, b"\0"), flags)
        )  # zeroes at the end may be a hole
        at += length
    return entries


class Media:
    """A device: what it holds for certain (`stable`), and the writes since its last flush."""

    def __init__(self, content: bytes, atom: int = SECTOR) -> None:
        """`atom` is how many bytes, aligned, are written whole: a multiple of the sector."""
        self.stable = bytearray(content)
        self._atom = atom
        self.pending: list[Write] = []

    def take(self, entries: Iterable[Write]) -> None:
        """Give the device these entries, in order.

        A flush makes all writes before it stable. FUA (forced unit access) makes the write itself
        stable."""
        for entry in entries:
            if entry.flags & FLUSH:
                self._settle(self.pending)
                self.pending = []
            if entry.moves:
                self.pending.append(entry)
            if entry.flags & FUA and entry.moves:
                self._settle(
                    [entry]
                )  # and stays pending: what is older must not come back on top of it

    def cut_power(self, choose: random.Random) -> bytes:
        """Keep some of the pending writes, some torn; return what the device holds then."""
        for entry in survivors(self.pending, choose, self._atom):
            self._settle([entry])
        self.pending = []
        return bytes(self.stable)

    def _settle(self, entries: Iterable[Write]) -> None:
        for offset, data, _ in entries:
            end = offset + len(data)
            if end > len(self.stable):
                self.stable.extend(bytes(end - len(self.stable)))
            self.stable[offset:end] = data


def survivors(pending: list[Write], choose: random.Random, atom: int = SECTOR) -> Iterator[Write]:
    """Yield a subset of unflushed writes, in order: all, none, a prefix, or each by chance.

    One write in four is torn, between aligned `atom`s of bytes."""
    way = choose.randrange(8)
    until = choose.randrange(len(pending) + 1)
    odds = choose.choice((0.2, 0.5, 0.8, 0.95))
    for index, entry in enumerate(pending):
        survives = (True, False, index < until)[way] if way < 3 else choose.random() < odds
        if entry.flags & FUA or survives and choose.randrange(4):
            yield entry
        elif survives:
            yield from (part for part in entry.atoms(atom) if choose.getrandbits(1))
