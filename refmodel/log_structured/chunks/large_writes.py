"""Large writes: whole segments of one write go to the capacity leg before the log knows of them.

The record in the log then holds a table instead of the data: the number of segments, and of each
its number and the checksums of its chunks. What fills no segment follows the table.
"""

import struct
from collections.abc import Sequence

from refmodel.array.leg import Leg
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DiskError
from refmodel.log_structured.chunks.chunk_store import ChunkStore, Emit
from refmodel.log_structured.geometry import Geometry

NUMBER = struct.Struct("<I")


def payload_bytes(shape: Geometry, data_bytes: int) -> int:
    """Return the length of the payload that `place` returns for `data_bytes` bytes of data."""
    segments, rest = divmod(data_bytes, shape.segment_bytes)
    return NUMBER.size * (1 + segments * (1 + shape.segment_blocks)) + rest


class LargeWrites:
    """Writes the segments of a large write, and adopts them once the log holds their table."""

    def __init__(self, leg: Leg, chunks: ChunkStore, geometry: Geometry, emit: Emit) -> None:
        self.placed = 0  # chunks, since the disk was opened
        self._leg = leg
        self._chunks = chunks
        self._segments = chunks.segments
        self._blocks = geometry.segment_blocks
        self._block_bytes = geometry.block_bytes
        self._emit = emit

    def place(self, data: bytes) -> bytes:
        """Write the whole segments of `data` and make them durable; nothing refers to them yet.

        Returns the payload of the log's record. Raises NoSpace, DataLost; then nothing has changed.
        """
        size = self._block_bytes
        stripe = self._blocks * size
        table = [NUMBER.pack(len(data) // stripe)]
        reserved = []
        try:
            for at in range(0, len(data) - stripe + 1, stripe):
                reserved.append(segment := self._segments.reserve())
                self._leg.write(segment * stripe, data[at : at + stripe], "foreground")
                checksums = (
                    crc32c(data[block : block + size]) for block in range(at, at + stripe, size)
                )
                table += [NUMBER.pack(segment), *map(NUMBER.pack, checksums)]
            self._leg.flush("foreground")
            self._emit("place", segments=reserved)
        except DiskError:
            for segment in reserved:
                self._segments.cancel_reservation(segment)
            raise
        return b"".join([*table, data[len(data) // stripe * stripe :]])

    def parse(self, payload: bytes) -> tuple[list[tuple[int, list[int]]], bytes]:
        """Return the segments of a payload, each with its checksums, and the data behind them."""
        (count,) = NUMBER.unpack_from(payload)
        entry = struct.Struct(f"<I{self._blocks}I")
        end = NUMBER.size + count * entry.size
        return [
            (segment, checksums)
            for segment, *checksums in entry.iter_unpack(payload[NUMBER.size : end])
        ], payload[end:]

    def adopt(self, segment: int, mbas: Sequence[int], checksums: list[int]) -> None:
        """Let a placed segment hold these chunks. Raises DataLost if it already was in use."""
        segments = self._segments
        segments.claim(segment)
        pbas = segments.addressing.assign(segment, [segments.units // self._blocks] * len(mbas))
        segments.seal(segment, pbas, mbas, segments.units)
        self._chunks.middle.put_many(mbas, list(zip(pbas, checksums, strict=True)))
        self.placed += len(mbas)
