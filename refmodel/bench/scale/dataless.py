"""Devices that store no chunks: a large disk whose maps are real, on little memory.

Every block of the disk holds the same data, so the capacity leg need not be stored: what is written
there is forgotten, and what is read there is that block. Checksums hold, wherever a chunk moves.
Only for the layout `mirror`, which has no parity.
"""

from refmodel.array.layout import PAGE
from refmodel.media.device import Device
from refmodel.media.power_supply import PowerSupply

BLOCK = PAGE
DATA = bytes(range(256)) * (BLOCK // 256)  # the data of every block


class DatalessDevice:
    """A device that stores what lies below a byte offset, and gives DATA behind it."""

    def __init__(self, device: Device, stored_bytes: int) -> None:
        self.name = device.name
        self._device = device
        self._stored_bytes = stored_bytes

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes; no read may lie on both sides of the border."""
        if offset < self._stored_bytes:
            return self._device.read(offset, length)
        at = offset % BLOCK
        return (DATA * (-(-(at + length) // BLOCK)))[at : at + length]

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write bytes; behind the border they are forgotten."""
        if offset < self._stored_bytes:
            self._device.write(offset, data)

    def allocate(self, offset: int, length: int) -> None:
        """Have the host keep room for what is stored."""
        if offset < self._stored_bytes:
            self._device.allocate(offset, length)

    def flush(self) -> None:
        """Make what is stored durable."""
        self._device.flush()

    def close(self) -> None:
        """Close the device."""
        self._device.close()


class DatalessDevices(PowerSupply):
    """Feeds every device of a disk as one that stores nothing from the capacity leg on."""

    def __init__(self, capacity_base: int) -> None:
        super().__init__()
        self._capacity_base = capacity_base

    def feed(self, device: Device) -> Device:
        """Return the device without its component of the capacity leg."""
        return DatalessDevice(device, self._capacity_base)
