"""Read an internal snapshot of qcow2 in a daemon that can export the live view only.

The header of an image says where the active L1 table is. `qemu-img convert -l` opens the image and
then takes the snapshot's table instead. Here the header names that table while the image is opened
a second time; from then on qemu's own driver reads L1, L2 and data. Only the list of snapshots is
read here (docs/interop/qcow2.txt of qemu, "Header" and "Snapshots"); all numbers are big-endian.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap

L1 = struct.Struct(">IQ")  # entries, offset in bytes
L1_AT = 36  # in the header, bytes
SNAPSHOTS = struct.Struct(">IQ")  # number of snapshots, offset in bytes
SNAPSHOTS_AT = 60
SNAPSHOT = struct.Struct(
    ">QIHHIIQII"
)  # L1 offset and entries, lengths of id and name, time x 3, RAM, extra data


def l1_table(image: mmap, name: str) -> tuple[int, int] | None:
    """Return the number of entries of the snapshot's L1 table, and its offset in bytes.

    Returns None if the image has no such snapshot."""
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
def active(image: mmap, table: tuple[int, int]) -> Iterator[None]:
    """Give the mapped image this L1 table in this `with` block. Nobody may write to it."""
    at = slice(L1_AT, L1_AT + L1.size)
    before = image[at]
    try:
        image[at] = L1.pack(*table)
        yield
    finally:
        image[at] = before
