"""Chunks of data, named by MBA: in the bank until they are destaged, then where the middle map says."""

from collections.abc import Callable

from refmodel.checksum import crc32c
from refmodel.geometry import Geometry
from refmodel.leg import Leg
from refmodel.node import Kind
from refmodel.pages import Pages
from refmodel.segments import Segments
from refmodel.tree import Tree

Emit = Callable[..., None]


class Chunks:
    """Chunks that the cleaner moves pass through `moving`: until they are destaged, their old place is still good."""

    def __init__(self, leg: Leg, pages: Pages, segments: Segments, geometry: Geometry, emit: Emit) -> None:
        self._leg = leg
        self._block_bytes = geometry.block_bytes
        self._emit = emit
        self.segments = segments
        self.middle = Tree(pages, Kind.MIDDLE, fanout=geometry.fanout)  # MBA -> PBA, CRC-32C
        self.bank: dict[int, bytes] = {}  # acknowledged, and nowhere else but in the durable log
        self.moving: dict[int, bytes] = {}

    @property
    def live(self) -> int:
        """How many chunks some view holds."""
        return len(self.bank) + self.segments.live

    def add(self, mba: int, data: bytes) -> None:
        """A fresh chunk, which the durable log has."""
        self.bank[mba] = data

    def drop(self, mba: int) -> None:
        """No view holds the chunk any more."""
        if self.bank.pop(mba, None) is not None:
            return
        self.moving.pop(mba, None)
        pba, _ = self.middle.remove(mba)
        self.segments.drop(pba)

    def read(self, mba: int, cause: str = "foreground") -> bytes:
        """A chunk's data, verified. Raises DataLost."""
        if (data := self.bank.get(mba)) is not None:
            return data
        pba, crc = self.middle.get(mba)
        return self._leg.read(self.offset(pba), self._block_bytes, lambda data: crc32c(data) == crc, cause)

    def move(self, mba: int) -> None:
        """Take the chunk along with the next destage. Raises DataLost."""
        self.moving[mba] = self.read(mba, "clean")

    def destage_full(self) -> None:
        """Fill and write as many whole segments as there is data for."""
        while len(self.bank) + len(self.moving) >= self.segments.blocks:
            self._destage()

    def destage_all(self) -> None:
        """Empty the bank, with a segment that is not full if need be."""
        self.destage_full()
        if self.bank:
            self._destage()

    def destage_moving(self) -> None:
        """Write what is moving, though it fills no segment."""
        while self.moving:
            self._destage()

    def offset(self, pba: int) -> int:
        """Where the slot begins, in bytes of the capacity leg."""
        return pba * self._block_bytes

    def _destage(self) -> None:
        """Fill one segment from the bank, then with what is moving, and write it in one full-stripe write."""
        new = list(self.bank)[: self.segments.blocks]
        moved = list(self.moving)[: self.segments.blocks - len(new)]
        chunks = [self.bank[mba] for mba in new] + [self.moving[mba] for mba in moved]
        segment = self.segments.open()
        first = segment * self.segments.blocks
        stripe = b"".join(chunks).ljust(self.segments.blocks * self._block_bytes, b"\0")
        self._leg.write(self.offset(first), stripe, "clean" if not new else "destage")
        self.segments.seal(segment, new + moved)
        for slot, (mba, data) in enumerate(zip(new + moved, chunks)):
            before = self.middle.put(mba, (first + slot, crc32c(data)))
            if before is not None:
                self.segments.drop(before[0])
        for mba in new:
            del self.bank[mba]
        for mba in moved:
            del self.moving[mba]
        self._emit("destage", segment=segment, chunks=len(new), moved=len(moved))
