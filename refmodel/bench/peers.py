"""Peers: the same requests, in the same process, on the same medium, without waiting for it. Each returns seconds."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from refmodel.bench.clients import Stopwatch
from refmodel.bench.profiles import BLOCK, Request

Batches = list[list[Request]]  # requests that are in flight together


def a_file(folder: Path, blocks: int, batches: Batches, watch: Stopwatch) -> float:
    """A file, overwritten in place: what any engine that keeps data in one file cannot beat."""
    block = os.urandom(BLOCK)
    file = os.open(folder / "bare", os.O_RDWR | os.O_CREAT)
    try:
        for lba in range(blocks):
            os.pwrite(file, block, lba * BLOCK)
        started = watch.now()
        for batch in batches:
            for read, lba, count in batch:
                if read:
                    os.pread(file, count * BLOCK, lba * BLOCK)
                else:
                    os.pwrite(file, count * block, lba * BLOCK)
        return watch.now() - started
    finally:
        os.close(file)


def sqlite(folder: Path, blocks: int, batches: Batches, watch: Stopwatch) -> float:
    """SQLite in WAL mode, a row a block, a transaction for the writes in flight together."""
    block = os.urandom(BLOCK)
    with closing(sqlite3.connect(folder / "peer.db", isolation_level=None)) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = OFF")
        base.execute("CREATE TABLE disk (lba INTEGER PRIMARY KEY, data BLOB)")
        base.execute("BEGIN")
        base.executemany("INSERT INTO disk VALUES (?, ?)", ((lba, block) for lba in range(blocks)))
        base.execute("COMMIT")
        started = watch.now()
        for batch in batches:
            base.execute("BEGIN")
            writes = (
                (block, at)
                for read, lba, count in batch
                if not read
                for at in range(lba, lba + count)
            )
            base.executemany("UPDATE disk SET data = ? WHERE lba = ?", writes)
            base.execute("COMMIT")
            for read, lba, count in batch:
                if read:
                    base.execute(
                        "SELECT data FROM disk WHERE lba >= ? AND lba < ? ORDER BY lba",
                        (lba, lba + count),
                    ).fetchall()
        return watch.now() - started


PEERS: dict[str, Callable[[Path, int, Batches, Stopwatch], float]] = {
    "a file in place": a_file,
    "SQLite, a row a block": sqlite,
}
