"""The one device of a redo-log chain, with its I/Os counted by leg.

A chain writes in place, so a write that the host refuses may leave an operation half done: that is
an OSError here, as any other error of the device, and makes the disk unusable until it is opened.
"""

from collections import defaultdict
from collections.abc import Iterator

from refmodel.array.component import Meter
from refmodel.core.errors import HostRefused
from refmodel.media.device import Device

METADATA, DATA = "metadata", "data"  # the legs: descriptors, grain directories and tables; grains
LONGEST = 1 << 20  # bytes of blocks that are joined to one write


class Store:
    """The device. Offsets and lengths are bytes. Every method may raise PowerCut or OSError."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.meters: defaultdict[tuple[str, int], Meter] = defaultdict(Meter)

    def read(self, leg: str, offset: int, length: int, cause: str) -> bytes:
        """Read bytes, counted under a leg and a cause."""
        counts = self.meters[leg, 0][cause]
        counts.reads += 1
        counts.bytes_read += length
        return self._device.read(offset, length)

    def write(self, leg: str, offset: int, data: bytes, cause: str) -> None:
        """Write bytes, counted under a leg and a cause. They are durable after the next flush."""
        counts = self.meters[leg, 0][cause]
        counts.writes += 1
        counts.bytes_written += len(data)
        try:
            self._device.write(offset, data)
        except HostRefused as refusal:
            raise OSError(refusal.errno, str(refusal)) from refusal

    def write_blocks(self, places: list[tuple[int, bytes]], cause: str) -> None:
        """Write blocks, each (offset, data), in as few writes as neighbours allow."""
        for start, blocks in _runs(places):
            self.write(DATA, start, blocks[0] if len(blocks) == 1 else b"".join(blocks), cause)

    def flush(self, cause: str) -> None:
        """Make durable what was written."""
        self.meters[DATA, 0][cause].flushes += 1
        self._device.flush()

    def flush_before_entries(self, cause: str) -> None:
        """Flush: a grain table entry never counts before the grain that it leads to."""
        self.flush(cause)


def _runs(places: list[tuple[int, bytes]]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield blocks that follow each other, and where the first is."""
    start, end = -1, -1
    blocks: list[bytes] = []
    for offset, data in places:
        if offset != end or len(blocks) * len(data) >= LONGEST:
            if blocks:
                yield start, blocks
            start, end, blocks = offset, offset, []
        blocks.append(data)
        end += len(data)
    if blocks:
        yield start, blocks
