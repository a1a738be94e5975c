"""Peers: other stores that do the same requests, in the same process and on the same medium.

None of them waits until the medium has the data. Each returns the seconds that the requests took.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from refmodel.bench.clients import Stopwatch
from refmodel.bench.workloads.workload import BLOCK, Request

Batches = list[list[Request]]  # requests that are in flight together


def a_file(folder: Path, blocks: int, batches: Batches, watch: Stopwatch) -> float:
    """Overwrite a file in place: no engine that stores data in a file can be faster."""
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
    """Use SQLite in WAL mode: a row per block, a transaction per batch of requests."""
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
    "a file overwritten in place": a_file,
    "SQLite with a row per block": sqlite,
}
