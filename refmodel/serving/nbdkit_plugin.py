"""What nbdkit runs (nbdkit-python-plugin(3)): the live view as the default export, each snapshot as a read-only export of its name.

Requests come in whole blocks, which nbdkit's blocksize filter sees to. Reads and writes in flight together are done together (refmodel.serving.group_commit); they take turns with the commands of refmodel.serving.command_socket
and with housekeeping. FUA is native: under `ack` what was acknowledged is durable anyway, under `prefix` a flush follows.
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

import nbdkit

from refmodel.cli import explained
from refmodel.core.errors import DiskError, NoSpace, NoSuchSnapshot, NotADisk, OutOfRange
from refmodel.registry import Disk, open_disk
from refmodel.serving import command_socket
from refmodel.serving.group_commit import Asked, Groups, perform
from refmodel.serving.nbdkit_launch import most_bytes
from refmodel.serving.thread_states import ThreadStates

API_VERSION = 2
ERRNO = {NoSpace: errno.ENOSPC, OutOfRange: errno.EINVAL}  # else EIO
IDLE = 0.1  # seconds between looks at whether there is time for housekeeping
GRACE = 0.5  # seconds that clients have to go, once the server is to end
PATIENCE = 10  # seconds that a request in flight may take then
STINT = 16  # steps of housekeeping between requests

settings: dict[str, str] = {}
turn = command_socket.Turn()
groups = Groups(turn, lambda group: perform(disk, group))
finishing = threading.Lock()
ending = threading.Event()
disk: Disk
commands: command_socket.Listener


class Export:
    """What a client is connected to: a view, whoever has its name later."""

    def __init__(self, name: str) -> None:
        self.name = name or None
        self.view = disk.identity(name) if name else None
        self.threads = ThreadStates()  # of those that do its requests

    def view_name(self) -> str | None:
        """Raises NoSuchSnapshot once the snapshot was deleted, even if another has its name."""
        if self.name is not None and disk.identity(self.name) != self.view:
            raise NoSuchSnapshot(f"the snapshot that was named {self.name!r} was deleted")
        return self.name


# Beginning and end.


def config(key: str, value: str) -> None:
    settings[key] = value


def after_fork() -> None:
    global disk, commands
    folder = Path(settings["disk"])
    try:
        disk = open_disk(folder, sync=settings["sync"] == "1")
    except (DiskError, NotADisk, OSError) as error:
        _remove_socket()
        message, status = explained(error)
        print(f"refmodel: {message}", file=sys.stderr, flush=True)
        os._exit(status)
    commands = command_socket.Listener(folder, disk, turn)
    threading.Thread(target=_keep_house, daemon=True).start()
    threading.Thread(target=_await_end, args=(_signals(),), daemon=True).start()
    print(
        f"refmodel: serving {folder} at nbd+unix:///?socket={settings['socket']}",
        file=sys.stderr,
        flush=True,
    )


def cleanup() -> None:
    with finishing:
        if ending.is_set():
            return
        ending.set()
        commands.close()
        if turn.last(PATIENCE):
            disk.close()
        _remove_socket()


def _signals() -> int:
    """A pipe that says when the server is to end; nbdkit itself would wait for clients to go, however long they stay."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return told


def _await_end(told: int) -> None:
    os.read(told, 1)
    nbdkit.shutdown()
    time.sleep(GRACE)
    cleanup()
    os._exit(0)


def _remove_socket() -> None:
    Path(settings["socket"]).unlink(missing_ok=True)


def _keep_house() -> None:
    """Reclaim, resync and rebuild while no request changes the disk; while some do, they take a share along."""
    done = -1
    while not ending.wait(IDLE):
        with turn:
            before, done = done, disk.operations.changes
            try:
                for _ in range(STINT if done == before else 0):
                    if not disk.background():
                        break
            except DiskError:
                pass  # too few devices: whoever asks for something is told


# Exports.


def thread_model() -> int:
    return nbdkit.THREAD_MODEL_PARALLEL


def list_exports(readonly: bool, is_tls: bool) -> list[tuple[str, str]]:
    with turn:
        return [("", "the live disk"), *((name, "a snapshot") for name in disk.snapshots())]


def default_export(readonly: bool, is_tls: bool) -> str:
    return ""


def open(readonly: bool) -> Export:
    with _answering():
        return Export(nbdkit.export_name())


def close(export: Export) -> None:
    export.threads.drop()  # nbdkit has joined them


def get_size(export: Export) -> int:
    return disk.geometry.blocks * disk.geometry.block_bytes


def block_size(export: Export) -> tuple[int, int, int]:
    size = disk.geometry.block_bytes
    return size, max(size, 4096), most_bytes(disk.geometry)


def can_write(export: Export) -> bool:
    return export.name is None


def can_flush(export: Export) -> bool:
    return True


def can_trim(export: Export) -> bool:
    return "unmap" in disk.geometry.capabilities


can_zero = can_fast_zero = can_trim


def can_extents(export: Export) -> bool:
    return True


def can_fua(export: Export) -> int:
    return nbdkit.FUA_NATIVE


def can_multi_conn(export: Export) -> bool:
    return True


# Requests.


def pread(export: Export, buffer, offset: int, flags: int) -> None:
    size = disk.geometry.block_bytes
    export.threads.keep()
    with _telling():
        buffer[:] = groups.ask(Asked(offset // size, len(buffer) // size, view=export.view_name))


def pwrite(export: Export, buffer, offset: int, flags: int) -> None:
    size = disk.geometry.block_bytes
    export.threads.keep()
    with _telling():
        groups.ask(Asked(offset // size, len(buffer) // size, bytes(buffer)))
    if flags & nbdkit.FLAG_FUA:
        with _answering():
            _force(flags)


def flush(export: Export, flags: int) -> None:
    with _answering():
        disk.flush()


def trim(export: Export, count: int, offset: int, flags: int) -> None:
    size = disk.geometry.block_bytes
    with _answering():
        disk.unmap(offset // size, count // size)
        _force(flags)


zero = trim  # unmapped blocks read as zeroes, and no block has a place of its own that could be kept for it


def extents(export: Export, count: int, offset: int, flags: int) -> list[tuple[int, int, int]]:
    size = disk.geometry.block_bytes
    first, end = offset // size, (offset + count) // size
    with _answering():
        mapped = disk.mapped(first, end - first, export.view_name())
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


def _force(flags: int) -> None:
    if flags & nbdkit.FLAG_FUA and disk.geometry.crash_profile != "ack":
        disk.flush()


@contextmanager
def _answering() -> Iterator[None]:
    """One request's turn."""
    with turn, _telling():
        yield


@contextmanager
def _telling() -> Iterator[None]:
    """A refusal gets the errno that says it best."""
    try:
        yield
    except (DiskError, OSError) as error:
        nbdkit.set_error(ERRNO.get(type(error), errno.EIO))
        raise
