"""A client of NBD (network block device): libnbd, with a time limit on every call.

libnbd is called through ctypes, so that it works in any virtual environment.
"""

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

LIBRARY = "libnbd.so.0"
NO_HOLE = 2  # of nbd_aio_zero: allocate rather than punch
FUA = 1  # of nbd_aio_pwrite: durable when it is answered


class Unavailable(Exception):
    """libnbd is not installed. One line."""


class NbdError(Exception):
    """The server or the library refused a request, or the connection broke.

    `errno` is 0 if none was given."""

    def __init__(self, message: str, errno: int) -> None:
        super().__init__(message)
        self.errno = errno


class _Completion(ctypes.Structure):
    _fields_ = [
        ("callback", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


NOTHING = _Completion(None, None, None)
HANDLE, SIZE, OFFSET, FLAGS = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint32
SIGNATURES: dict[str, tuple[Any, ...]] = {  # the result, then the arguments, as in libnbd.h
    "nbd_create": (HANDLE,),
    "nbd_close": (None, HANDLE),
    "nbd_get_error": (ctypes.c_char_p,),
    "nbd_get_errno": (ctypes.c_int,),
    "nbd_set_strict_mode": (ctypes.c_int, HANDLE, FLAGS),
    "nbd_set_request_structured_replies": (ctypes.c_int, HANDLE, ctypes.c_bool),
    "nbd_aio_connect_uri": (ctypes.c_int, HANDLE, ctypes.c_char_p),
    "nbd_get_size": (ctypes.c_int64, HANDLE),
    "nbd_aio_is_connecting": (ctypes.c_int, HANDLE),
    "nbd_aio_is_ready": (ctypes.c_int, HANDLE),
    "nbd_poll": (ctypes.c_int, HANDLE, ctypes.c_int),
    "nbd_aio_command_completed": (ctypes.c_int, HANDLE, ctypes.c_uint64),
    "nbd_aio_pread": (ctypes.c_int64, HANDLE, ctypes.c_void_p, SIZE, OFFSET, _Completion, FLAGS),
    "nbd_aio_pwrite": (ctypes.c_int64, HANDLE, ctypes.c_void_p, SIZE, OFFSET, _Completion, FLAGS),
    "nbd_aio_zero": (ctypes.c_int64, HANDLE, OFFSET, OFFSET, _Completion, FLAGS),
    "nbd_aio_flush": (ctypes.c_int64, HANDLE, _Completion, FLAGS),
}


def library() -> ctypes.CDLL:
    """Return libnbd, loaded once. Raises Unavailable."""
    global _library
    if _library is None:
        try:
            loaded = ctypes.CDLL(LIBRARY)
        except OSError:
            raise Unavailable(
                f"{LIBRARY} is not installed: run make engines, or install libnbd0"
            ) from None
        for name, (result, *arguments) in SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
        _library = loaded
    return _library


_library: ctypes.CDLL | None = None


class NbdDevice:
    """A block device behind an NBD URI. Offsets and lengths are in bytes.

    Requests that the server must refuse are sent all the same. Every method raises NbdError, or
    TimeoutError after `patience` seconds; the constructor raises Unavailable without libnbd."""

    def __init__(self, uri: str, patience: float) -> None:
        self._nbd, self._patience = library(), patience
        self._handle = self._nbd.nbd_create()
        try:
            self._done(self._nbd.nbd_set_strict_mode(self._handle, 0))
            self._done(
                self._nbd.nbd_set_request_structured_replies(self._handle, False)
            )  # one exchange less
            self._done(self._nbd.nbd_aio_connect_uri(self._handle, uri.encode()))
            self._wait(
                lambda: not self._nbd.nbd_aio_is_connecting(self._handle), f"no NBD server at {uri}"
            )
            if not self._nbd.nbd_aio_is_ready(self._handle):
                self._done(-1)
            self.size: int = self._done(self._nbd.nbd_get_size(self._handle))
        except BaseException:
            self.close()
            raise

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on."""
        buffer = ctypes.create_string_buffer(length)
        self._command(self._nbd.nbd_aio_pread(self._handle, buffer, length, offset, NOTHING, 0))
        return buffer.raw

    def write(self, offset: int, data: bytes, durable: bool = False) -> None:
        """Write the data at `offset`; with the flag FUA if it is to be durable when answered."""
        flags = FUA if durable else 0
        self._command(
            self._nbd.nbd_aio_pwrite(self._handle, data, len(data), offset, NOTHING, flags)
        )

    def zero(self, offset: int, length: int) -> None:
        """Make the range read as zeroes; the server may punch a hole.

        NBD's trim promises nothing about what is read, so it is no unmap."""
        self._command(self._nbd.nbd_aio_zero(self._handle, length, offset, NOTHING, 0))

    def flush(self) -> None:
        """Make durable what was written before."""
        self._command(self._nbd.nbd_aio_flush(self._handle, NOTHING, 0))

    def close(self) -> None:
        """Close the connection."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._nbd.nbd_close(handle)

    def _command(self, cookie: int) -> None:
        self._done(cookie)
        self._wait(
            lambda: self._done(self._nbd.nbd_aio_command_completed(self._handle, cookie)),
            "no answer from NBD",
        )

    def _wait(self, ready: Callable[[], int], late: str) -> None:
        deadline = time.monotonic() + self._patience
        while not ready():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{late} within {self._patience:g} seconds")
            self._done(self._nbd.nbd_poll(self._handle, int(left * 1000) + 1))

    def _done(self, result: int) -> int:
        if result == -1:
            number = self._nbd.nbd_get_errno()
            text = (self._nbd.nbd_get_error() or b"").decode(errors="replace")
            raise NbdError(text or os.strerror(number), number)
        return result
