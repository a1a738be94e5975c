"""The label of a device: which disk it belongs to, which device it is, and the disk's geometry."""

import json
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from refmodel.array.layout import PAGE
from refmodel.core.checksum import crc32c
from refmodel.core.errors import DataLost, NotADisk
from refmodel.log_structured.geometry import Geometry
from refmodel.media.device import Device
from refmodel.media.enclosure import Enclosure

MAGIC = b"LFSLABEL"
VERSION = 4
HEADER = struct.Struct(
    "<8sII16s16sII"
)  # magic, CRC-32C of what follows it, version, disk, device, index, length of the JSON
COVERED = 12  # the checksum covers everything from this byte on


class Shape(Protocol):
    """A geometry, of whatever engine."""

    engine: str
    blocks: int
    block_bytes: int
    sector_bytes: int  # what a device has to write whole or not at all
    devices: int
    m: int  # how many of them may fail
    crash_profile: str
    capabilities: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]: ...


GEOMETRIES: dict[str, type] = {
    Geometry.engine: Geometry
}  # engine -> its geometry; refmodel.registry adds the others


@dataclass(frozen=True)
class Label:
    disk: str  # UUIDs, in hexadecimal
    device: str
    index: int
    geometry: Shape


def engine_in(folder: Path) -> str:
    """The engine whose disk is in a folder, as the first whole label says; the log-structured one where none is, which then says why."""
    for file in sorted(folder.glob("device-*")):
        with file.open("rb") as device:
            for _ in range(2):
                page = device.read(PAGE)
                if len(page) == PAGE and (label := decode(page)) is not None:
                    return label.geometry.engine
    return Geometry.engine


def write(device: Device, label: Label) -> None:
    """Write both copies, and wait until they are durable."""
    page = encode(label)
    device.write(0, page)
    device.write(PAGE, page)
    device.flush()


def read(device: Device) -> Label | None:
    """What a device says it is; a damaged copy is rewritten from the other. None if neither is whole, or the device does not answer.

    Raises DataLost if this version cannot read it."""
    try:
        copies = [decode(device.read(at, PAGE)) for at in (0, PAGE)]
        found = copies[0] or copies[1]
        if found is not None and None in copies:
            write(device, found)
    except OSError:
        return None
    return found


def read_all(enclosure: Enclosure) -> dict[int, Label]:
    """The good labels of the devices that are there, by place. Raises NotADisk if there is none, or they contradict each other."""
    found: dict[int, Label] = {}
    present = enclosure.present()
    if not present and enclosure.pulled():
        raise DataLost("every device was pulled; bring devices back")
    if not present:
        raise NotADisk(f"{enclosure.path} holds no devices")
    for index in present:
        label = read(enclosure.device(index))
        if label is not None and label.index != index:
            raise NotADisk(f"device-{index} is labelled as device {label.index}, not {index}")
        if label is not None:
            found[index] = label
    if not found and not all(_answers(enclosure.device(index)) for index in present):
        raise DataLost("no device that answers has a good label; bring devices back")
    if not found:
        raise NotADisk("no device has a good label: this is no disk, or its labels are damaged")
    if len(disks := {label.disk for label in found.values()}) > 1:
        raise NotADisk("the devices belong to different disks: " + ", ".join(sorted(disks)))
    return found


def _answers(device: Device) -> bool:
    """Whether a device can be read at all."""
    try:
        device.read(0, PAGE)
    except OSError:
        return False
    return True


def encode(label: Label) -> bytes:
    body = json.dumps(label.geometry.as_dict(), sort_keys=True).encode()
    disk, device = UUID(label.disk).bytes, UUID(label.device).bytes
    covered = HEADER.pack(MAGIC, 0, VERSION, disk, device, label.index, len(body))[COVERED:] + body
    covered = covered.ljust(PAGE - COVERED, b"\0")
    return MAGIC + crc32c(covered).to_bytes(4, "little") + covered


@lru_cache(maxsize=64)  # a process that crashes a disk again and again reads the same labels
def decode(page: bytes) -> Label | None:
    magic, crc, version, disk, device, index, length = HEADER.unpack_from(page)
    if magic != MAGIC or crc32c(page[COVERED:]) != crc:
        return None
    if version != VERSION:
        raise DataLost(
            f"the label has format version {version}; this program reads version {VERSION}"
        )
    facts = json.loads(page[HEADER.size : HEADER.size + length])
    engine = facts.get("engine", Geometry.engine)
    if engine not in GEOMETRIES:
        raise DataLost(
            f"the label names the engine {engine!r}; this program has {', '.join(GEOMETRIES)}"
        )
    return Label(UUID(bytes=disk).hex, UUID(bytes=device).hex, index, GEOMETRIES[engine](**facts))
