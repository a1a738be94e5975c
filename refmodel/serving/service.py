"""A disk that is being served: requests of clients, commands and housekeeping take turns on it.

Reads and writes that are in flight together are performed together (refmodel.serving.group_commit).
Commands arrive through refmodel.serving.command_socket. Housekeeping is reclaim, resync and
rebuild: it runs while no request changes the disk. While requests do, they take a share of it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from refmodel.core.errors import DiskError, NoSuchSnapshot
from refmodel.registry import Disk
from refmodel.serving.command_socket import Listener, RunCommand, Turn
from refmodel.serving.group_commit import GroupCommit, Pending, perform

IDLE_CHECK = 0.1  # seconds between two looks at whether the disk is idle
STEPS_AT_A_TIME = 16  # steps of housekeeping before requests get their turn again
LAST_REQUEST = 10  # seconds that a request in flight may take when the service ends


class Export:
    """What a client is connected to: one view of the disk.

    It stays that view: if the snapshot is deleted, the export fails, even if another snapshot
    takes the name.
    """

    def __init__(self, disk: Disk, name: str) -> None:
        """`name` is a snapshot's, or "" for the live view. Raises NoSuchSnapshot."""
        self.name = name or None
        self._disk = disk
        self._view = disk.identity(name) if name else None

    def view_name(self) -> str | None:
        """The name of its view. Raises NoSuchSnapshot if the snapshot was deleted."""
        if self.name is not None and self._disk.identity(self.name) != self._view:
            raise NoSuchSnapshot(f"the snapshot that was named {self.name!r} was deleted")
        return self.name


class Service:
    """One open disk and all that takes turns on it."""

    def __init__(self, folder: Path, disk: Disk, run_command: RunCommand) -> None:
        """Begin to listen for commands, and to keep house."""
        self.disk = disk
        self.block_bytes = disk.geometry.block_bytes
        self._turn = Turn()
        self._groups = GroupCommit(self._turn, lambda group: perform(disk, group))
        self._ending = threading.Event()
        self._close_once = threading.Lock()
        self._listener = Listener(folder, disk, self._turn, run_command)
        threading.Thread(target=self._keep_house, daemon=True).start()

    @contextmanager
    def turn(self) -> Iterator[Disk]:
        """The disk, for one request that is performed alone."""
        with self._turn:
            yield self.disk

    def read(self, export: Export, offset: int, length: int) -> bytes:
        """Read bytes of a view, whole blocks. Raises DiskError or OSError."""
        size = self.block_bytes
        return self._groups.submit(Pending(offset // size, length // size, view=export.view_name))

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes to the live view, whole blocks. Raises DiskError or OSError."""
        size = self.block_bytes
        self._groups.submit(Pending(offset // size, len(data) // size, data))

    def close(self) -> bool:
        """Finish what is in flight, and close the disk. Return False if that was done before."""
        with self._close_once:
            if self._ending.is_set():
                return False
            self._ending.set()
            self._listener.close()
            if self._turn.acquire_forever(LAST_REQUEST):
                self.disk.close()
            return True

    def _keep_house(self) -> None:
        changes = -1
        while not self._ending.wait(IDLE_CHECK):
            with self._turn:
                before, changes = changes, self.disk.operations.changes
                if changes != before:
                    continue
                try:
                    for _ in range(STEPS_AT_A_TIME):
                        if not self.disk.background():
                            break
                except DiskError:
                    pass  # too few devices: the next request gets the error
