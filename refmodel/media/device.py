"""Devices: files of fixed size that are read, written and flushed at byte offsets."""

import errno
import os
import stat
from pathlib import Path
from typing import Protocol

from refmodel.media.host import NOT_ALLOWED, explained

HEADER = 1 << 16  # bytes: labels, membership, checkpoint slots; a new device always has room there


class Device(Protocol):
    """A device as a component uses it.

    Every method may raise PowerCut, OSError if the device is at fault, HostRefused if the host is.
    """

    @property
    def name(self) -> str:
        """The name of the device in its enclosure."""

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from a byte offset on."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes at a byte offset; they are durable after the next flush."""

    def allocate(self, offset: int, length: int) -> None:
        """Have the host keep room for bytes that are to be written."""

    def flush(self) -> None:
        """Make every earlier write durable."""

    def close(self) -> None:
        """Close the device."""


class FileDevice:
    """A device in a file of its own.

    If the file was truncated, the missing part reads as zeroes, so damage always shows as wrong
    content, which checksums find. Without `sync` a flush does not wait for the medium: a test wants
    that, but a real power cut would lose data. A file that may not be written is opened for reads.
    Raises FileNotFoundError, HostRefused.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.name = path.name
        self._sync = sync
        self._not_allowed: OSError | None = None  # why the file may not be written
        self._file = -1  # closed
        try:
            try:
                self._file = opened(path, os.O_RDWR)
            except OSError as error:
                if error.errno not in NOT_ALLOWED:
                    raise
                self._not_allowed = error
                self._file = opened(path, os.O_RDONLY)
        except OSError as error:
            raise explained(error, self.name) from error

    @staticmethod
    def create(path: Path, size: int) -> None:
        """Make an all-zero device of `size` bytes.

        Raises FileExistsError if the file exists, HostRefused; then no file is left behind.
        """
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise explained(error, path.name) from error
        try:
            os.truncate(file, size)
            os.posix_fallocate(file, 0, min(size, HEADER))
            os.fsync(file)
        except OSError as error:
            path.unlink()
            raise explained(error, path.name) from error
        finally:
            os.close(file)

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from a byte offset on. Raises OSError, HostRefused."""
        try:
            return os.pread(self._file, length, offset).ljust(length, b"\0")
        except OSError as error:
            raise explained(error, self.name) from error

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes at a byte offset. Raises OSError, HostRefused; then some may be written."""
        try:
            written = os.pwrite(self._file, data, offset)
            while written < len(data):
                written += os.pwrite(self._file, data[written:], offset + written)
        except OSError as error:
            raise explained(self._not_allowed or error, self.name) from error

    def allocate(self, offset: int, length: int) -> None:
        """Have the host keep room for bytes, if its file system can. Raises OSError, HostFull."""
        try:
            os.posix_fallocate(self._file, offset, length)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
                raise explained(self._not_allowed or error, self.name) from error

    def flush(self) -> None:
        """Make every earlier write durable, if the device is in `sync`. Raises OSError."""
        if self._sync:
            os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file, if it is open: once, also if Ctrl-C interrupts it, since another file may
        have its number then.
        """
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self.close()  # nobody closes a device on which a power cut was never decided


def opened(path: Path, mode: int) -> int:
    """Open a file or a block device. What else there may be could keep a reader waiting for ever.

    Raises OSError."""
    file = os.open(path, mode | os.O_CLOEXEC | os.O_NONBLOCK)
    kind = os.fstat(file).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISBLK(kind):
        os.close(file)
        raise OSError(errno.ENOTBLK, "it is no file and no block device", path)
    return file
