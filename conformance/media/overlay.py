"""An overlay over the files of a disk of the reference engine: it records every write.

Nothing that is written reaches the files. So a disk is put back to an earlier state at once, and at
every flush it is known what a power cut could have left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from refmodel.core.errors import PowerCut
from refmodel.media.device import Device
from refmodel.media.power_supply import SECTOR, PowerSupply

Place = tuple[str, int]  # a device's name, and a sector
Content = dict[Place, bytes]  # the sectors that differ from the files


class Pending(NamedTuple):
    """A write that no flush has covered yet."""

    device: str
    offset: int
    data: bytes

    @property
    def sectors(self) -> int:
        """Number of sectors that the write covers."""
        return -(-len(self.data) // SECTOR)


@dataclass(frozen=True)
class Point:
    """A moment at which the power may fail: a flush comes next, or an operation has ended."""

    writes: int  # since the operation began
    stable: Content
    pending: tuple[Pending, ...]
    happened: int  # events inside the engine until then, since the operation began

    def left(self, masks: tuple[int, ...]) -> Content:
        """Return what the media hold if these sectors of each pending write survive."""
        content = dict(self.stable)
        for write, mask in zip(self.pending, masks, strict=True):
            _lay(content, write, mask)
        return content


class Overlay(PowerSupply):
    """A power supply whose devices write no file, and read what was written to them.

    `happened` returns how many events the engine has told, which each point records."""

    def __init__(self, happened: Callable[[], int] = lambda: 0) -> None:
        super().__init__()
        self.points: list[Point] = []
        self._happened = happened
        self.content: Content = {}
        self._stable: Content = {}
        self._pending: list[Pending] = []
        self._first = 0  # write of the operation

    def lay(self, content: Content) -> None:
        """Make this the durable content of the media; the disk must be opened again."""
        self._stable, self.content, self._pending = dict(content), dict(content), []
        self.begin()

    def begin(self) -> None:
        """Begin an operation: its points are counted from here."""
        self._first, self.points = self.writes, []

    def point(self) -> Point:
        """Return this moment as a point."""
        return Point(
            self.writes - self._first, dict(self._stable), tuple(self._pending), self._happened()
        )

    def feed(self, device: Device) -> "OverlaidDevice":
        """Return the device with its writes recorded here."""
        return OverlaidDevice(device, self)

    def restore(self, seed: int, kept: list[int] | None = None) -> None:
        """Turn the power on; `lay` has determined before what the media keep."""
        self._cut_at = None
        self.on = True

    def written(self, device: str, offset: int, data: bytes | memoryview) -> None:
        """Record a write. Raises PowerCut if the power fails at it."""
        write = Pending(device, offset, bytes(data))
        self._pending.append(write)
        _lay(self.content, write, -1)
        self.spend_write()

    def flushed(self, device: str) -> None:
        """Make durable what the device was given.

        The moment before becomes a point if anything was written since the last point."""
        writes = self.writes - self._first
        if writes and (not self.points or self.points[-1].writes < writes):
            self.points.append(self.point())
        for write in self._pending:
            if write.device == device:
                _lay(self._stable, write, -1)
        self._pending = [write for write in self._pending if write.device != device]


class OverlaidDevice:
    """A device under an overlay. Offsets and lengths are in bytes; writes are of whole sectors.

    Every method but `close` raises PowerCut while the power is off."""

    def __init__(self, device: Device, media: Overlay) -> None:
        self.name = device.name
        self._device, self._media = device, media

    def read(self, offset: int, length: int) -> bytes:
        """Return what the device holds with the recorded writes over it."""
        self._require()
        skipped = offset % SECTOR  # a chunk of a compressed disk may be less than a sector
        data = self._device.read(offset - skipped, skipped + length)
        first = offset // SECTOR
        found = [
            (at, new)
            for at in range(-(-len(data) // SECTOR))
            if (new := self._media.content.get((self.name, first + at)))
        ]
        if not found:
            return data[skipped:]
        patched = bytearray(data)
        for at, new in found:
            patched[at * SECTOR : (at + 1) * SECTOR] = new
        return bytes(patched[skipped : skipped + length])

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Record a write."""
        self._require()
        self._media.written(self.name, offset, data)

    def allocate(self, offset: int, length: int) -> None:
        """Do nothing: the writes are recorded in memory."""

    def flush(self) -> None:
        """Record a flush."""
        self._require()
        self._media.flushed(self.name)

    def close(self) -> None:
        """Close the device."""
        self._device.close()

    def _require(self) -> None:
        if not self._media.on:
            raise PowerCut


def _lay(content: Content, write: Pending, mask: int) -> None:
    first = write.offset // SECTOR
    for at in range(write.sectors):
        if mask >> at & 1:
            content[write.device, first + at] = write.data[at * SECTOR : (at + 1) * SECTOR]
