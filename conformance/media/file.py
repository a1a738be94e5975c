"""A file, or a block device of the system, as a block device of the kit: pread and pwrite."""

import ctypes
import os
from threading import Lock

PUNCH_HOLE_KEEP_SIZE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE of linux/falloc.h


class FileDevice:
    """A file of the size of the disk. Offsets and lengths are in bytes.

    A read and a write exclude each other: ext4 may return half of a write that is under way, and
    that would look like a fault of the target. Every method raises OSError."""

    def __init__(self, path: str, writable: bool = True) -> None:
        self._file = os.open(path, os.O_RDWR if writable else os.O_RDONLY)
        self.size = os.lseek(self._file, 0, os.SEEK_END)
        self._alone = Lock()

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on; fewer at the end of the file."""
        with self._alone:
            return os.pread(self._file, length, offset)

    def write(self, offset: int, data: bytes, durable: bool = False) -> None:
        """Write all of the data at `offset`; return when it is durable if that is asked for."""
        with self._alone:
            while data:
                done = os.pwritev(self._file, [data], offset, os.RWF_DSYNC if durable else 0)
                data, offset = data[done:], offset + done

    def zero(self, offset: int, length: int) -> None:
        """Punch a hole, which reads as zeroes."""
        libc = ctypes.CDLL(None, use_errno=True)
        place = ctypes.c_int64(offset), ctypes.c_int64(length)
        with self._alone:
            failed = libc.fallocate(self._file, PUNCH_HOLE_KEEP_SIZE, *place) != 0
        if failed:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def flush(self) -> None:
        """Make durable what was written before."""
        os.fsync(self._file)

    def end(self) -> None:
        """Do nothing: what is sent has happened."""

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
