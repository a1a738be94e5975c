"""Small disks: their geometry, and blocks that say which write they came from."""

TINY = {"block_bytes": 512, "segment_blocks": 4, "fanout": 4}


def block(tag: int, size: int = 512) -> bytes:
    """Return a block of `size` bytes that says which write it came from."""
    return tag.to_bytes(8, "little") * (size // 8)
