"""Data for writes where the content matters: blocks as on a disk with similar files.

Nine of ten blocks come from the source files of Python's standard library, each file padded with
zeroes to whole blocks. A write takes neighbouring blocks from a random place of the library, so the
same block comes again and again. The others are random bytes.
"""

import random
import sysconfig
from functools import lru_cache
from pathlib import Path

NOISE = 0.1  # share of the blocks that are random bytes


class Files:
    """An endless supply of data. The same seed and the same library give the same data."""

    def __init__(self, blocks: int, block_bytes: int, seed: int) -> None:
        """Take data from a library of at most `blocks` blocks."""
        self._blocks = library(blocks, block_bytes)
        self._block_bytes = block_bytes
        self._random = random.Random(f"data {seed}")

    def take(self, count: int) -> bytes:
        """Return data for `count` blocks."""
        choose, blocks = self._random, self._blocks
        first = choose.randrange(len(blocks))
        return b"".join(
            choose.randbytes(self._block_bytes)
            if choose.random() < NOISE
            else blocks[(first + at) % len(blocks)]
            for at in range(count)
        )


@lru_cache(maxsize=4)
def library(blocks: int, block_bytes: int) -> list[bytes]:
    """Return the first blocks of the library, by file name.

    Fewer than asked for if it has no more.
    """
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
