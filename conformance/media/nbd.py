"""A client of NBD (network block device): libnbd, with a time limit on every call.

Several threads may use one connection, and several connections may be used as one device.

libnbd is called through ctypes, so that it works in any virtual environment.
"""

import ctypes
import errno
import os
import select
import threading
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

LIBRARY = "libnbd.so.0"
NO_HOLE = 2  # flag of nbd_aio_zero: allocate rather than punch
FUA = 1  # flag of nbd_aio_pwrite: durable when it is answered
CONNECTIONS = 4  # at most, to a device that allows several
WRITING = 2  # result of nbd_aio_get_direction
LONGEST_POLL = 50  # milliseconds: another thread may have found that its request waits to be sent


class Unavailable(Exception):
    """libnbd is not installed. The message is one line."""


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
    "nbd_can_multi_conn": (ctypes.c_int, HANDLE),
    "nbd_aio_get_fd": (ctypes.c_int, HANDLE),
    "nbd_aio_get_direction": (ctypes.c_uint, HANDLE),
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
    """A block device behind an NBD URI, by one connection. Offsets and lengths are in bytes.

    Requests of several threads are in flight together. Requests that the server must refuse are
    sent all the same. Every method raises NbdError, or TimeoutError after `patience` seconds; the
    constructor raises Unavailable without libnbd."""

    def __init__(self, uri: str, patience: float) -> None:
        self._nbd, self._patience = library(), patience
        self._changed = threading.Condition()  # guards what follows
        self._flying: dict[int, Any] = {}  # requests not yet answered, and their buffers
        self._answered: dict[int, NbdError | None] = {}
        self._polled = False  # whether a thread waits for the server, on behalf of all
        self._ended = False  # whether nothing is sent any more
        self._handle = self._nbd.nbd_create()
        try:
            self._done(self._nbd.nbd_set_strict_mode(self._handle, 0))
            self._done(
                self._nbd.nbd_set_request_structured_replies(self._handle, False)
            )  # one exchange less
            self._done(self._nbd.nbd_aio_connect_uri(self._handle, uri.encode()))
            self._connect(uri)
            self.size: int = self._done(self._nbd.nbd_get_size(self._handle))
            self.multi_conn = bool(self._done(self._nbd.nbd_can_multi_conn(self._handle)))
        except BaseException:
            self.close()
            raise

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on."""
        buffer = ctypes.create_string_buffer(length)
        self._command(self._nbd.nbd_aio_pread, buffer, buffer, length, offset, NOTHING, 0)
        return buffer.raw

    def write(self, offset: int, data: bytes, durable: bool = False) -> None:
        """Write the data at `offset`; with the flag FUA if it is to be durable when answered."""
        flags = FUA if durable else 0
        self._command(self._nbd.nbd_aio_pwrite, data, data, len(data), offset, NOTHING, flags)

    def zero(self, offset: int, length: int) -> None:
        """Make the range read as zeroes; the server may punch a hole.

        NBD's trim promises nothing about what is read, so it is no unmap."""
        self._command(self._nbd.nbd_aio_zero, None, length, offset, NOTHING, 0)

    def flush(self) -> None:
        """Make durable what was written before."""
        self._command(self._nbd.nbd_aio_flush, None, NOTHING, 0)

    def end(self) -> None:
        """Send no request from now on. What was sent may still be answered."""
        with self._changed:
            self._ended = True

    def close(self) -> None:
        """Close the connection. Nobody may be using it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._nbd.nbd_close(handle)

    def _connect(self, uri: str) -> None:
        deadline = time.monotonic() + self._patience
        while self._nbd.nbd_aio_is_connecting(self._handle):
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no NBD server at {uri} within {self._patience:g} seconds")
            self._done(self._nbd.nbd_poll(self._handle, int(left * 1000) + 1))
        if not self._nbd.nbd_aio_is_ready(self._handle):
            self._done(-1)

    def _command(self, command: Callable[..., int], buffer: Any, *arguments: Any) -> None:
        """Send a request and wait for its answer. The buffer lives as long as the request."""
        deadline = time.monotonic() + self._patience
        with self._changed:
            if self._ended:
                raise NbdError("the connection has ended", errno.ENOTCONN)
            cookie = self._done(command(self._handle, *arguments))
            self._flying[cookie] = buffer
            while cookie not in self._answered:
                if deadline <= time.monotonic():
                    raise TimeoutError(f"no answer from NBD within {self._patience:g} seconds")
                if self._polled:
                    self._changed.wait(deadline - time.monotonic())
                else:
                    self._poll()
            error = self._answered.pop(cookie)
        if error is not None:
            raise error

    def _poll(self) -> None:
        """Wait for the server on behalf of all threads, then see which requests are answered."""
        ready = select.poll()
        writing = self._nbd.nbd_aio_get_direction(self._handle) & WRITING
        file = self._nbd.nbd_aio_get_fd(self._handle)
        if file >= 0:
            ready.register(file, select.POLLIN | (select.POLLOUT if writing else 0))
        self._polled = True
        self._changed.release()
        try:
            ready.poll(LONGEST_POLL)
        finally:
            self._changed.acquire()
            self._polled = False
            broken = self._nbd.nbd_poll(self._handle, 0) == -1
            failure = self._error() if broken else None
            for cookie in list(self._flying):
                done = self._nbd.nbd_aio_command_completed(self._handle, cookie)
                if done or failure:
                    self._answered[cookie] = self._error() if done == -1 else failure
                    del self._flying[cookie]
            self._changed.notify_all()

    def _done(self, result: int) -> int:
        if result == -1:
            raise self._error()
        return result

    def _error(self) -> NbdError:
        """Return what the library says went wrong last, in this thread."""
        number = self._nbd.nbd_get_errno()
        text = (self._nbd.nbd_get_error() or b"").decode(errors="replace")
        return NbdError(text or os.strerror(number), number)


class Connections:
    """A block device behind an NBD URI, by several connections that take turns.

    There are `most` of them if the server says multi-conn, that is, that a flush on one covers what
    was answered on the others; else there is one. Raises what NbdDevice raises."""

    def __init__(self, uri: str, patience: float, most: int = CONNECTIONS) -> None:
        first = NbdDevice(uri, patience)
        self.size, self._all = first.size, [first]
        try:
            while first.multi_conn and len(self._all) < most:
                self._all.append(NbdDevice(uri, patience))
        except BaseException:
            self.close()
            raise
        self._turns = cycle(self._all)

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on."""
        return next(self._turns).read(offset, length)

    def write(self, offset: int, data: bytes, durable: bool = False) -> None:
        """Write the data at `offset`; durable when answered if that is asked for."""
        next(self._turns).write(offset, data, durable)

    def zero(self, offset: int, length: int) -> None:
        """Make the range read as zeroes; the server may punch a hole."""
        next(self._turns).zero(offset, length)

    def flush(self) -> None:
        """Make durable what was written before, by any connection."""
        next(self._turns).flush()

    def end(self) -> None:
        """Send no request from now on. What was sent may still be answered."""
        for device in self._all:
            device.end()

    def close(self) -> None:
        """Close all connections. Nobody may be using them."""
        for device in self._all:
            device.close()

    def __len__(self) -> int:
        return len(self._all)
