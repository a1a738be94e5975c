"""A device is a file of fixed size that is read, written and flushed at byte offsets."""

import os
from pathlib import Path
from typing import Protocol


class Device(Protocol):
    """What a component needs of a device. Every method may raise OSError or PowerCut."""

    name: str

    def read(self, offset: int, length: int) -> bytes: ...

    def write(self, offset: int, data: bytes) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class FileDevice:
    """A device in a file of its own.

    What lies behind the end of a file that was cut short reads as zeroes, so that damage is always met as
    wrong content and found by checksums. With `sync` off a flush does not wait for the medium: what a test
    wants, and what a real power cut would punish.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.name = path.name
        self._sync = sync
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    @staticmethod
    def create(path: Path, size: int) -> None:
        """Make an all-zero device of `size` bytes. Raises FileExistsError rather than overwrite one."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.truncate(file, size)
            os.fsync(file)
        finally:
            os.close(file)

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._file, length, offset).ljust(length, b"\0")

    def write(self, offset: int, data: bytes) -> None:
        written = os.pwrite(self._file, data, offset)
        while written < len(data):
            written += os.pwrite(self._file, data[written:], offset + written)

    def flush(self) -> None:
        if self._sync:
            os.fdatasync(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
