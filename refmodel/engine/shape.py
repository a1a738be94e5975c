"""The shape of a disk: what every engine's geometry tells."""

from typing import Any, Protocol


class Shape(Protocol):
    """A geometry, of any engine: what `create` fixes for a disk. A name ends with its unit."""

    @property
    def engine(self) -> str:
        """The name of the engine."""

    @property
    def blocks(self) -> int:
        """The size of the disk, in blocks."""

    @property
    def block_bytes(self) -> int:
        """The size of a block."""

    @property
    def sector_bytes(self) -> int:
        """Bytes that a device has to write as a whole or not at all."""

    @property
    def devices(self) -> int:
        """Number of devices that the disk is made with."""

    @property
    def device_bytes(self) -> int:
        """Size of each device."""

    @property
    def m(self) -> int:
        """Number of devices that may fail."""

    @property
    def crash_profile(self) -> str:
        """The crash profile, which says what survives a power cut: "ack", "prefix" or "block"."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities of the conformance dialogue that the engine has."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, as the label of a device stores them."""
