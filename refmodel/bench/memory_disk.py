"""A disk in memory, served as a disk of the engine is: it shows what the server itself costs.

refmodel.bench.nbd_comparison runs it: `python -m refmodel.bench.memory_disk SOCKET BLOCKS`.
"""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from refmodel.bench.workloads.workload import BLOCK
from refmodel.core.errors import NoSuchSnapshot
from refmodel.engine.shape import Shape
from refmodel.registry import DEFAULT, plan
from refmodel.serving.callbacks import Callbacks
from refmodel.serving.server import serve_disk


class MemoryDisk:
    """A live view in memory, without snapshots. LBAs and counts are in blocks."""

    def __init__(self, blocks: int) -> None:
        self.geometry: Shape = plan(DEFAULT, blocks)
        self._bytes = bytearray(blocks * BLOCK)

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return blocks."""
        return bytes(memoryview(self._bytes)[lba * BLOCK : (lba + count) * BLOCK])

    def read_many(self, reads: list[tuple[int, int]], view: str | None = None) -> list[bytes]:
        """Return the data of several reads."""
        return [self.read(lba, count) for lba, count in reads]

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks."""
        self._bytes[lba * BLOCK : lba * BLOCK + len(data)] = data

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do several writes, in their order."""
        for lba, data in writes:
            self.write(lba, data)

    def unmap(self, lba: int, count: int) -> None:
        """Make blocks read as zeroes."""
        self.write(lba, bytes(count * BLOCK))

    def mapped(self, lba: int, count: int, view: str | None = None) -> Sequence[int]:
        """Return which blocks are mapped: all of them."""
        return range(lba, lba + count)

    def flush(self) -> None:
        """Do nothing: memory is not durable."""

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots: there are none."""
        return []

    def identity(self, name: str) -> int:
        """Raises NoSuchSnapshot."""
        raise NoSuchSnapshot(f"there is no snapshot named {name!r}")


if __name__ == "__main__":
    with closing(Callbacks()) as callbacks:
        disk = MemoryDisk(int(sys.argv[2]))
        serve_disk(disk, callbacks, "memory", socket_path=Path(sys.argv[1]))
