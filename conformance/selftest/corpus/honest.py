"""Disks that are honest in another way: they have a cache that a power cut takes. A write with
`fua` is durable at once, and nothing else becomes so.
"""

import random

from conformance.examples.dict_disk import BLOCK, DictDisk

Blocks = dict[int, bytes]  # LBA -> data
Contents = tuple[Blocks, dict[str, Blocks]]  # the live disk, and the snapshots by name


class HonestBlock(DictDisk):
    """After a power cut each block holds what it held at the last flush, or anything written since;
    snapshots flush.
    """

    profile = "block"
    also = ("fua",)  # capabilities

    def create(self, blocks: int) -> None:
        super().create(blocks)
        self.choose = random.Random(blocks)
        self.since: list[Contents] = []
        self.flush()

    def write(self, lba: int, data: bytes, fua: bool = False) -> None:
        super().write(lba, data)
        self.remember()
        if fua:
            self.force(lba, len(data) // BLOCK)

    def force(self, lba: int, count: int) -> None:
        """Make these blocks durable: they are so in all that a power cut may leave."""
        for live, _ in self.since:
            live.update({at_lba: self.live[at_lba] for at_lba in range(lba, lba + count)})

    def unmap(self, lba: int, count: int) -> None:
        super().unmap(lba, count)
        self.remember()

    def snapshot(self, name: str) -> None:
        super().snapshot(name)
        self.flush()

    def delete(self, name: str) -> None:
        super().delete(name)
        self.flush()

    def revert(self, name: str) -> None:
        super().revert(name)
        self.flush()

    def remember(self) -> None:
        self.since.append((dict(self.live), dict(self.snapshots)))

    def flush(self) -> None:
        self.since = [(dict(self.live), dict(self.snapshots))]

    def crash(self) -> None:
        kept = {
            at_lba: self.choose.choice(self.since)[0].get(at_lba) for at_lba in range(self.blocks)
        }
        self.live = {at_lba: data for at_lba, data in kept.items() if data}
        self.flush()

    def restart(self) -> None:
        self.flush()


class HonestPrefix(HonestBlock):
    """After a power cut it is as it was at some point since the last flush."""

    profile = "prefix"

    def flush(self) -> None:
        self.since = []
        self.remember()

    def snapshot(self, name: str) -> None:
        DictDisk.snapshot(self, name)
        self.remember()

    def delete(self, name: str) -> None:
        DictDisk.delete(self, name)
        self.remember()

    def revert(self, name: str) -> None:
        DictDisk.revert(self, name)
        self.remember()

    def crash(self) -> None:
        live, snapshots = self.choose.choice(self.since)
        self.live, self.snapshots = dict(live), dict(snapshots)
        self.flush()


HONEST: dict[str, type[DictDisk]] = {
    "none": DictDisk,
    "honest-block": HonestBlock,
    "honest-prefix": HonestPrefix,
}
