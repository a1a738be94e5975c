"""SQLite as a disk: a block is a row, a snapshot is a copy of all live rows.

An operation is a transaction.

What it declares, and why (https://sqlite.org/pragma.html, "synchronous", and https://sqlite.org/atomiccommit.html):

- `ack` with a WAL (write-ahead log) and synchronous FULL, with a rollback journal that is
  truncated or overwritten and FULL, and with one that is deleted and EXTRA: a transaction that has
  committed survives a power cut.
- `prefix` with a WAL and synchronous NORMAL: "WAL mode is always consistent with
  synchronous=NORMAL, but WAL mode does lose durability". A flush is a checkpoint, which syncs the
  WAL.
- Snapshots are rows, because SQLite's own read views (open transactions) end with the process.
  Blocks have 512 bytes; a transaction is atomic, so any size would do.

SQLite runs unchanged, through apsw, on files in memory whose power the kit cuts at any write of an
operation. Several connections take requests that overlap; who finds the database locked waits. With
one connection and a WAL the locking mode is EXCLUSIVE: the index of the WAL is then not in memory
that is shared.
"""

import queue
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from conformance.contract.model import NAME
from conformance.contract.trace import OVERLAPPING
from conformance.media.files import Files
from conformance.targets.base import Message, PowerCut, TargetFailure, Unusable
from conformance.targets.engines.recorded_disk import Refusal
from conformance.targets.engines.sqlite_vfs import Vfs
from conformance.targets.threads import IN_FLIGHT, Done, Threads

try:
    import apsw
except ImportError:
    apsw = None

BLOCK = 512  # bytes
MODES = {
    "wal-full": "ack",
    "wal-normal": "prefix",
    "truncate-full": "ack",
    "persist-full": "ack",
    "delete-extra": "ack",
}
CAPABILITIES = ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart", "clean"]
SCHEMA = """
CREATE TABLE views(name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE blocks(view TEXT, lba INTEGER, data BLOB, PRIMARY KEY(view, lba)) WITHOUT ROWID;
"""
LIVE = ""
LOCKED_SECONDS = 10.0  # time that a connection waits for others
DATABASE = "/disk"


