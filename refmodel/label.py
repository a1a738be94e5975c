"""The label of a device: which disk it belongs to, which of its devices it is, and the disk's geometry."""

import json
import struct
import uuid
from functools import lru_cache

from refmodel.checksum import crc32c
from refmodel.device import Device
from refmodel.errors import DataLost, NotADisk
from refmodel.geometry import PAGE, Geometry

MAGIC = b"LFSLABEL"
VERSION = 1
HEADER = struct.Struct("<8sII16sII")  # magic, CRC-32C of what follows it, version, disk, index, length of the JSON
COVERED = 12  # the checksum covers everything from this byte on


def write_labels(devices: list[Device], geometry: Geometry) -> None:
    """Label fresh devices as one new disk."""
    disk = uuid.uuid4()
    for index, device in enumerate(devices):
        _write(device, encode(disk, index, geometry))
        device.flush()


def read_labels(devices: list[Device]) -> Geometry:
    """The geometry of the disk that the devices say they are. Damaged labels are rewritten.

    Raises NotADisk if no label is good or they contradict each other, DataLost if this version cannot read them.
    """
    found = {}
    damaged = []
    for index, device in enumerate(devices):
        labels = [_decode(device.read(at, PAGE)) for at in (0, PAGE)]
        for label in filter(None, labels):
            disk, position, geometry = label
            if position != index:
                raise NotADisk(f"{device.name} is labelled as device {position}, not {index}")
            found[disk] = geometry
        if None in labels:
            damaged.append((index, device))
    if not found:
        raise NotADisk("no device has a good label: this is no disk, or its labels are damaged")
    if len(found) > 1:
        raise NotADisk("the devices belong to different disks: " + ", ".join(map(str, found)))
    ((disk, geometry),) = found.items()
    for index, device in damaged:
        _write(device, encode(disk, index, geometry))
        device.flush()
    return geometry


def encode(disk: uuid.UUID, index: int, geometry: Geometry) -> bytes:
    body = json.dumps(geometry.as_dict(), sort_keys=True).encode()
    covered = HEADER.pack(MAGIC, 0, VERSION, disk.bytes, index, len(body))[COVERED:] + body
    covered = covered.ljust(PAGE - COVERED, b"\0")
    return MAGIC + crc32c(covered).to_bytes(4, "little") + covered


@lru_cache(maxsize=16)  # a process that crashes a disk again and again reads the same labels
def _decode(page: bytes) -> tuple[uuid.UUID, int, Geometry] | None:
    magic, crc, version, disk, index, length = HEADER.unpack_from(page)
    if magic != MAGIC or crc32c(page[COVERED:]) != crc:
        return None
    if version != VERSION:
        raise DataLost(f"the label has format version {version}; this program reads version {VERSION}")
    return uuid.UUID(bytes=disk), index, Geometry(**json.loads(page[HEADER.size : HEADER.size + length]))


def _write(device: Device, page: bytes) -> None:
    device.write(0, page)
    device.write(PAGE, page)
