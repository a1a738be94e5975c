"""qcow2 beside the engines of this project: the same rungs of snapshots, by qemu's own tools, with
fio as the client over NBD.

Internal snapshots are within the image, each cluster with a reference count; an external one is a
new image on top of what becomes its backing file, so the disk is a chain. An image is 64 KiB
clusters in memory, as qemu makes it by default, written once before the first rung.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from refmodel.bench import nbd_comparison
from refmodel.bench.nbd_comparison import Run, measure, qcow2, qemu_nbd, tool
from refmodel.bench.workloads.workload import Access

TOOLS = ("qemu-img", "qemu-nbd", "fio")
READ, WRITE = Access(1, 1, in_flight=16), Access(0, 1, in_flight=16)


class Rung(NamedTuple):
    """What fio found with so many snapshots."""

    snapshots: int
    write: Run  # right after the snapshot, or the deletion
    read: Run


def missing() -> list[str]:
    return nbd_comparison.missing(TOOLS)


def ladder(how: str, *, blocks: int, writes: int, reads: int, most: int) -> Iterator[Rung]:
    """0 to `most` snapshots, `internal` or `external`, and then they are deleted one by one, the
    oldest first; at each rung 4 KiB random writes, then reads.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        image = {"internal": Internal, "external": External}[how](Path(name), blocks)
        for number, snapshots in enumerate([*range(most + 1), *reversed(range(most))]):
            if snapshots and number <= most:
                image.snapshot()
            elif number > most:
                image.delete_oldest()
            yield Rung(
                snapshots,
                *(
                    _run(image, access, operations, number)
                    for access, operations in ((WRITE, writes), (READ, reads))
                ),
            )


class Internal:
    def __init__(self, folder: Path, blocks: int) -> None:
        self.folder, self.blocks = folder, blocks
        self.top = _filled(folder, blocks)
        self._names: list[str] = []
        self._taken = 0

    def snapshot(self) -> None:
        self._taken += 1
        self._names.append(f"s{self._taken}")
        tool("qemu-img", "snapshot", "-c", self._names[-1], self.top)

    def delete_oldest(self) -> None:
        tool("qemu-img", "snapshot", "-d", self._names.pop(0), self.top)


class External:
    def __init__(self, folder: Path, blocks: int) -> None:
        self.folder, self.blocks = folder, blocks
        self._chain = [_filled(folder, blocks)]  # the oldest first
        self._taken = 0

    @property
    def top(self) -> Path:
        return self._chain[-1]

    def snapshot(self) -> None:
        self._taken += 1
        overlay = self.folder / f"o{self._taken}"
        tool("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", self.top, overlay)
        self._chain.append(overlay)

    def delete_oldest(self) -> None:
        """What the oldest overlay holds goes into the base, and the next overlay is put on that."""
        base, gone, *rest = self._chain
        tool("qemu-img", "commit", "-q", gone)
        if rest:
            tool("qemu-img", "rebase", "-q", "-u", "-F", "qcow2", "-b", base, rest[0])
        gone.unlink()
        self._chain = [base, *rest]


def _filled(folder: Path, blocks: int) -> Path:
    qcow2(folder / "base", blocks)
    return folder / "base"


def _run(image: Internal | External, access: Access, operations: int, seed: int) -> Run:
    """Serve the image, and run fio on it. Raises RuntimeError with what a tool said."""
    socket = image.folder / "nbd"
    return measure(qemu_nbd(image.top, socket), socket, image.blocks, access, operations, seed)
