"""Devices: files of fixed size that are read, written and flushed at byte offsets."""

import os
from pathlib import Path
from typing import Protocol


class Device(Protocol):
    """A device as a component uses it. Every method may raise OSError or PowerCut."""

    @property
    def name(self) -> str:
        """The name of the device in its enclosure."""

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from a byte offset on."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes at a byte offset; they are durable after the next flush."""

    def flush(self) -> None:
        """Make every earlier write durable."""

    def close(self) -> None:
        """Close the device."""


class FileDevice:
    """A device in a file of its own.

    If the file was truncated, the missing part reads as zeroes, so damage always shows as wrong
    content, which checksums find. Without `sync` a flush does not wait for the medium: a test wants
    that, but a real power cut would lose data.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.name = path.name
        self._sync = sync
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    @staticmethod
    def create(path: Path, size: int) -> None:
        """Make an all-zero device of `size` bytes. Raises FileExistsError if the file exists."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.truncate(file, size)
            os.fsync(file)
        finally:
            os.close(file)

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from a byte offset on. Raises OSError."""
        return os.pread(self._file, length, offset).ljust(length, b"\0")

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes at a byte offset. Raises OSError."""
        written = os.pwrite(self._file, data, offset)
        while written < len(data):
            written += os.pwrite(self._file, data[written:], offset + written)

    def flush(self) -> None:
        """Make every earlier write durable, if the device is in `sync`. Raises OSError."""
        if self._sync:
            os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
