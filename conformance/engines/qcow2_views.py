"""Reading an internal snapshot of qcow2 in a daemon that can export only the live view.

What makes qcow2 read as a snapshot is where its header says that the L1 table is: `qemu-img convert -l` opens the image,
and then takes the snapshot's table instead of the active one. Here the header names that table while the image is
opened a second time. From there on qemu's own driver reads: L1, L2, data. Only the list of snapshots is read here
(docs/interop/qcow2.txt of qemu, "Header" and "Snapshots"); all numbers are big-endian.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

L1 = struct.Struct(">IQ")  # entries, offset in bytes
L1_AT = 36  # in the header, bytes
SNAPSHOTS = struct.Struct(">IQ")  # how many, offset in bytes
SNAPSHOTS_AT = 60
SNAPSHOT = struct.Struct(">QIHHIIQII")  # L1 offset and entries, lengths of id and name, time x 3, RAM, extra data


def l1_table(image: bytes, name: str) -> tuple[int, int] | None:
    """How many entries the snapshot's L1 table has, and the byte it begins at; None if the image has no such snapshot."""
    count, at = SNAPSHOTS.unpack_from(image, SNAPSHOTS_AT)
    for _ in range(count):
        offset, entries, id_length, name_length, *_, extra = SNAPSHOT.unpack_from(image, at)
        at += SNAPSHOT.size + extra + id_length
        if image[at : at + name_length] == name.encode():
            return entries, offset
        at += name_length
        at += -at % 8
    return None


@contextmanager
def active(disk: Path, table: tuple[int, int]) -> Iterator[None]:
    """Meanwhile whoever opens the image finds this L1 table, and nobody may write to the image."""
    with disk.open("r+b", buffering=0) as file:
        file.seek(L1_AT)
        before = file.read(L1.size)
        try:
            _put(file, L1.pack(*table))
            yield
        finally:
            _put(file, before)


def _put(file, numbers: bytes) -> None:
    file.seek(L1_AT)
    file.write(numbers)
