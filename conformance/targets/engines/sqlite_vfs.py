"""A VFS of SQLite in Python, through apsw, on files whose power the kit can cut.

Locks, and the index of a WAL in shared memory, are those of SQLite's own VFS for Unix, on an empty
file of the same name in a folder of its own: no power cut keeps them.
"""

import shutil
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

from conformance.media.files import Files, PowerOff

try:
    import apsw
except ImportError:
    apsw = None

SECTOR = 512  # bytes
FAST = Path("/dev/shm")
UNIX = "unix"  # SQLite's own VFS
_numbers = count()


class Vfs(apsw.VFS if apsw else object):  # type: ignore[misc]  # apsw may not be installed
    """SQLite's operating system interface (https://sqlite.org/c3ref/vfs.html) on these files."""

    def __init__(self, files: Files):
        self.name, self.files = f"conformance-{next(_numbers)}", files
        self.locks = tempfile.mkdtemp(prefix="conformance-", dir=FAST if FAST.is_dir() else None)
        super().__init__(self.name, base="")

    def put_away(self) -> None:
        """Forget the VFS and its locks. Nobody may have a file open."""
        self.unregister()
        shutil.rmtree(self.locks, ignore_errors=True)

    def excepthook(self, kind: Any, error: BaseException, stack: Any) -> None:
        """Take an error that SQLite has no use for, such as one in closing: with the power off
        there are many.
        """
        if not self.files.off:
            sys.excepthook(kind, error, stack)

    def xOpen(self, name: Any, flags: list[int]) -> "Opened":
        path = (
            name.filename()
            if isinstance(name, apsw.URIFilename)
            else name or f"/temporary-{next(_numbers)}"
        )
        creates = bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
        if path not in self.files:
            if not creates:
                raise apsw.CantOpenError(path)
            _or_error(self.files.make, path)
        journal = bool(flags[0] & (apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL))
        return Opened(self, path, flags, creates and journal)

    def xDelete(self, name: str, synced: bool) -> None:
        if name in self.files:
            _or_error(self.files.remove, name)
            if synced:
                _or_error(self.files.sync_folder)

    def xAccess(self, name: str, flags: int) -> bool:
        return name in self.files

    def xFullPathname(self, name: str) -> str:
        return name


class Opened(apsw.VFSFile if apsw else object):  # type: ignore[misc]  # as above
    """An open file (https://sqlite.org/c3ref/io_methods.html).

    What is not defined here is done by the VFS for Unix: locks and shared memory."""

    def __init__(self, vfs: Vfs, path: str, flags: list[int], syncs_folder: bool):
        self._vfs, self._path, self._syncs_folder = vfs, path, syncs_folder
        flags[0] |= apsw.SQLITE_OPEN_CREATE
        super().__init__(UNIX, vfs.locks + path, flags)

    def excepthook(self, kind: Any, error: BaseException, stack: Any) -> None:
        """Handle an exception as the VFS does."""
        self._vfs.excepthook(kind, error, stack)

    def xRead(self, amount: int, offset: int) -> bytes:
        return self._vfs.files.read(self._path, offset, amount)

    def xWrite(self, data: bytes, offset: int) -> None:
        _or_error(self._vfs.files.write, self._path, offset, data)

    def xTruncate(self, length: int) -> None:
        _or_error(self._vfs.files.truncate, self._path, length)

    def xSync(self, flags: int) -> None:
        _or_error(self._vfs.files.sync, self._path)
        if self._syncs_folder:  # as SQLite's own VFS for Unix does
            _or_error(self._vfs.files.sync_folder)
            self._syncs_folder = False

    def xFileSize(self) -> int:
        return self._vfs.files.size(self._path)

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        return 0  # no promise: a write may even change the rest of a sector


def _or_error(change: Any, *arguments: Any) -> None:
    try:
        change(*arguments)
    except PowerOff:
        raise apsw.IOError("the power is off") from None
