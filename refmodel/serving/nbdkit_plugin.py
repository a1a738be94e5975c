"""The callbacks of nbdkit-python-plugin(3): the live view as the default export, and each snapshot
as a read-only export of its name.

nbdkit's blocksize filter turns requests into whole blocks. FUA (force unit access) is native: under
the crash profile `ack` every acknowledged write is durable anyway, under `prefix` a flush follows.
refmodel.cli.nbdkit_script is the script that nbdkit runs: it hands the command runner in.
"""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import nbdkit  # type: ignore[import-not-found]  # a module that exists inside nbdkit only

from refmodel.core.errors import DiskError, NoSpace, NotADisk, OutOfRange
from refmodel.registry import open_disk
from refmodel.serving.command_socket import RunCommand
from refmodel.serving.exit_status import explained
from refmodel.serving.nbdkit_launch import longest_request
from refmodel.serving.service import Export, Service
from refmodel.serving.thread_states import ThreadStates

ERRNO: dict[type[Exception], int] = {NoSpace: errno.ENOSPC, OutOfRange: errno.EINVAL}  # else EIO
GRACE = 0.5  # seconds that clients have to disconnect, once the server is to end


class Connection:
    """nbdkit's handle: an export, and the thread states of the threads that serve it."""

    def __init__(self, export: Export) -> None:
        self.export = export
        self.threads = ThreadStates()


