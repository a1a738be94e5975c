"""The interface of every block device of the kit, over NBD or on a file."""

from typing import Protocol


class BlockDevice(Protocol):
    """A block device. Offsets and lengths are in bytes. Every method raises OSError or NbdError."""

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on."""
        ...

    def write(self, offset: int, data: bytes, durable: bool = False) -> None:
        """Write the data at `offset`; return when it is durable if that is asked for."""
        ...

    def zero(self, offset: int, length: int) -> None:
        """Make the range read as zeroes; the device may punch a hole."""
        ...

    def flush(self) -> None:
        """Make durable what was written before."""
        ...

    def end(self) -> None:
        """Send no request from now on. What was sent may still be answered."""
        ...

    def close(self) -> None:
        """Close the device."""
        ...
