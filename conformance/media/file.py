"""A file or a block device as a device: the same methods as `nbd.Device`, by pread and pwrite."""

import ctypes
import os

PUNCH_HOLE_KEEP_SIZE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE of linux/falloc.h


class Device:
    """The file, whose size is that of the disk. Offsets and lengths are in bytes; every method raises OSError."""

    def __init__(self, path: str, writable: bool = True):
        self._file = os.open(path, os.O_RDWR if writable else os.O_RDONLY)
        self.size = os.lseek(self._file, 0, os.SEEK_END)

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._file, length, offset)

    def write(self, offset: int, data: bytes) -> None:
        while data:
            done = os.pwrite(self._file, data, offset)
            data, offset = data[done:], offset + done

    def zero(self, offset: int, length: int) -> None:
        """Punch a hole: it reads as zeroes."""
        libc = ctypes.CDLL(None, use_errno=True)
        place = ctypes.c_int64(offset), ctypes.c_int64(length)
        if libc.fallocate(self._file, PUNCH_HOLE_KEEP_SIZE, *place) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def flush(self) -> None:
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)
