"""The exports of a disk: its live view as the default export, each snapshot as a read-only one."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from refmodel.core.errors import DiskError, NoSuchSnapshot
from refmodel.engine.shape import Shape
from refmodel.serving.lasting_disk import LastingDisk
from refmodel.serving.losses import Losses
from refmodel.serving.nbd.protocol import ExportFlag

ALWAYS = (
    ExportFlag.HAS_FLAGS
    | ExportFlag.SEND_FLUSH
    | ExportFlag.SEND_FUA
    | ExportFlag.SEND_DF
    | ExportFlag.CAN_MULTI_CONN  # one loop serves all connections: a flush covers them all
    | ExportFlag.SEND_CACHE
)
LEAST_PREFERRED = 4096  # bytes
LIVE = -1


class Servable(Protocol):
    """The interface that a disk needs to be served.

    Every Disk has it; LBAs and counts are in blocks.

    A method raises DiskError or OSError if the request fails.
    """

    @property
    def geometry(self) -> Shape:
        """The sizes, the crash profile and the capabilities of the disk."""

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """Return blocks of a snapshot, or of the live disk."""

    def read_many(self, reads: list[tuple[int, int]], view: str | None = None) -> list[bytes]:
        """Return the data of reads that are in flight together."""

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks."""

    def write_many(self, writes: list[tuple[int, bytes]]) -> None:
        """Do writes that are in flight together; where blocks overlap, the last one counts."""

    def unmap(self, lba: int, count: int) -> None:
        """Make blocks read as zeroes."""

    def mapped(self, lba: int, count: int, view: str | None = None) -> Sequence[int]:
        """Return which blocks are mapped, in order; the others read as zeroes."""

    def flush(self) -> None:
        """Make every acknowledged operation durable."""

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots."""

    def identity(self, name: str) -> int:
        """Return a number that no other snapshot ever has. Raises NoSuchSnapshot."""


class DiskExport(NamedTuple):
    """One view of a disk, as a client is connected to it.

    It stays that view: if the snapshot is deleted, requests fail, even if another snapshot takes
    the name.
    """

    disk: Servable
    name: str  # a snapshot's; "" is the live view
    identity: int  # identity of the snapshot; LIVE for the live view
    description: str
    size: int
    flags: ExportFlag
    block_bytes: int  # size that the client should prefer
    told: int = 0  # the last loss of the disk that the client was told of, or need not hear of

    def view(self) -> str | None:
        """Return the name of the view. Raises NoSuchSnapshot if the snapshot was deleted."""
        if not self.name:
            return None
        if self.disk.identity(self.name) != self.identity:
            raise NoSuchSnapshot(f"the snapshot that was named {self.name!r} was deleted")
        return self.name


class DiskExports:
    """The exports that a disk has at the moment."""

    def __init__(self, disk: Servable) -> None:
        self._disk = disk
        self._losses = losses_of(disk)
        shape = disk.geometry
        self._size = shape.blocks * shape.block_bytes
        self._preferred = max(shape.block_bytes, LEAST_PREFERRED)
        self._live = ALWAYS | ExportFlag.SEND_WRITE_ZEROES
        if "unmap" in shape.capabilities:
            self._live |= ExportFlag.SEND_TRIM | ExportFlag.SEND_FAST_ZERO

    def listed(self) -> list[tuple[str, str]]:
        """Return the name and description of each export."""
        return [("", "the live disk"), *((name, "a snapshot") for name in self._disk.snapshots())]

    def open(self, name: str) -> DiskExport:
        """Return an export. Raises LookupError if there is none of that name."""
        if not name:
            description, flags, identity = "the live disk", self._live, LIVE
        else:
            try:
                identity = self._disk.identity(name)
            except DiskError as error:
                raise LookupError(name) from error
            description, flags = "a snapshot", ALWAYS | ExportFlag.READ_ONLY
        size, preferred, told = self._size, self._preferred, self._losses.told
        return DiskExport(self._disk, name, identity, description, size, flags, preferred, told)


def losses_of(disk: Servable) -> Losses:
    """Return the losses of a disk; it has none if nothing opens it again."""
    return disk.losses if isinstance(disk, LastingDisk) else Losses()
