"""Disks that are wrong in one way: each is the honest example with one thing changed."""

import re

from conformance.examples.dict_disk import BLOCK, Answer, DictDisk, Refused
from conformance.selftest.corpus.honest import HonestBlock, HonestPrefix

FAULTS: dict[str, type[DictDisk]] = {}


def wrong(cls: type[DictDisk]) -> type[DictDisk]:
    """Register a wrong disk; its name with dashes is the name of its fault."""
    FAULTS[re.sub(r"(?<=.)([A-Z])", r"-\1", cls.__name__).lower()] = cls
    return cls


@wrong
class AliasedSnapshots(DictDisk):
    def snapshot(self, name: str) -> None:
        super().snapshot(name)
        self.snapshots[name] = self.live


@wrong
class OneSnapshotForAll(DictDisk):
    def snapshot(self, name: str) -> None:
        super().snapshot(name)
        for other in self.snapshots:
            self.snapshots[other] = self.snapshots[name]


@wrong
class RevertAliases(DictDisk):
    def revert(self, name: str) -> None:
        self.live = self.existing(name)


@wrong
class PartialOutOfRangeWrites(DictDisk):
    def write(self, lba: int, data: bytes) -> None:
        try:
            super().write(lba, data)
        except Refused:
            for at_lba in range(lba, min(self.blocks, lba + len(data) // BLOCK)):
                self.live[at_lba] = data[(at_lba - lba) * BLOCK :][:BLOCK]
            raise


@wrong
class AcceptsOutOfRange(DictDisk):
    def check(self, lba: int, count: int) -> None:
        pass


@wrong
class WrapsTheAddress(DictDisk):
    def write(self, lba: int, data: bytes) -> None:
        super().write(lba & 0xFFFF_FFFF, data)


@wrong
class LosesAcknowledgedWrites(DictDisk):
    def create(self, blocks: int) -> None:
        super().create(blocks)
        self.durable: dict[int, bytes] = {}

    def flush(self) -> None:
        self.durable = dict(self.live)

    def crash(self) -> None:
        self.live = dict(self.durable)


@wrong
class CrashLosesFlushedData(DictDisk):
    def flush(self) -> None:
        self.old = dict(self.live)

    def crash(self) -> None:
        self.live = {at_lba: data for at_lba, data in self.live.items() if at_lba}


@wrong
class CrashLosesSnapshots(DictDisk):
    def crash(self) -> None:
        self.snapshots.clear()


@wrong
class UnmapIgnored(DictDisk):
    def unmap(self, lba: int, count: int) -> None:
        self.check(lba, count)


@wrong
class UnmapForgottenByCrash(DictDisk):
    def create(self, blocks: int) -> None:
        super().create(blocks)
        self.hidden: dict[int, bytes] = {}

    def unmap(self, lba: int, count: int) -> None:
        self.check(lba, count)
        self.hidden |= {
            at_lba: self.live.pop(at_lba)
            for at_lba in range(lba, lba + count)
            if at_lba in self.live
        }

    def crash(self) -> None:
        self.live = self.hidden | self.live


@wrong
class RevertDeletesSnapshots(DictDisk):
    def revert(self, name: str) -> None:
        super().revert(name)
        self.snapshots = {name: self.snapshots[name]}


@wrong
class RevertIgnored(DictDisk):
    def revert(self, name: str) -> None:
        self.existing(name)


@wrong
class WrongErrorCode(DictDisk):
    def existing(self, name: str) -> dict[int, bytes]:
        if name not in self.snapshots:
            raise Refused("out-of-range")
        return self.snapshots[name]


@wrong
class AcceptsDuplicateNames(DictDisk):
    def snapshot(self, name: str) -> None:
        self.snapshots.pop(name, None)
        super().snapshot(name)


@wrong
class AcceptsBadNames(DictDisk):
    def snapshot(self, name: str) -> None:
        if name in self.snapshots:
            raise Refused("snapshot-exists")
        self.snapshots[name] = dict(self.live)


@wrong
class RefusesReads(DictDisk):
    def read(self, lba: int, count: int, view: str | None = None) -> Answer:
        if len(self.live) > 2:
            raise Refused("data-lost")
        return super().read(lba, count, view)


@wrong
class DoesNotOpenAgain(DictDisk):
    def crash(self) -> None:
        raise Refused("data-lost")


@wrong
class CreateKeepsTheOldDisk(DictDisk):
    def create(self, blocks: int) -> None:
        self.blocks = blocks
        if not hasattr(self, "live"):
            self.live, self.snapshots = {}, {}
        self.snapshots.clear()


@wrong
class SwapsNeighbours(DictDisk):
    def read(self, lba: int, count: int, view: str | None = None) -> Answer:
        return super().read(lba ^ 1 if self.blocks > lba ^ 1 and count == 1 else lba, count, view)


@wrong
class TearsBlocks(DictDisk):
    def write(self, lba: int, data: bytes) -> None:
        old = self.live.get(lba, bytes(BLOCK))
        super().write(lba, data)
        if old != bytes(BLOCK):
            self.live[lba] = self.live[lba][:256] + old[256:]


@wrong
class CreatesNothing(DictDisk):
    def create(self, blocks: int) -> None:
        raise Refused("no-space")


@wrong
class FuaIgnored(HonestBlock):
    def force(self, lba: int, count: int) -> None:
        pass


@wrong
class FuaOfTheFirstBlock(HonestPrefix):
    def force(self, lba: int, count: int) -> None:
        super().force(lba, 1)
