"""Files in memory for an engine in this process: a power cut leaves what was synced, and some more.

The rules are those of POSIX: without a sync nothing is certain, and any subset of the writes
survives, torn at sectors. A file that was never synced may be missing. A file that was removed may
be back, unless its folder was synced.
"""

import random
import threading
from dataclasses import dataclass, field

from conformance.media.logwrites import Write, survivors

TRUNCATE = 1 << 8  # a flag of Write: the file is as long as `offset` says


class PowerOff(Exception):
    """The power has failed: nothing is written any more."""


@dataclass
class File:
    """A file: what it holds now, what it held at its last sync, and the writes since."""

    now: bytearray = field(default_factory=bytearray)
    stable: bytearray | None = None  # None: it was never synced
    pending: list[Write] = field(default_factory=list)  # since then


class Files:
    """A folder of files by name, for any number of threads. Offsets and lengths are in bytes.

    Every method that changes a file raises PowerOff once the power has failed."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        self._removed: dict[str, File] = {}  # and the folder was not synced since
        self._left: int | None = None  # writes until the power fails
        self.off = False
        self._changing = threading.RLock()

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def size(self, name: str) -> int:
        """Return the length of a file in bytes."""
        return len(self._files[name].now)

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset` on."""
        return bytes(self._files[name].now[offset : offset + length])

    def make(self, name: str) -> None:
        """Create an empty file unless it exists."""
        with self._changing:
            self._changes()
            self._files.setdefault(name, File())

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write the data at `offset`; the file grows if needed."""
        self._changed(name, Write(offset, bytes(data), 0))

    def truncate(self, name: str, length: int) -> None:
        """Make the file `length` bytes long."""
        self._changed(name, Write(length, b"", TRUNCATE))

    def sync(self, name: str) -> None:
        """Make everything in the file durable."""
        with self._changing:
            self._changes()
            file = self._files[name]
            file.stable, file.pending = bytearray(file.now), []

    def remove(self, name: str) -> None:
        """Remove a file; after a power cut it may be back, see `sync_folder`."""
        with self._changing:
            self._changes()
            self._removed[name] = self._files.pop(name)

    def sync_folder(self) -> None:
        """Make removals durable. (A new file is durable from its own first sync on.)"""
        with self._changing:
            self._changes()
            self._removed.clear()

    def cut_after(self, writes: int | None) -> None:
        """Let the power fail after `writes` more writes; never if None."""
        self._left = writes

    def after_failure(self, choose: random.Random) -> "Files":
        """Cut the power if it is still on; return the files as they are found afterwards.

        They hold what was synced, and some of the writes since, chosen by `choose`."""
        with self._changing:
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
        with self._changing:
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
