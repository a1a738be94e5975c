"""Disks that are honest in another way: they have a cache that a power cut takes."""

import random

from dict_disk import DictDisk


class HonestBlock(DictDisk):
    """After a power cut each block holds what it held at the last flush, or anything written since;
    snapshots flush.
    """

    profile = "block"

    def create(self, blocks):
        super().create(blocks)
        self.choose, self.since = random.Random(blocks), []
        self.flush()

    def write(self, lba, data):
        super().write(lba, data)
        self.remember()

    def unmap(self, lba, count):
        super().unmap(lba, count)
        self.remember()

    def snapshot(self, name):
        super().snapshot(name)
        self.flush()

    def delete(self, name):
        super().delete(name)
        self.flush()

    def revert(self, name):
        super().revert(name)
        self.flush()

    def remember(self):
        self.since.append((dict(self.live), dict(self.snapshots)))

    def flush(self):
        self.since = [(dict(self.live), dict(self.snapshots))]

    def crash(self):
        kept = {
            at_lba: self.choose.choice(self.since)[0].get(at_lba) for at_lba in range(self.blocks)
        }
        self.live = {at_lba: data for at_lba, data in kept.items() if data}
        self.flush()

    restart = flush


class HonestPrefix(HonestBlock):
    """After a power cut it is as it was at some point since the last flush."""

    profile = "prefix"

    def flush(self):
        self.since = []
        self.remember()

    def snapshot(self, name):
        DictDisk.snapshot(self, name)
        self.remember()

    def delete(self, name):
        DictDisk.delete(self, name)
        self.remember()

    def revert(self, name):
        DictDisk.revert(self, name)
        self.remember()

    def crash(self):
        live, snapshots = self.choose.choice(self.since)
        self.live, self.snapshots = dict(live), dict(snapshots)
        self.flush()

    def restart(self):
        self.flush()


HONEST = {"none": DictDisk, "honest-block": HonestBlock, "honest-prefix": HonestPrefix}
