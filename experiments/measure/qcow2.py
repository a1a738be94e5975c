"""Measures qcow2 with snapshots, by qemu's own tools, with fio as the client over NBD.

Internal snapshots are in the image, which has a reference count per cluster. For an external
snapshot the image becomes the backing file of a new image, so the disk is a chain. Images are in
memory, have clusters of 64 KiB (qemu's default), and are written once before anything is measured.
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
    """fio's measurements with some number of snapshots."""

    snapshots: int
    write: Run  # right after the snapshot or the deletion
    read: Run


def missing() -> list[str]:
    """Return the tools that are not installed."""
    return nbd_comparison.missing(TOOLS)


def ladder(how: str, *, blocks: int, writes: int, reads: int, most: int) -> Iterator[Rung]:
    """Take `most` snapshots and delete them, the oldest first. Yield what fio measured each time.

    `how` is `internal` or `external`; `writes` and `reads` are operations of 4 KiB, at random.
    Raises RuntimeError if a tool fails.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        kinds: dict[str, type[Internal] | type[External]]
        kinds = {"internal": Internal, "external": External}
        image = kinds[how](Path(name), blocks)
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
    """An image with internal snapshots."""

    def __init__(self, folder: Path, blocks: int) -> None:
        self.folder, self.blocks = folder, blocks
        self.top = _filled(folder, blocks)
        self._names: list[str] = []
        self._taken = 0

    def snapshot(self) -> None:
        """Take a snapshot. Raises RuntimeError."""
        self._taken += 1
        self._names.append(f"s{self._taken}")
        tool("qemu-img", "snapshot", "-c", self._names[-1], self.top)

    def delete_oldest(self) -> None:
        """Delete the oldest snapshot. Raises RuntimeError."""
        tool("qemu-img", "snapshot", "-d", self._names.pop(0), self.top)


class External:
    """A chain of images: the base, and an overlay per snapshot."""

    def __init__(self, folder: Path, blocks: int) -> None:
        self.folder, self.blocks = folder, blocks
        self._chain = [_filled(folder, blocks)]  # the oldest first
        self._taken = 0

    @property
    def top(self) -> Path:
        """The image that is served."""
        return self._chain[-1]

    def snapshot(self) -> None:
        """Take a snapshot. Raises RuntimeError."""
        self._taken += 1
        overlay = self.folder / f"o{self._taken}"
        tool("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", self.top, overlay)
        self._chain.append(overlay)

    def delete_oldest(self) -> None:
        """Merge the oldest overlay into the base, and put the next overlay on the base."""
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
    """Serve the image, and run fio on it. Raises RuntimeError if a tool fails."""
    socket = image.folder / "nbd"
    return measure(qemu_nbd(image.top, socket), socket, image.blocks, access, operations, seed)
