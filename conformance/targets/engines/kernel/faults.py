"""Faults injected around a driver: a judge that misses one would miss it in a driver too.

A fault of the disk changes what a power cut finds there: the guest itself reads what it wrote. A
fault of a request changes what the driver is asked."""

from collections.abc import Callable
from typing import Protocol

from conformance.contract import tagged_block
from conformance.media.logwrites import DISCARD, FLUSH, FUA, Write

EVERY = 3  # one write, or flush, in so many is hit
REACH = 64 << 10  # bytes that a wild discard takes along
AWAY = 4096  # bytes that a misplaced write is away from its place


class Places(Protocol):
    """The places on the disk that a fault knows of, by what the driver stores there."""

    superblock: range
    data: range


class Fault:
    """The driver without a fault. Each subclass changes one of the three methods."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._count = 0

    def logged(self, entries: list[Write]) -> list[Write]:
        """Return the writes that the disk with this fault logs for these."""
        return entries

    def left(self, content: bytes) -> bytes:
        """Return what a power cut leaves of the content."""
        return content

    def asked(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return what the driver is asked instead; () for nothing."""
        return words

    def _hit(self) -> bool:
        self._count += 1
        return self._count % EVERY == 0

    def _in(self, place: range, entry: Write) -> bool:
        return (
            entry.moves
            and place.start < entry.offset + len(entry.data)
            and entry.offset < place.stop
        )

    def _is_data(self, entry: Write) -> bool:
        """Return whether its place says so; if no place does, whether it has a block of the kit."""
        if self._places.data:
            return self._in(self._places.data, entry)
        return tagged_block.MAGIC in entry.data


class DropFlushes(Fault):
    """The disk covers nothing by a flush."""

    def logged(self, entries: list[Write]) -> list[Write]:
        return [entry._replace(flags=entry.flags & ~(FLUSH | FUA)) for entry in entries]


class DropSomeFlushes(Fault):
    """The disk drops one flush in a few."""

    def logged(self, entries: list[Write]) -> list[Write]:
        return [
            entry._replace(flags=entry.flags & ~FLUSH)
            if entry.flags & FLUSH and self._hit()
            else entry
            for entry in entries
        ]


class DropSuperblockFlush(Fault):
    """The superblock is not forced out: the flush after it is dropped, which stands for its FUA."""

    _written = False

    def logged(self, entries: list[Write]) -> list[Write]:
        result = []
        for entry in entries:
            if entry.flags & FLUSH and self._written:
                entry, self._written = entry._replace(flags=entry.flags & ~FLUSH), False
            self._written = self._written or self._in(self._places.superblock, entry)
            result.append(entry)
        return result


class LateData(Fault):
    """Data is late: the second flush after it makes it durable; metadata needs but one."""

    def __init__(self, places: Places) -> None:
        super().__init__(places)
        self._held: list[Write] = []

    def logged(self, entries: list[Write]) -> list[Write]:
        result = []
        for entry in entries:
            if entry.flags & FLUSH:
                result += [entry, *self._held]
                self._held = []
            elif self._is_data(entry):
                self._held.append(entry)
            else:
                result.append(entry)
        return result


class OldSuperblock(Fault):
    """A power cut brings back the superblock before the last one."""

    def __init__(self, places: Places) -> None:
        super().__init__(places)
        self._last: list[Write] = []

    def logged(self, entries: list[Write]) -> list[Write]:
        self._last += [entry for entry in entries if self._in(self._places.superblock, entry)]
        self._last = self._last[-2:]
        return entries

    def left(self, content: bytes) -> bytes:
        if len(self._last) < 2:
            return content
        offset, data, _ = self._last[0]
        return content[:offset] + data + content[offset + len(data) :]


class LostData(Fault):
    """One write of data in a few never reaches the medium, whatever is flushed."""

    def logged(self, entries: list[Write]) -> list[Write]:
        return [e for e in entries if not (self._is_data(e) and self._hit())]


class LostMetadata(Fault):
    """One write of metadata in a few never reaches the medium, whatever is flushed."""

    def logged(self, entries: list[Write]) -> list[Write]:
        return [
            entry for entry in entries if not entry.moves or self._is_data(entry) or not self._hit()
        ]


class Misplaced(Fault):
    """One write in a few goes to a wrong place."""

    def logged(self, entries: list[Write]) -> list[Write]:
        return [
            entry._replace(offset=entry.offset + AWAY) if entry.moves and self._hit() else entry
            for entry in entries
        ]


class TornFlushed(Fault):
    """One write in a few loses its second half, though a flush covered it."""

    def logged(self, entries: list[Write]) -> list[Write]:
        return [
            entry._replace(data=entry.data[: len(entry.data) // 2])
            if len(entry.data) > 512 and not entry.flags & DISCARD and self._hit()
            else entry
            for entry in entries
        ]


class WildDiscard(Fault):
    """A discard takes what is before it along."""

    def logged(self, entries: list[Write]) -> list[Write]:
        return [
            Write(entry.offset - REACH, entry.data + bytes(REACH), entry.flags)
            if entry.flags & DISCARD and entry.offset >= REACH
            else entry
            for entry in entries
        ]


class ForgetUnmap(Fault):
    """The driver answers a discard, and zeroes, without having done it."""

    def asked(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return () if words[0] in ("discard", "zero", "punch") and self._hit() else words


class ForgetFlush(Fault):
    """The driver answers a flush without having done it."""

    def asked(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return () if words[0] == "flush" else words


class ForgetWrite(Fault):
    """The driver answers a write without having done it, once in a while."""

    def asked(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return () if words[0] == "write" and self._hit() else words


FAULTS: dict[str, Callable[[Places], Fault]] = {
    "none": Fault,
    "drop-flushes": DropFlushes,
    "drop-some-flushes": DropSomeFlushes,
    "drop-superblock-flush": DropSuperblockFlush,
    "late-data": LateData,
    "old-superblock": OldSuperblock,
    "lost-data": LostData,
    "lost-metadata": LostMetadata,
    "misplaced": Misplaced,
    "torn-flushed": TornFlushed,
    "wild-discard": WildDiscard,
    "forget-unmap": ForgetUnmap,
    "forget-flush": ForgetFlush,
    "forget-write": ForgetWrite,
}
