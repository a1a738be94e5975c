"""A disk that a server keeps open: if an error makes it unusable, it is opened again.

Opening it recovers what was durable, as after a crash of the process. What was answered is durable
under the crash profile `ack`. Under another profile, answers since the last flush may be lost then.
`losses` counts this, so that whoever serves the disk can tell the clients: they must not take that
data for durable.
"""

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from refmodel.core.errors import DiskError, NotADisk, UnknownOutcome
from refmodel.engine.forwarding_disk import ForwardingDisk
from refmodel.registry import Disk
from refmodel.serving.losses import Losses

PAUSE = 1.0  # seconds between two attempts to open the disk again

R = TypeVar("R")


class LastingDisk(ForwardingDisk):
    """The disk that `reopen` opens; `disk` is the one that is open now.

    A method raises what the disk's does. An error that is none of an engine's makes the disk
    unusable. UnknownOutcome says that it cannot be opened again for now.
    """

    def __init__(self, reopen: Callable[[], Disk]) -> None:
        super().__init__(reopen())
        self._reopen = reopen
        self._retry_from = 0.0
        self.losses = Losses()
        self._why = ""

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return `count` blocks from `lba` on."""
        return self._on_usable(lambda: self.disk.read(lba, count, view))

    def read_many(self, reads: list[tuple[int, int]], view: str | None = None) -> list[bytes]:
        """Return the data of reads that are in flight together."""
        return self._on_usable(lambda: self.disk.read_many(reads, view))

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks."""
        self._on_usable(lambda: self.disk.write(lba, data))

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do writes that are in flight together."""
        self._on_usable(lambda: self.disk.write_many(writes))

    def unmap(self, lba: int, count: int) -> None:
        """Make blocks read as zeroes."""
        self._on_usable(lambda: self.disk.unmap(lba, count))

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]:
        """Return which blocks a view maps."""
        return self._on_usable(lambda: self.disk.mapped(lba, count, view))

    def identity(self, name: str) -> int:
        """Return the number of a snapshot."""
        return self._on_usable(lambda: self.disk.identity(name))

    def flush(self) -> None:
        """Make every acknowledged operation durable, apart from those that `losses` speaks of."""
        self._on_usable(lambda: self.disk.flush())

    def background(self) -> bool:
        """Do one step of background work. Returns whether there was any."""
        return self._on_usable(lambda: self.disk.background())

    def close(self) -> None:
        """Flush and close the disk, if it is usable."""
        if self.disk.usable:
            self.disk.close()

    def _on_usable(self, work: Callable[[], R]) -> R:
        """Do work on the disk, opened again if need be."""
        if not self.disk.usable:
            self._open_again()
        try:
            return work()
        except DiskError as error:
            self._why = str(error)
            raise
        except BaseException as error:
            self._why = repr(error)
            self.disk.abandon()
            raise

    def _open_again(self) -> None:
        """Raises UnknownOutcome if the disk cannot be opened, or was tried a short while ago."""
        now = monotonic()
        if now < self._retry_from:
            raise UnknownOutcome(f"the disk will be opened again in a moment: {self._why}")
        self._retry_from = now + PAUSE
        if self.disk.geometry.crash_profile != "ack":
            self.losses.add(self._why)
        self.disk.abandon()
        try:
            self.disk = self._reopen()
        except (DiskError, NotADisk, OSError) as error:
            self._why = str(error)
            raise UnknownOutcome(f"the disk cannot be opened again: {error}") from error
        self._retry_from = 0.0
        self.operations = self.disk.operations