class Plugin:
    """nbdkit's callbacks.

    nbdkit calls `config` first. `after_fork` opens the disk, `cleanup` closes it. A callback
    raises DiskError or OSError if the request fails, after it told nbdkit the errno.
    """

    service: Service  # from `after_fork` on

    def __init__(self, run_command: RunCommand) -> None:
        self._run_command = run_command
        self._settings: dict[str, str] = {}

    # Begin and end.

    def config(self, key: str, value: str) -> None:
        """Take a parameter of nbdkit's command line."""
        self._settings[key] = value

    def after_fork(self) -> None:
        """Open the disk and begin to serve it. If that fails, print one line and end nbdkit."""
        folder = Path(self._settings["disk"])
        try:
            disk = open_disk(folder, sync=self._settings["sync"] == "1")
        except (DiskError, NotADisk, OSError) as error:
            self._remove_socket()
            message, status = explained(error)
            print(f"refmodel: {message}", file=sys.stderr, flush=True)
            os._exit(status)
        self.service = Service(folder, disk, self._run_command)
        threading.Thread(target=self._await_end, args=(_end_signals(),), daemon=True).start()
        uri = f"nbd+unix:///?socket={self._settings['socket']}"
        print(f"refmodel: serving {folder} at {uri}", file=sys.stderr, flush=True)

    def cleanup(self) -> None:
        """Close the disk and remove the socket."""
        if self.service.close():
            self._remove_socket()

    def _await_end(self, signals: int) -> None:
        os.read(signals, 1)
        nbdkit.shutdown()
        time.sleep(GRACE)
        self.cleanup()
        os._exit(0)

    def _remove_socket(self) -> None:
        Path(self._settings["socket"]).unlink(missing_ok=True)

    # Exports.

    def thread_model(self) -> int:
        """Requests run in parallel."""
        model: int = nbdkit.THREAD_MODEL_PARALLEL
        return model

    def list_exports(self, readonly: bool, is_tls: bool) -> list[tuple[str, str]]:
        """Name and description of each export."""
        with self.service.turn() as disk:
            return [("", "the live disk"), *((name, "a snapshot") for name in disk.snapshots())]

    def default_export(self, readonly: bool, is_tls: bool) -> str:
        """The name of the live view's export."""
        return ""

    def open(self, readonly: bool) -> Connection:
        """Connect a client to the export that it asked for."""
        with _errno_set(), self.service.turn() as disk:
            return Connection(Export(disk, nbdkit.export_name()))

    def close(self, handle: Connection) -> None:
        """Disconnect a client. nbdkit has joined its threads."""
        handle.threads.free()

    def get_size(self, handle: Connection) -> int:
        """The size of the disk in bytes."""
        shape = self.service.disk.geometry
        return shape.blocks * shape.block_bytes

    def block_size(self, handle: Connection) -> tuple[int, int, int]:
        """The smallest, the preferred and the longest request in bytes."""
        size = self.service.block_bytes
        return size, max(size, 4096), longest_request(self.service.disk.geometry)

    def can_write(self, handle: Connection) -> bool:
        """Only the live view is written to."""
        return handle.export.name is None

    def can_flush(self, handle: Connection) -> bool:
        """Every engine can."""
        return True

    def can_trim(self, handle: Connection) -> bool:
        """Whether the engine has `unmap`. Zeroing is unmapping, too."""
        return "unmap" in self.service.disk.geometry.capabilities

    can_zero = can_fast_zero = can_trim

    def can_extents(self, handle: Connection) -> bool:
        """Every engine knows which blocks it maps."""
        return True

    def can_fua(self, handle: Connection) -> int:
        """FUA is native."""
        fua: int = nbdkit.FUA_NATIVE
        return fua

    def can_multi_conn(self, handle: Connection) -> bool:
        """A flush on one connection covers all connections."""
        return True

    # Requests. `offset` and `count` are in bytes.

    def pread(self, handle: Connection, buffer: bytearray, offset: int, flags: int) -> None:
        """Read into a buffer."""
        handle.threads.keep()
        with _errno_set():
            buffer[:] = self.service.read(handle.export, offset, len(buffer))

    def pwrite(self, handle: Connection, buffer: bytearray, offset: int, flags: int) -> None:
        """Write a buffer."""
        handle.threads.keep()
        with _errno_set():
            self.service.write(offset, bytes(buffer))
        if flags & nbdkit.FLAG_FUA:
            with _errno_set(), self.service.turn():
                self._force()

    def flush(self, handle: Connection, flags: int) -> None:
        """Make what was acknowledged durable."""
        with _errno_set(), self.service.turn() as disk:
            disk.flush()

    def trim(self, handle: Connection, count: int, offset: int, flags: int) -> None:
        """Unmap blocks. They read as zeroes, so this is how blocks are zeroed, too."""
        size = self.service.block_bytes
        with _errno_set(), self.service.turn() as disk:
            disk.unmap(offset // size, count // size)
            if flags & nbdkit.FLAG_FUA:
                self._force()

    zero = trim

    def extents(
        self, handle: Connection, count: int, offset: int, flags: int
    ) -> list[tuple[int, int, int]]:
        """Offset, length and type of each run of blocks that is mapped, or is not (a hole)."""
        size = self.service.block_bytes
        first, end = offset // size, (offset + count) // size
        with _errno_set(), self.service.turn() as disk:
            mapped = disk.mapped(first, end - first, handle.export.view_name())
        found: list[tuple[int, int, int]] = []
        hole, at = nbdkit.EXTENT_HOLE | nbdkit.EXTENT_ZERO, first
        for _, run in groupby(enumerate(mapped), lambda pair: pair[1] - pair[0]):
            lbas = [lba for _, lba in run]
            if lbas[0] > at:
                found.append((at * size, (lbas[0] - at) * size, hole))
            found.append((lbas[0] * size, len(lbas) * size, 0))
            at = lbas[-1] + 1
        if at < end:
            found.append((at * size, (end - at) * size, hole))
        return found

    def _force(self) -> None:
        """What FUA asks for, in the turn of the request."""
        if self.service.disk.geometry.crash_profile != "ack":
            self.service.disk.flush()


def _end_signals() -> int:
    """A file descriptor that becomes readable when SIGTERM or SIGINT arrives.

    nbdkit's own handler would wait until every client has disconnected, however long that takes.
    """
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return readable


@contextmanager
def _errno_set() -> Iterator[None]:
    """Tell nbdkit the errno of an error that passes."""
    try:
        yield
    except (DiskError, OSError) as error:
        nbdkit.set_error(ERRNO.get(type(error), errno.EIO))
        raise
