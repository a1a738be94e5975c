"""The requests of a disk as processes, so that several may be in flight."""

from itertools import islice
from typing import Protocol

from refmodel.runtime.effects import Process


class Requests(Protocol):
    """The requests of one disk. Each process raises what the disk's method of its name raises."""

    def write(self, lba: int, data: bytes) -> Process[None]:
        """Write whole blocks from `lba` on."""

    def write_many(self, writes: list[tuple[int, bytes]]) -> Process[None]:
        """Write several extents, each an LBA (logical block address) and whole blocks."""

    def unmap(self, lba: int, count: int) -> Process[None]:
        """Let `count` blocks from `lba` on read as zeroes."""

    def read(self, lba: int, count: int = 1, view: str | None = None) -> Process[bytes]:
        """Return `count` blocks from `lba` on, of a snapshot, or of live if `view` is None."""

    def snapshot(self, name: str) -> Process[None]:
        """Take a snapshot of live."""

    def delete(self, name: str) -> Process[None]:
        """Delete a snapshot."""

    def revert(self, name: str) -> Process[None]:
        """Make live what the snapshot is."""

    def flush(self) -> Process[None]:
        """Make everything durable that was called before."""


def joined(found: list[bytes], counts: list[int]) -> list[bytes]:
    """Return the blocks of extents, put together; `counts` is the number of blocks of each."""
    if len(found) == len(counts):
        return found
    blocks = iter(found)
    return [b"".join(islice(blocks, count)) for count in counts]
