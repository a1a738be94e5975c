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
operation. There is one connection. With a WAL the locking mode is EXCLUSIVE, because the index of
the WAL is then not in memory that is shared through a file.
"""

import random
from contextlib import suppress
from typing import Any

from conformance.contract.model import NAME
from conformance.media.files import Files
from conformance.targets.base import Message, PowerCut, TargetFailure, Unusable
from conformance.targets.engines.recorded_disk import Refusal
from conformance.targets.engines.sqlite_vfs import Vfs

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
DATABASE = "/disk"


class SqliteTarget:
    """SQLite as a disk.

    Options: `mode` (journal and synchronous, one of MODES), `page_size` (bytes),
    `wal_autocheckpoint` (pages), `cache_size` (pages), `auto_vacuum`."""

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
    }
    cuts = True

    def __init__(self, options: dict[str, Any]) -> None:
        if apsw is None:
            raise Unusable("apsw is not installed: run make engines")
        self._options = options
        mode = options.get("mode", "wal-full")
        if mode not in MODES:
            raise Unusable(f"mode is one of {', '.join(MODES)}, not {mode}")
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
        }
        self._vfs = Vfs(Files())
        self._database: Any = None
        self._blocks = self._crashes = 0
        self._choose: random.Random | None = None

    def request(self, message: Message) -> Message:
        op, cut = message["op"], message.get("cut")
        if op not in ("create", "write", "read", "checkpoint", *CAPABILITIES):
            return {"ok": False, "error": "unsupported"}
        name = message.get("name", message.get("view"))
        if cut is not None and op != "crash":
            self._vfs.files.cut_after(cut["after"])
        try:
            if name is not None and not NAME.fullmatch(name):
                raise Refusal("bad-request")
            answer = {"ok": True, **(getattr(self, "_" + op)(message) or {})}
        except Refusal as refused:
            answer = {"ok": False, "error": refused.args[0], "message": "".join(refused.args[1:])}
        except apsw.Error as error:
            if not self._vfs.files.off:
                raise TargetFailure("protocol", f"{op}: {type(error).__name__}: {error}") from None
        self._vfs.files.cut_after(None)
        if self._vfs.files.off:
            assert cut is not None, "only a cut turns the power off"
            self._choose = random.Random(cut["seed"])
            raise PowerCut
        return answer

    def close(self) -> None:
        self._abandon()

    # The operations.

    def _create(self, message: Message) -> None:
        self._abandon()
        self._vfs = Vfs(Files())
        self._blocks, self._crashes, self._choose = message["blocks"], 0, None
        self._open()
        with self._database:
            self._database.execute(SCHEMA)
        self._flush(message)

    def _write(self, message: Message) -> None:
        data, lba = bytes(message["data"]), message["lba"]
        self._within(lba, len(data) // BLOCK)
        rows = [
            (LIVE, lba + at // BLOCK, data[at : at + BLOCK]) for at in range(0, len(data), BLOCK)
        ]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO blocks VALUES(?, ?, ?)", rows)

    def _unmap(self, message: Message) -> None:
        self._within(message["lba"], message["count"])
        with self._database:
            self._database.execute(
                "DELETE FROM blocks WHERE view = ? AND lba BETWEEN ? AND ?",
                (LIVE, message["lba"], message["lba"] + message["count"] - 1),
            )

    def _read(self, message: Message) -> Message:
        lba, length, view = message["lba"], message["count"], message.get("view", LIVE)
        if view != LIVE:
            self._existing(view)
        self._within(lba, length)
        data = bytearray(length * BLOCK)
        for at, block in self._database.execute(
            "SELECT lba, data FROM blocks WHERE view = ? AND lba BETWEEN ? AND ?",
            (view, lba, lba + length - 1),
        ):
            data[(at - lba) * BLOCK : (at - lba + 1) * BLOCK] = block
        return {"data": bytes(data)}

    def _flush(self, message: Message) -> None:
        self._database.execute("PRAGMA wal_checkpoint(FULL)").fetchall()

    def _checkpoint(self, message: Message) -> None:
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _clean(self, message: Message) -> None:
        self._database.execute("VACUUM")

    def _snapshot(self, message: Message) -> None:
        name = message["name"]
        if self._exists(name):
            raise Refusal("snapshot-exists")
        with self._database:
            self._database.execute("INSERT INTO views VALUES(?)", (name,))
            self._copy(LIVE, name)

    def _delete(self, message: Message) -> None:
        name = message["name"]
        self._existing(name)
        with self._database:
            self._database.execute("DELETE FROM views WHERE name = ?", (name,))
            self._database.execute("DELETE FROM blocks WHERE view = ?", (name,))

    def _revert(self, message: Message) -> None:
        name = message["name"]
        self._existing(name)
        with self._database:
            self._database.execute("DELETE FROM blocks WHERE view = ?", (LIVE,))
            self._copy(name, LIVE)

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
            self._exists(LIVE)  # recovery is done when the database is first used
        except apsw.Error as error:
            if not self._vfs.files.off:
                raise Refusal("data-lost", str(error)) from None

    # How they are done.

    def _open(self) -> None:
        option = self._options.get
        self._database = apsw.Connection(DATABASE, vfs=self._vfs.name)
        locking = "exclusive" if self._journal == "wal" else "normal"
        for pragma, value in (
            ("locking_mode", locking),
            ("page_size", option("page_size", 4096)),
            ("auto_vacuum", option("auto_vacuum", "none")),
            ("journal_mode", self._journal),
            ("synchronous", self._synchronous),
            ("cache_size", option("cache_size", 2000)),
            ("wal_autocheckpoint", option("wal_autocheckpoint", 1000)),
        ):
            self._database.execute(f"PRAGMA {pragma} = {value}").fetchall()

    def _shut(self) -> None:
        database, self._database = self._database, None
        database.close()

    def _abandon(self) -> None:
        """Turn the power off. What SQLite writes while it closes goes nowhere."""
        self._vfs.files.off = True
        self._vfs.unregister()
        if self._database is not None:
            with suppress(apsw.Error):
                self._database.close(True)
            self._database = None

    def _copy(self, old: str, new: str) -> None:
        self._database.execute(
            "INSERT INTO blocks SELECT ?, lba, data FROM blocks WHERE view = ?", (new, old)
        )

    def _exists(self, name: str) -> bool:
        return bool(
            self._database.execute("SELECT 1 FROM views WHERE name = ?", (name,)).fetchall()
        )

    def _existing(self, name: str) -> None:
        if not self._exists(name):
            raise Refusal("no-such-snapshot")

    def _within(self, lba: int, length: int) -> None:
        if lba + length > self._blocks:
            raise Refusal("out-of-range")
