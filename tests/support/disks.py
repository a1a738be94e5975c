"""Small disks: their geometry, and blocks that say which write they came from."""

from typing import Any

from refmodel import LogStructuredDisk

TINY: dict[str, Any] = {"block_bytes": 512, "segment_blocks": 4, "fanout": 4}


def block(tag: int, size: int = 512) -> bytes:
    """Return a block of `size` bytes that says which write it came from."""
    return tag.to_bytes(8, "little") * (size // 8)


def pba_of(disk: LogStructuredDisk, lba: int) -> int:
    """Return the physical block address of a block of the live disk."""
    mba = disk.state.views.live.map.get(lba)
    assert mba is not None
    entry = disk.state.chunks.middle.get(mba)
    assert entry is not None
    return entry[0]
