"""Compression of chunks, one by one, to whole units. A chunk that does not shrink is stored as is.

The stored form is a Zstandard frame and zeroes, up to 1, 2 or 4 eighths of a block; or the block
itself. The stored length says which.
"""

import zstandard

from refmodel.core.errors import DataLost
from refmodel.log_structured.geometry import Geometry

LEVEL = 1  # compression level of Zstandard


class Compressor:
    """Compresses blocks of one size."""

    def __init__(self, geometry: Geometry) -> None:
        self._block_bytes = geometry.block_bytes
        self._lengths = [geometry.block_bytes // parts for parts in (8, 4, 2)]
        self._compress = zstandard.ZstdCompressor(level=LEVEL).compress
        self._decompress = zstandard.ZstdDecompressor().decompress

    def compress(self, data: bytes) -> bytes:
        """Return what is stored for a block."""
        frame = self._compress(data)
        for length in self._lengths:
            if len(frame) <= length:
                return frame.ljust(length, b"\0")
        return data

    def decompress(self, stored: bytes) -> bytes:
        """Return the block. Raises DataLost if it is no frame, though its checksum is right."""
        if len(stored) == self._block_bytes:
            return stored
        try:
            data = self._decompress(stored, max_output_size=self._block_bytes)
        except zstandard.ZstdError as error:
            raise DataLost(
                f"a compressed chunk has the right checksum, but is no frame: {error}"
            ) from error
        if len(data) != self._block_bytes:
            raise DataLost(f"a compressed chunk holds {len(data)} bytes, not {self._block_bytes}")
        return data
