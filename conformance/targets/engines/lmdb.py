"""LMDB as a disk: a block is an entry, an operation a transaction, a snapshot a read view.

What it declares, and why (the comments on the flags of mdb_env_open in lmdb.h):

- `ack` by default: a commit flushes the data, then writes the meta page through, and returns.
- `prefix` with metasync off (MDB_NOMETASYNC): it "maintains database integrity, but a system crash
  may undo the last committed transaction". A flush is mdb_env_sync.
- A snapshot is a read transaction that is held as long as the environment is open, and a copy of
  all live entries. The copy is used once the environment was opened again, because LMDB's read
  views end with the process. The entry of a snapshot has the number of its read transaction.
- Requests that overlap are in threads: LMDB has one transaction that writes at a time, and any
  number that read. Each request takes effect as a whole.
- Blocks have 512 bytes; a transaction is atomic, so any size would do. NOSYNC is not offered,
  because it promises nothing.

LMDB reads its file through a memory map and writes it by pwrite. The file is a FUSE export of
qemu-storage-daemon over `blklogwrites`, which logs every write and flush; the kit decides what a
power cut leaves. MDB_WRITEMAP is not offered: the kernel then has several writes in flight, which
the export of qemu 7.2 mixes up (docs/findings). LMDB runs in this process: if it crashes, the run
crashes.
"""

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from conformance.media.recorded import Recorded
from conformance.targets.base import Message, TargetFailure, Unusable
from conformance.targets.engines.qemu import storage_daemon
from conformance.targets.engines.recorded_disk import BLOCK, RecordedDisk, Refusal, log_writes

try:
    import lmdb
except ImportError:
    lmdb = None

ROOM = 64 << 20  # bytes of the map: pages that a read view holds are not used again
PROFILES = {"on": "ack", "off": "prefix"}  # value of metasync -> crash profile
LIVE = b""
LBA = NUMBER = 8  # bytes


