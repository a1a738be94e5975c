"""The label of a device: the disk it belongs to, which of its devices it is, the disk's geometry.

This layer stores the geometry and does not interpret it: each engine has its own.
"""

import json
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from refmodel.array.layout import PAGE
from refmodel.core.checksum import crc32c, stored_checksum
from refmodel.core.errors import DataLost, HostRefused, NotADisk
from refmodel.media.device import Device, opened
from refmodel.media.enclosure import Enclosure

MAGIC = b"LFSLABEL"
VERSION = 8
# magic, CRC-32C of what follows it, version, disk, device, index, length of the JSON
HEADER = struct.Struct("<8sII16s16sII")
COVERED = 12  # the checksum covers everything from this byte on
DEFAULT_ENGINE = "log-structured"  # the engine of a label that names none


@dataclass(frozen=True)
class Label:
    """The content of a label."""

    disk: str  # UUIDs, in hexadecimal
    device: str
    index: int  # the number of the device
    geometry: Mapping[str, Any]  # the fields of the engine's geometry; not to be changed

    @property
    def engine(self) -> str:
        """The name of the engine whose disk this is."""
        return str(self.geometry.get("engine", DEFAULT_ENGINE))


def first_in(folder: Path) -> Label | None:
    """Return the first whole label of the disk in a folder, if there is one.

    This does not need the disk to itself.
    """
    for file in sorted(folder.glob("device-*")):
        with os.fdopen(opened(file, os.O_RDONLY), "rb") as device:
            for _ in range(2):
                page = device.read(PAGE)
                if len(page) == PAGE and (label := decode(page)) is not None:
                    return label
    return None


def engine_in(folder: Path) -> str:
    """Return the engine of the disk in a folder, as the first whole label says.

    Where no label is whole it is the default engine, which then says why the disk cannot be opened.
    """
    label = first_in(folder)
    return DEFAULT_ENGINE if label is None else label.engine


def write(device: Device, label: Label) -> None:
    """Write both copies, and wait until they are durable. Raises OSError or PowerCut."""
    page = encode(label)
    device.write(0, page)
    device.write(PAGE, page)
    device.flush()


def rewrite_if_wrong(device: Device, label: Label) -> bool:
    """Write both copies unless they are as they should be. Returns whether they were not.

    Raises OSError or PowerCut.
    """
    wrong = device.read(0, 2 * PAGE) != 2 * encode(label)
    if wrong:
        write(device, label)
    return wrong


def read(device: Device) -> Label | None:
    """Return the label of a device; a damaged copy is rewritten from the other one.

    None if no copy is whole or the device does not answer. Raises NotADisk if the label has a
    version that this program cannot read.
    """
    return _read_and_repaired(device)[0]


def read_all(enclosure: Enclosure) -> tuple[dict[int, Label], int]:
    """Return the good labels of the devices that are present, by number of the device.

    The second value is how many of them had a damaged copy, which was rewritten.

    Raises NotADisk if the folder has no devices, the labels contradict each other or have another
    version; DataLost if every label is damaged, or every device that might have one is away.
    """
    found: dict[int, Label] = {}
    repaired = 0
    present = enclosure.present()
    if not present and (enclosure.pulled() or enclosure.has_witness()):
        raise DataLost("every device was pulled or is gone; bring devices back")
    if not present:
        raise NotADisk(f"there is no disk at {enclosure.path}: the folder has no devices")
    for index in present:
        label, was_damaged = _read_and_repaired(enclosure.device(index))
        repaired += was_damaged
        if label is not None and label.index != index:
            raise NotADisk(f"device-{index} is labelled as device {label.index}, not {index}")
        if label is not None:
            found[index] = label
    if not found and not all(_answers(enclosure.device(index)) for index in present):
        raise DataLost("no device that answers has a good label; bring devices back")
    if not found:
        raise DataLost("no device has a good label: this is no disk, or its labels are damaged")
    if len(disks := {label.disk for label in found.values()}) > 1:
        raise NotADisk("the devices belong to different disks: " + ", ".join(sorted(disks)))
    return found, repaired


def _read_and_repaired(device: Device) -> tuple[Label | None, bool]:
    """Return the label of a device, as `read` does, and whether a damaged copy was rewritten."""
    repaired = False
    try:
        copies = [decode(device.read(at, PAGE)) for at in (0, PAGE)]
        found = copies[0] or copies[1]
        if found is not None and None in copies:
            with suppress(HostRefused):
                write(device, found)
                repaired = True
    except OSError:
        return None, False
    return found, repaired


def _answers(device: Device) -> bool:
    """Return whether the device can be read."""
    try:
        device.read(0, PAGE)
    except OSError:
        return False
    return True


def encode(label: Label) -> bytes:
    """Return the page that stores a label."""
    body = json.dumps(dict(label.geometry), sort_keys=True).encode()
    disk, device = UUID(label.disk).bytes, UUID(label.device).bytes
    covered = HEADER.pack(MAGIC, 0, VERSION, disk, device, label.index, len(body))[COVERED:] + body
    covered = covered.ljust(PAGE - COVERED, b"\0")
    return MAGIC + stored_checksum(covered) + covered


@lru_cache(maxsize=64)  # a process that crashes a disk again and again reads the same labels
def decode(page: bytes) -> Label | None:
    """Return the label in a page; None if it is damaged. Raises NotADisk for another version."""
    magic, crc, version, disk, device, index, length = HEADER.unpack_from(page)
    if magic != MAGIC or crc32c(page[COVERED:]) != crc:
        return None
    if version != VERSION:
        raise NotADisk(
            f"the disk has format version {version}, and this program reads version {VERSION}: "
            "open it with the version of the program that made it"
        )
    geometry = json.loads(page[HEADER.size : HEADER.size + length])
    return Label(UUID(bytes=disk).hex, UUID(bytes=device).hex, index, geometry)
