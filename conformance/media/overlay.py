"""The media of a disk of the reference engine, laid over its files: nothing that is written reaches them, all of it is on record.

So a disk is put back to where it was in no time, and at every flush it is known what a power cut could have left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from refmodel.core.errors import PowerCut
from refmodel.media.device import Device
from refmodel.media.power_supply import SECTOR, PowerSupply

Place = tuple[str, int]  # a device's name, and a sector
Content = dict[Place, bytes]  # of the sectors that differ from the files


class Pending(NamedTuple):
    """A write that no flush has covered yet."""

    device: str
    offset: int
    data: bytes

    @property
    def sectors(self) -> int:
        return -(-len(self.data) // SECTOR)


@dataclass(frozen=True)
class Point:
    """A moment at which the power may fail: a flush comes next, or an operation has ended."""

    writes: int  # since the operation began
    stable: Content
    pending: tuple[Pending, ...]
    happened: int  # events inside the engine until then, since the operation began

    def left(self, masks: tuple[int, ...]) -> Content:
        """What the media hold if so much of each write survives."""
        content = dict(self.stable)
        for write, mask in zip(self.pending, masks):
            _lay(content, write, mask)
        return content


class Overlay(PowerSupply):
    """Feeds devices that read what was written to them, and write no file. `happened` counts events, for points."""

    def __init__(self, happened: Callable[[], int] = lambda: 0) -> None:
        super().__init__()
        self.points: list[Point] = []
        self._happened = happened
        self.content: Content = {}
        self._stable: Content = {}
        self._pending: list[Pending] = []
        self._first = 0  # write of the operation

    def lay(self, content: Content) -> None:
        """This is what the media hold for certain; the disk has to be opened anew."""
        self._stable, self.content, self._pending = dict(content), dict(content), []
        self.begin()

    def begin(self) -> None:
        """An operation begins: points are counted from here."""
        self._first, self.points = self.writes, []

    def point(self) -> Point:
        """This moment."""
        return Point(
            self.writes - self._first, dict(self._stable), tuple(self._pending), self._happened()
        )

    def feed(self, device: Device) -> "OverlaidDevice":
        return OverlaidDevice(device, self)

    def restore(self, seed: int, kept: list[int] | None = None) -> None:
        """What the media keep was laid before."""
        self._cut_at = None
        self.on = True

    def written(self, device: str, offset: int, data: bytes | memoryview) -> None:
        write = Pending(device, offset, bytes(data))
        self._pending.append(write)
        _lay(self.content, write, -1)
        self.spend_write()

    def flushed(self, device: str) -> None:
        """What the device was given is durable. The moment before is a point, if anything was written since the last."""
        writes = self.writes - self._first
        if writes and (not self.points or self.points[-1].writes < writes):
            self.points.append(self.point())
        for write in self._pending:
            if write.device == device:
                _lay(self._stable, write, -1)
        self._pending = [write for write in self._pending if write.device != device]


class OverlaidDevice:
    """A device below an overlay. Writes are of whole sectors."""

    def __init__(self, device: Device, media: Overlay) -> None:
        self.name = device.name
        self._device, self._media = device, media

    def read(self, offset: int, length: int) -> bytes:
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
        self._require()
        self._media.written(self.name, offset, data)

    def flush(self) -> None:
        self._require()
        self._media.flushed(self.name)

    def close(self) -> None:
        self._device.close()

    def _require(self) -> None:
        if not self._media.on:
            raise PowerCut


def _lay(content: Content, write: Pending, mask: int) -> None:
    first = write.offset // SECTOR
    for at in range(write.sectors):
        if mask >> at & 1:
            content[write.device, first + at] = write.data[at * SECTOR : (at + 1) * SECTOR]
