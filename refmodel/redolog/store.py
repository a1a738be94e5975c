"""The one device of a chain, with what is done to it counted by leg and cause."""

from collections import defaultdict

from refmodel.array.component import Meter
from refmodel.media.device import Device

METADATA, DATA = "metadata", "data"  # the legs: descriptors, grain directories and tables; grains


class Store:
    """Offsets and lengths are bytes. Every method may raise PowerCut or OSError."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.meters: defaultdict[tuple[str, int], Meter] = defaultdict(Meter)

    def read(self, leg: str, offset: int, length: int, cause: str) -> bytes:
        meter = self.meters[leg, 0]
        meter.reads[cause] += 1
        meter.bytes_read[cause] += length
        return self._device.read(offset, length)

    def write(self, leg: str, offset: int, data: bytes, cause: str) -> None:
        meter = self.meters[leg, 0]
        meter.writes[cause] += 1
        meter.bytes_written[cause] += len(data)
        self._device.write(offset, data)

    def flush(self, cause: str) -> None:
        self.meters[DATA, 0].flushes[cause] += 1
        self._device.flush()
