"""Files under an engine in this process: memory that knows what was synced, and what a power cut may leave of the rest.

The rules are POSIX's, no kinder: without a sync nothing is certain, and writes survive in any subset, torn at sectors. A
file that was never synced may be missing; one that was removed may be back, unless its folder was synced.
"""

import random
from dataclasses import dataclass, field

from conformance.media.logwrites import Write, survivors

TRUNCATE = 1 << 8  # a flag of Write: the file is as long as `offset` says


class PowerOff(Exception):
    """The power has failed: nothing is written any more."""


@dataclass
class File:
    now: bytearray = field(default_factory=bytearray)
    stable: bytearray | None = None  # None: it was never synced
    pending: list[Write] = field(default_factory=list)  # since then


class Files:
    """A folder of files by name. Offsets and lengths are in bytes. What changes something raises PowerOff once it failed."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        self._removed: dict[str, File] = {}  # and the folder was not synced since
        self._left: int | None = None  # writes until the power fails
        self.off = False

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def size(self, name: str) -> int:
        return len(self._files[name].now)

    def read(self, name: str, offset: int, length: int) -> bytes:
        return bytes(self._files[name].now[offset : offset + length])

    def make(self, name: str) -> None:
        self._changes()
        self._files.setdefault(name, File())

    def write(self, name: str, offset: int, data: bytes) -> None:
        self._changed(name, Write(offset, bytes(data), 0))

    def truncate(self, name: str, length: int) -> None:
        self._changed(name, Write(length, b"", TRUNCATE))

    def sync(self, name: str) -> None:
        self._changes()
        file = self._files[name]
        file.stable, file.pending = bytearray(file.now), []

    def remove(self, name: str) -> None:
        self._changes()
        self._removed[name] = self._files.pop(name)

    def sync_folder(self) -> None:
        """What was removed stays removed. (What was made is certain from its own first sync on.)"""
        self._changes()
        self._removed.clear()

    def cut_after(self, writes: int | None) -> None:
        """The power fails when as many writes have been made from now on; never, if None."""
        self._left = writes

    def after_failure(self, choose: random.Random) -> "Files":
        """The power fails now, if it has not yet. What the next owner finds: what was synced, and some of the rest."""
        self.off = True
        found = Files()
        for name, file in {**self._removed, **self._files}.items():
            forgotten = name in self._removed and name not in self._files
            if (forgotten or file.stable is None) and choose.getrandbits(1):
                continue
            content = bytearray(file.stable or b"")
            for write in survivors(file.pending, choose):
                _put(content, write)
            found._files[name] = File(bytearray(content), content)
        return found

    def _changed(self, name: str, write: Write) -> None:
        self._changes()
        file = self._files[name]
        _put(file.now, write)
        file.pending.append(write)
        if self._left is not None:
            self._left -= 1
            self.off = self._left <= 0

    def _changes(self) -> None:
        if self.off:
            raise PowerOff


def _put(content: bytearray, write: Write) -> None:
    end = write.offset + len(write.data)
    if end > len(content):
        content.extend(bytes(end - len(content)))
    if write.flags & TRUNCATE:
        del content[write.offset :]
    else:
        content[write.offset : end] = write.data
