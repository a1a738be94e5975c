"""Data to write where it matters what it is: blocks as on disks with alike files, for data reduction.

Nine blocks of ten are of the source files of Python's standard library, each file filled up with zeroes to whole blocks: runs of them from anywhere in a
library of so many blocks, so that the same block comes again and again. The others are random bytes.
"""

import random
import sysconfig
from functools import lru_cache
from pathlib import Path

NOISE = 0.1  # of the blocks


class Files:
    """An endless supply, deterministic by seed and the library's files."""

    def __init__(self, blocks: int, block_bytes: int, seed: int) -> None:
        self._blocks = library(blocks, block_bytes)
        self._block_bytes = block_bytes
        self._random = random.Random(f"data {seed}")

    def take(self, count: int) -> bytes:
        """Data of so many blocks."""
        choose, blocks = self._random, self._blocks
        first = choose.randrange(len(blocks))
        return b"".join([
            choose.randbytes(self._block_bytes) if choose.random() < NOISE else blocks[(first + at) % len(blocks)]
            for at in range(count)
        ])  # fmt: skip


@lru_cache(maxsize=4)
def library(blocks: int, block_bytes: int) -> list[bytes]:
    """The first blocks of the library, in the order of its files' names; fewer if it has no more."""
    found: list[bytes] = []
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        data = path.read_bytes()
        found += [
            data[at : at + block_bytes].ljust(block_bytes, b"\0")
            for at in range(0, len(data), block_bytes)
        ]
        if len(found) >= blocks:
            break
    return found[:blocks]
