"""A leg is what the disk stores things in: one address space over components on several devices.

A component is the part of a leg on one device. The layout of a leg decides how many components may be lost; `Mirror` is RAID-1.
Whoever reads says how to recognise good data (`accept`), since only the reader knows the checksum.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol

from refmodel.device import Device
from refmodel.errors import DataLost

Accept = Callable[[bytes], bool]


class Component:
    """A leg's part of one device, and the count of what was done to it, by cause."""

    def __init__(self, device: Device, base: int) -> None:
        self.device = device
        self.base = base  # byte offset of the component on its device
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.flushes: Counter[str] = Counter()
        self.bytes_read: Counter[str] = Counter()
        self.bytes_written: Counter[str] = Counter()

    def read(self, offset: int, length: int, cause: str) -> bytes:
        self.reads[cause] += 1
        self.bytes_read[cause] += length
        return self.device.read(self.base + offset, length)

    def write(self, offset: int, data: bytes, cause: str) -> None:
        self.writes[cause] += 1
        self.bytes_written[cause] += len(data)
        self.device.write(self.base + offset, data)

    def flush(self, cause: str) -> None:
        self.flushes[cause] += 1
        self.device.flush()


class Leg(Protocol):
    """What a layout offers. Offsets and lengths are bytes of the leg's address space.

    Every method takes the `cause` that the device I/O is counted under, and may raise PowerCut or OSError.
    """

    name: str
    components: list[Component]

    def write(self, offset: int, data: bytes, cause: str) -> None:
        """Write to every component that holds a part of it."""
        ...

    def read(self, offset: int, length: int, accept: Accept, cause: str) -> bytes:
        """The data that `accept` takes; copies that it does not take are repaired. Raises DataLost if it takes none."""
        ...

    def verify(self, offset: int, length: int, accept: Accept, cause: str) -> int:
        """Read every copy, and repair those that `accept` does not take. Returns how many. Raises DataLost."""
        ...

    def copies(self, offset: int, length: int, cause: str) -> Iterator[bytes]:
        """Every copy that the components hold or imply, good or not."""
        ...

    def flush(self, cause: str) -> None:
        """Make durable what was written before."""
        ...


class Mirror:
    """RAID-1: every component holds everything at the same offset."""

    def __init__(self, name: str, components: list[Component]) -> None:
        self.name = name
        self.components = components
        self.repairs = 0  # copies found wrong and rewritten from a good one

    def write(self, offset: int, data: bytes, cause: str) -> None:
        for component in self.components:
            component.write(offset, data, cause)

    def read(self, offset: int, length: int, accept: Accept, cause: str) -> bytes:
        wrong = []
        for component in self.components:
            data = component.read(offset, length, cause)
            if accept(data):
                self._repair(wrong, offset, data)
                return data
            wrong.append(component)
        raise self._lost(offset, length)

    def verify(self, offset: int, length: int, accept: Accept, cause: str) -> int:
        found = [(component, component.read(offset, length, cause)) for component in self.components]
        good = next((data for _, data in found if accept(data)), None)
        if good is None:
            raise self._lost(offset, length)
        wrong = [component for component, data in found if data != good]
        self._repair(wrong, offset, good)
        return len(wrong)

    def copies(self, offset: int, length: int, cause: str) -> Iterator[bytes]:
        for component in self.components:
            yield component.read(offset, length, cause)

    def flush(self, cause: str) -> None:
        for component in self.components:
            component.flush(cause)

    def _repair(self, wrong: list[Component], offset: int, data: bytes) -> None:
        for component in wrong:
            component.write(offset, data, "repair")
        self.repairs += len(wrong)

    def _lost(self, offset: int, length: int) -> DataLost:
        return DataLost(f"no good copy of {length} bytes at {offset} of the {self.name} leg")


def write_where_different(leg: Leg, offset: int, data: bytes, cause: str) -> int:
    """Rewrite the copies that are not `data`. Returns how many were not."""
    copies = list(leg.copies(offset, len(data), cause))
    different = sum(copy != data for copy in copies)
    if different:
        leg.write(offset, data, cause)
    return different