class SqliteTarget:
    """SQLite as a disk.

    Options: `mode` (journal and synchronous, one of MODES), `page_size` (bytes),
    `wal_autocheckpoint` (pages), `cache_size` (pages), `auto_vacuum`, `connections` (1 to
    IN_FLIGHT)."""

    knobs: dict[str, list[Any]] = {
        "mode": [
            "wal-full",
            "wal-full",
            "wal-normal",
            "truncate-full",
            "persist-full",
            "delete-extra",
        ],
        "page_size": [512, 1024, 4096],
        "wal_autocheckpoint": [1, 4, 1000],
        "cache_size": [5, 2000],
        "auto_vacuum": ["none", "full"],
        "connections": [1, 2, IN_FLIGHT, IN_FLIGHT],
    }
    fixed_options: tuple[str, ...] = ()
    cuts = True
    schedules = True  # the kit's pauses between calls

    def __init__(self, options: dict[str, Any]) -> None:
        if apsw is None:
            raise Unusable("apsw is not installed: run make engines")
        self._options = options
        mode, self._connections = options.get("mode", "wal-full"), options.get("connections", 1)
        if mode not in MODES:
            raise Unusable(f"mode is one of {', '.join(MODES)}, not {mode}")
        if self._connections not in range(1, IN_FLIGHT + 1):
            raise Unusable(f"connections are 1 to {IN_FLIGHT}, not {self._connections}")
        self._journal, self._synchronous = mode.split("-")
        self.hello: Message = {
            "ok": True,
            "name": "sqlite",
            "version": apsw.sqlite_lib_version(),
            "block_size": BLOCK,
            "crash_profile": MODES[mode],
            "capabilities": CAPABILITIES,
            "devices": 1,
            "tolerates": 0,
            "protocol": 2,
            "in_flight": self._connections,
            "atomic": "request",
        }
        self._vfs = Vfs(Files())
        self._databases: list[Any] = []  # the connections
        self._free: queue.LifoQueue[Any] = queue.LifoQueue()  # those that no request uses
        self._blocks = self._crashes = 0
        self._choose: random.Random | None = None
        self._threads = Threads(self._answer, self._power_failed, self._connections)
        self._cutting: Message | None = None  # the request in flight that has a `cut`

    def request(self, message: Message) -> Message:
        cut = message.get("cut")
        if cut is not None and message["op"] != "crash":
            self._vfs.files.cut_after(cut["after"])
        answer = self._answer(message)
        self._vfs.files.cut_after(None)
        if self._vfs.files.off:
            assert cut is not None, "only a cut turns the power off"
            self._choose = random.Random(cut["seed"])
            raise PowerCut
        return answer

    def call(self, message: Message, done: Done) -> None:
        """Start a request; `done` is called by its thread. What is sent alone is answered here."""
        if message["op"] in OVERLAPPING:
            if "cut" in message:
                self._cutting = message
                self._vfs.files.cut_after(message["cut"]["after"])
            self._threads.call(message, done)
            return
        if message["op"] == "crash":
            self._cut_in_flight()
        done(self.request(message))

    def close(self) -> None:
        self._cut_in_flight()
        self._abandon()
        self._threads.close()

    def _answer(self, message: Message) -> Message:
        """Carry out the request; return its answer, which is none if the power fails."""
        op, name = message["op"], message.get("name", message.get("view"))
        if op not in ("create", "write", "read", "checkpoint", *CAPABILITIES):
            return {"ok": False, "error": "unsupported"}
        try:
            if name is not None and not NAME.fullmatch(name):
                raise Refusal("bad-request")
            return {"ok": True, **(getattr(self, "_" + op)(message) or {})}
        except Refusal as refused:
            return {"ok": False, "error": refused.args[0], "message": "".join(refused.args[1:])}
        except apsw.Error as error:
            if not self._vfs.files.off:
                raise TargetFailure("protocol", f"{op}: {type(error).__name__}: {error}") from None
            return {"ok": False, "error": "data-lost", "message": "the power is off"}

    def _power_failed(self, message: Message) -> bool:
        """Return whether the power has failed before this request is answered."""
        if not self._vfs.files.off and message is self._cutting:
            self._cutting = None
            self._vfs.files.cut_after(None)
        return self._vfs.files.off

    def _cut_in_flight(self) -> None:
        """Cut the power, unless it has failed at a `cut`. Return when nothing is in flight."""
        self._threads.cut()
        if self._vfs.files.off and self._cutting is not None:
            self._choose = random.Random(self._cutting["cut"]["seed"])
        self._vfs.files.off, self._cutting = True, None
        for database in self._databases:
            database.interrupt()
        self._threads.wait()

    # The operations.

    def _create(self, message: Message) -> None:
        self._abandon()
        self._vfs = Vfs(Files())
        self._blocks, self._crashes, self._choose = message["blocks"], 0, None
        self._open()
        with self._transaction() as database:
            database.execute(SCHEMA)
        self._flush(message)

    def _write(self, message: Message) -> None:
        data, lba = bytes(message["data"]), message["lba"]
        self._within(lba, len(data) // BLOCK)
        rows = [
            (LIVE, lba + at // BLOCK, data[at : at + BLOCK]) for at in range(0, len(data), BLOCK)
        ]
        with self._transaction() as database:
            database.executemany("INSERT OR REPLACE INTO blocks VALUES(?, ?, ?)", rows)

    def _unmap(self, message: Message) -> None:
        self._within(message["lba"], message["count"])
        with self._transaction() as database:
            database.execute(
                "DELETE FROM blocks WHERE view = ? AND lba BETWEEN ? AND ?",
                (LIVE, message["lba"], message["lba"] + message["count"] - 1),
            )

    def _read(self, message: Message) -> Message:
        lba, length, view = message["lba"], message["count"], message.get("view", LIVE)
        data = bytearray(length * BLOCK)
        with self._transaction("DEFERRED") as database:
            if view != LIVE:
                _existing(database, view)
            self._within(lba, length)
            for at, block in database.execute(
                "SELECT lba, data FROM blocks WHERE view = ? AND lba BETWEEN ? AND ?",
                (view, lba, lba + length - 1),
            ):
                data[(at - lba) * BLOCK : (at - lba + 1) * BLOCK] = block
        return {"data": bytes(data)}

    def _flush(self, message: Message) -> None:
        self._checkpointed("FULL")

    def _checkpoint(self, message: Message) -> None:
        self._checkpointed("TRUNCATE")

    def _clean(self, message: Message) -> None:
        with self._connection() as database:
            database.execute("VACUUM")

    def _snapshot(self, message: Message) -> None:
        name = message["name"]
        with self._transaction() as database:
            if _exists(database, name):
                raise Refusal("snapshot-exists")
            database.execute("INSERT INTO views VALUES(?)", (name,))
            _copy(database, LIVE, name)

    def _delete(self, message: Message) -> None:
        name = message["name"]
        with self._transaction() as database:
            _existing(database, name)
            database.execute("DELETE FROM views WHERE name = ?", (name,))
            database.execute("DELETE FROM blocks WHERE view = ?", (name,))

    def _revert(self, message: Message) -> None:
        name = message["name"]
        with self._transaction() as database:
            _existing(database, name)
            database.execute("DELETE FROM blocks WHERE view = ?", (LIVE,))
            _copy(database, name, LIVE)

    def _restart(self, message: Message) -> None:
        self._shut()
        self._open()

    def _crash(self, message: Message) -> None:
        choose = self._choose or random.Random(self._crashes)
        self._crashes, self._choose = self._crashes + 1, None
        self._abandon()
        self._vfs = Vfs(self._vfs.files.after_failure(choose))
        if "cut" in message:
            self._vfs.files.cut_after(message["cut"]["after"])
        try:
            self._open()
            with self._connection() as database:
                _exists(database, LIVE)  # recovery is done when the database is first used
        except apsw.Error as error:
            if not self._vfs.files.off:
                raise Refusal("data-lost", str(error)) from None

    # How they are done.

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Yield one that no other request uses."""
        database = self._free.get()
        try:
            yield database
        finally:
            self._free.put(database)

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[Any]:
        """Yield a transaction on a connection.

        It is IMMEDIATE if it writes: what it reads first then stays so.
        """
        with self._connection() as database:
            database.execute(f"BEGIN {kind}")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    with suppress(apsw.Error):
                        database.execute("ROLLBACK")
                raise

    def _checkpointed(self, kind: str) -> None:
        """Copy all of the WAL into the database and sync it, however long others are in the way."""
        with self._connection() as database:
            while database.execute(f"PRAGMA wal_checkpoint({kind})").fetchall()[0][0]:
                pass

    def _open(self) -> None:
        self._free = queue.LifoQueue()
        for _ in range(self._connections):
            self._databases.append(self._opened())
            self._free.put(self._databases[-1])

    def _opened(self) -> Any:
        option = self._options.get
        database = apsw.Connection(DATABASE, vfs=self._vfs.name)
        database.set_busy_timeout(int(LOCKED_SECONDS * 1000))
        exclusive = self._journal == "wal" and self._connections == 1
        for pragma, value in (
            ("locking_mode", "exclusive" if exclusive else "normal"),
            ("page_size", option("page_size", 4096)),
            ("auto_vacuum", option("auto_vacuum", "none")),
            ("journal_mode", self._journal),
            ("synchronous", self._synchronous),
            ("cache_size", option("cache_size", 2000)),
            ("wal_autocheckpoint", option("wal_autocheckpoint", 1000)),
        ):
            database.execute(f"PRAGMA {pragma} = {value}").fetchall()
        return database

    def _shut(self) -> None:
        while self._databases:
            self._databases.pop().close()

    def _abandon(self) -> None:
        """Turn the power off. What SQLite writes while it closes goes nowhere."""
        self._vfs.files.off = True
        for database in self._databases:
            with suppress(apsw.Error):
                database.close(True)
        self._databases = []
        self._vfs.put_away()

    def _within(self, lba: int, length: int) -> None:
        if lba + length > self._blocks:
            raise Refusal("out-of-range")


def _copy(database: Any, old: str, new: str) -> None:
    database.execute(
        "INSERT INTO blocks SELECT ?, lba, data FROM blocks WHERE view = ?", (new, old)
    )


def _exists(database: Any, name: str) -> bool:
    return bool(database.execute("SELECT 1 FROM views WHERE name = ?", (name,)).fetchall())


def _existing(database: Any, name: str) -> None:
    if not _exists(database, name):
        raise Refusal("no-such-snapshot")