class LmdbTarget(RecordedDisk):
    """Option: `metasync`, "on" or "off"."""

    knobs: dict[str, list[Any]] = {"metasync": ["on", "off"]}
    fixed_options: tuple[str, ...] = ()

    def __init__(self, options: dict[str, Any]) -> None:
        if lmdb is None:
            raise Unusable("lmdb is not installed: run make engines")
        metasync = options.get("metasync", "on")
        if metasync not in PROFILES:
            raise Unusable(f"metasync is on or off, not {metasync}")
        version = ".".join(map(str, lmdb.version()))
        super().__init__("lmdb", version, PROFILES[metasync], atomic="request")
        self._metasync = metasync == "on"
        self._daemon = storage_daemon.borrow(_setup)
        self._recorded = Recorded(self._daemon.folder / "disk", self._daemon.folder / "log", ROOM)
        self._environment: Any = None
        self._held: dict[bytes, Any] = {}  # the read views of snapshots, by number
        self._holding = threading.Lock()  # protects the read views: a transaction is one thread's
        self._numbers = count()
        self._opening = threading.Lock()

    def _answer(self, message: Message) -> Message:
        try:
            return super()._answer(message)
        except lmdb.Error as error:
            raise TargetFailure(
                "protocol", f"{message['op']}: {type(error).__name__}: {error}"
            ) from None
        except storage_daemon.QmpError as error:
            raise self._daemon.failure("protocol", f"{message['op']}: {error}") from None

    def close(self) -> None:
        try:
            self._shut()
        except (storage_daemon.QmpError, TargetFailure):
            self._daemon.close()
            return
        storage_daemon.give_back(self._daemon, _setup)

    # The operations.

    def _write(self, message: Message) -> None:
        data, lba = bytes(message["data"]), message["lba"]
        self._within(lba, len(data) // BLOCK)
        with self._change() as change:
            for at in range(0, len(data), BLOCK):
                change.put(_key(LIVE, lba + at // BLOCK), data[at : at + BLOCK])

    def _unmap(self, message: Message) -> None:
        self._within(message["lba"], message["count"])
        with self._change() as change:
            for lba in range(message["lba"], message["lba"] + message["count"]):
                change.delete(_key(LIVE, lba))

    def _read(self, message: Message) -> Message:
        lba, view = message["lba"], message.get("view", "").encode()
        blocks = range(lba, lba + message["count"])
        with self._opened().begin() as now:
            number = _existing(now, view) if view else b""
            self._within(lba, len(blocks))
            with self._holding:
                if number in self._held:
                    return {"data": _data(self._held[number], LIVE, blocks)}
            return {"data": _data(now, view, blocks)}

    def _flush(self, message: Message) -> None:
        self._opened().sync(True)

    def _snapshot(self, message: Message) -> None:
        name, number = message["name"].encode(), next(self._numbers).to_bytes(NUMBER)
        with self._change() as change:
            if change.get(name) is not None:
                raise Refusal("snapshot-exists", "")
            change.put(name, number)
            _copy(change, LIVE, name)
            with self._holding:  # no writes meanwhile: this view has the content of the live disk
                self._held[number] = self._environment.begin()

    def _delete(self, message: Message) -> None:
        name = message["name"].encode()
        with self._change() as change:
            number = _existing(change, name)
            change.delete(name)
            _clear(change, name)
        with self._holding:
            if number in self._held:
                self._held.pop(number).abort()

    def _revert(self, message: Message) -> None:
        name = message["name"].encode()
        with self._change() as change:
            _existing(change, name)
            _clear(change, LIVE)
            _copy(change, name, LIVE)

    # How they are done.

    def _files(self) -> list[Recorded]:
        return [self._recorded]

    def _written(self) -> Recorded:
        return self._recorded

    def _make(self) -> None:
        self._recorded.lay(_empty())

    def _open_again(self) -> None:
        try:
            self._opened()
        except lmdb.Error as error:
            raise Refusal("data-lost", str(error)) from None

    def _opened(self) -> Any:
        with self._opening:
            if self._environment is None:
                self._environment = self._mounted()
            return self._environment

    def _mounted(self) -> Any:
        """Mount the file and open it. Raises QmpError, lmdb.Error."""
        path = str(self._daemon.folder / "db")
        export = {"type": "fuse", "id": "f", "node-name": "w", "mountpoint": path, "writable": True}
        self._daemon.do(("block-export-add", export))
        try:
            return lmdb.open(
                path,
                subdir=False,
                create=False,
                map_size=ROOM,
                metasync=self._metasync,
                readahead=False,
            )
        except lmdb.Error:
            self._unmount()
            raise

    def _shut(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            while self._held:
                self._held.popitem()[1].abort()
            environment.close()
            self._unmount()

    def _unmount(self) -> None:
        self._daemon.do(("block-export-del", {"id": "f", "mode": "hard"}))

    def _change(self) -> Any:
        """Return a transaction that writes; refused requests abort it."""
        return self._opened().begin(write=True)

    def _within(self, lba: int, count: int) -> None:
        if lba + count > self._blocks:
            raise Refusal("out-of-range", "")


def _key(view: bytes, lba: int) -> bytes:
    """Return the key of a block.

    The name alone is the key of the snapshot itself; names have no NUL.
    """
    return view + b"\0" + lba.to_bytes(LBA)


def _entries(transaction: Any, view: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield those of a view's blocks; LMDB copies them, so the transaction may go on to change
    them.
    """
    with transaction.cursor() as cursor:
        found = cursor.set_range(view + b"\0")
        while found and cursor.key().startswith(view + b"\0"):
            yield cursor.item()
            found = cursor.next()


def _copy(change: Any, old: bytes, new: bytes) -> None:
    for key, data in list(_entries(change, old)):
        change.put(new + key[len(old) :], data)


def _clear(change: Any, view: bytes) -> None:
    for key, _ in list(_entries(change, view)):
        change.delete(key)


def _data(transaction: Any, view: bytes, blocks: range) -> bytes:
    return b"".join(transaction.get(_key(view, lba), bytes(BLOCK)) for lba in blocks)


def _existing(transaction: Any, name: bytes) -> bytes:
    """Return the number of the snapshot's read transaction.

    Raises Refusal if there is no snapshot.
    """
    number: bytes | None = transaction.get(name)
    if number is None:
        raise Refusal("no-such-snapshot", "")
    return number


def _setup(daemon: storage_daemon.Daemon) -> None:
    """Set up the file and its log for the life of the daemon. A mount would outlive it."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        daemon.close()
        raise Unusable("/dev/fuse is not to be had: the power of LMDB's file is cut through FUSE")
    log_writes(daemon, ROOM)
    mount = daemon.folder / "db"
    mount.write_bytes(b"")
    daemon.at_end(lambda: _unmounted(mount))


def _unmounted(mount: Path) -> None:
    if os.path.ismount(mount):
        tool = (
            ["umount", "-l"]
            if os.geteuid() == 0
            else [shutil.which("fusermount3") or "fusermount", "-uz"]
        )
        subprocess.run([*tool, mount], capture_output=True, check=False)


@cache
def _empty() -> bytes:
    """Return a file with nothing in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/db"
        lmdb.open(path, subdir=False, lock=False, map_size=ROOM).close()
        return Path(path).read_bytes()
