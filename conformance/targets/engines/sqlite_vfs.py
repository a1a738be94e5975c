"""A VFS of SQLite in Python, through apsw, on files whose power the kit can cut."""

from itertools import count
from typing import Any

from conformance.media.files import Files, PowerOff

try:
    import apsw
except ImportError:
    apsw = None

SECTOR = 512  # bytes
_numbers = count()


class Vfs(apsw.VFS if apsw else object):  # type: ignore[misc]  # apsw may not be installed
    """SQLite's operating system interface (https://sqlite.org/c3ref/vfs.html) on these files."""

    def __init__(self, files: Files):
        self.name, self.files = f"conformance-{next(_numbers)}", files
        super().__init__(self.name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> "Opened":
        path = (
            name.filename()
            if isinstance(name, apsw.URIFilename)
            else name or f"/temporary-{next(_numbers)}"
        )
        flags[1] = flags[0]
        if path not in self.files:
            if not flags[0] & apsw.SQLITE_OPEN_CREATE:
                raise apsw.CantOpenError(path)
            _or_error(self.files.make, path)
            return Opened(
                self, path, bool(flags[0] & (apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL))
            )
        return Opened(self, path)

    def xDelete(self, name: str, synced: bool) -> None:
        if name in self.files:
            _or_error(self.files.remove, name)
            if synced:
                _or_error(self.files.sync_folder)

    def xAccess(self, name: str, flags: int) -> bool:
        return name in self.files

    def xFullPathname(self, name: str) -> str:
        return name


class Opened:
    """An open file (https://sqlite.org/c3ref/io_methods.html).

    Nobody else has the files, so every lock is granted."""

    def __init__(self, vfs: Vfs, path: str, new_journal: bool = False):
        self._vfs, self._path, self._new_journal = vfs, path, new_journal

    def xRead(self, amount: int, offset: int) -> bytes:
        return self._vfs.files.read(self._path, offset, amount)

    def xWrite(self, data: bytes, offset: int) -> None:
        _or_error(self._vfs.files.write, self._path, offset, data)

    def xTruncate(self, length: int) -> None:
        _or_error(self._vfs.files.truncate, self._path, length)

    def xSync(self, flags: int) -> None:
        _or_error(self._vfs.files.sync, self._path)
        if self._new_journal:  # as SQLite's own VFS for Unix does
            _or_error(self._vfs.files.sync_folder)
            self._new_journal = False

    def xFileSize(self) -> int:
        return self._vfs.files.size(self._path)

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        return 0  # nothing is promised, not even that a write leaves the rest of a sector alone

    def xClose(self) -> None:
        pass


def _or_error(change: Any, *arguments: Any) -> None:
    try:
        change(*arguments)
    except PowerOff:
        raise apsw.IOError("the power is off") from None
