"""Disks on arrays whose devices fail, with the content that they have to have."""

import random
from pathlib import Path
from typing import Any

from refmodel import create, open_disk, plan
from refmodel.observe.counters import counters
from support.disks import block

BLOCKS = 64


class SettableClock:
    """A repair clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class TrackedDisk:
    """A log-structured disk, with the content that it has to have."""

    def __init__(
        self, folder: Path, layout: str, *, spares: int = 0, segment_blocks: int = 8, **shape: Any
    ) -> None:
        self.folder, self.clock, self.random = folder, SettableClock(), random.Random(1)
        self.content = [0] * BLOCKS
        self.tag = 0
        create(
            folder,
            plan(
                BLOCKS,
                block_bytes=512,
                layout=layout,
                segment_blocks=segment_blocks,
                spares=spares,
                **shape,
            ),
            sync=False,
        )
        self.open()

    def open(self) -> None:
        """Open the disk."""
        self.disk = open_disk(self.folder, sync=False, now=self.clock)

    def reopen(self) -> None:
        """Crash the process, and open the disk again."""
        self.disk.abandon()
        self.open()

    def write(self, count: int = 1) -> None:
        """Write `count` random blocks."""
        for _ in range(count):
            lba = self.random.randrange(BLOCKS)
            self.tag += 1
            self.disk.write(lba, block(self.tag))
            self.content[lba] = self.tag

    def fill(self) -> None:
        """Write every block."""
        for lba in range(BLOCKS):
            self.tag += 1
            self.disk.write(lba, block(self.tag))
            self.content[lba] = self.tag

    def is_right(self) -> bool:
        """Return whether the disk reads as its content."""
        return self.disk.read(0, BLOCKS) == b"".join(
            block(tag) if tag else bytes(512) for tag in self.content
        )

    def states(self) -> list[str]:
        """Return the states of the members."""
        return [str(member.state) for member in self.disk.array.members]

    def bytes(self, cause: str, leg: str = "capacity") -> int:
        """Return how many bytes were written to a leg for a cause."""
        return int(counters(self.disk).get(f"device.{leg}.bytes_written.{cause}", 0))
