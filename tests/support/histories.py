"""Random histories of operations with power cuts: the disk is what the contract allows.

The disk is compared with a plain record of what was acknowledged. After every operation the audit
checks that all maps agree.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.array.layout import LAYOUTS
from refmodel.array.member import ComponentState
from refmodel.core.errors import BadRequest, NoSpace, PowerCut, SnapshotExists
from refmodel.log_structured.audit import audit
from refmodel.media.power_supply import PowerSupply
from support.disks import block

WEIGHTS = {
    "write": 36,
    "write_many": 6,
    "unmap": 8,
    "snapshot": 6,
    "delete": 6,
    "revert": 3,
    "flush": 2,
    "crash": 2,
    "clean": 2,
    "checkpoint": 2,
    "settle": 1,
    "restart": 1,
    "fail": 3,
    "return": 3,
    "replace": 1,
    "tick": 1,
}

Content = tuple[tuple[int, ...], dict[str, tuple[int, ...]]]  # live, snapshots
# what to call and the content after it, or nothing
Step = tuple[Callable[[], object], Content] | tuple[None, None]


class History:
    """One random disk and one random history of it."""

    def __init__(self, folder: Path, seed: int, **reductions: Any) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.power = PowerSupply()
        self.seen: Counter[str] = Counter()
        self.tag = 0
        blocks = self.random.choice([4, 8, 16, 40])
        layout = self.random.choice(list(LAYOUTS))
        segment_blocks = LAYOUTS[layout][0] * self.random.choice([1, 2, 4, 8])
        spare = self.random.choice([1, 1.3, 2, 3])
        self.shape = plan(
            blocks,
            block_bytes=512,
            segment_blocks=segment_blocks,
            segments=5 + -(-int(blocks * spare) // segment_blocks),
            log_bytes=self.random.choice([1, 3]) * blocks * 512 + 8192,
            fanout=self.random.choice([3, 4, 8]),
            write_back=self.random.random() < 0.4,
            layout=layout,
            spares=self.random.choice([0, 1]),
            **reductions,
        )
        self.seconds = 0.0
        self.live: tuple[int, ...] = (0,) * blocks
        self.snaps: dict[str, tuple[int, ...]] = {}
        self.since_flush: list[Content] = [self.content()]
        create(folder, self.shape, sync=False)
        self.disk = self.open()

    def content(self) -> Content:
        """Return the content that the disk has to have now."""
        return self.live, dict(self.snaps)

    def open(self) -> LogStructuredDisk:
        return open_disk(self.folder, sync=False, power=self.power, now=lambda: self.seconds)

    def step(self) -> None:
        """Do one random operation, and check the disk."""
        op = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        after = None
        # if the operation changes it, that need not be on record when the power fails
        self.redundant = self.disk.array.redundant
        if self.random.random() < 0.08:
            self.power.cut_at(self.random.randint(1, 20))
        try:
            self.phase = self.disk.checkpoints.phase.name.lower()
            self.seen[f"{op} in {self.phase}"] += 1
            if self.disk.state.views.frozen_maps:
                self.seen[f"{op} over a frozen map"] += 1
            if op in ("write", "write_many", "unmap", "snapshot", "delete", "revert"):
                call, after = getattr(self, op)()
                if call is not None:
                    call()
                    self.live, self.snaps = after
                    self.since_flush.append(self.content())
            elif op == "crash":
                self.power.cut()
                raise PowerCut
            elif op == "restart":
                self.disk.close()
                self.since_flush = self.since_flush[-1:]
                self.disk = self.open()
            elif op in ("fail", "return", "replace", "tick"):
                getattr(self, op + "_device")()
            elif op == "flush":
                self.disk.flush()
                self.since_flush = self.since_flush[-1:]
            else:
                getattr(self.disk, op)()
            self.seen[op] += 1
        except BadRequest as refusal:
            assert op == "write_many" and "do not fit the log" in str(refusal)
        except NoSpace:
            assert op != "delete"
            self.seen["no-space"] += 1
        except PowerCut:
            self.recover(after)
        finally:
            self.power.cut_at(None)
        assert audit(self.disk.state) == []

    def write(self) -> Step:
        lba, count = self.range()
        tags = self.tags(count)
        after = (self.live[:lba] + tags + self.live[lba + count :], dict(self.snaps))
        return lambda: self.disk.write(lba, b"".join(map(self.block, tags))), after

    def write_many(self) -> Step:
        """Writes in flight together: all of them survive a power cut, or none."""
        writes, live = [], self.live
        for _ in range(self.random.randint(2, 5)):
            lba, count = self.range()
            (tag,) = self.tags(1)
            writes.append((lba, self.block(tag) * count))
            live = live[:lba] + (tag,) * count + live[lba + count :]
        return lambda: self.disk.write_many(writes), (live, dict(self.snaps))

    def unmap(self) -> Step:
        lba, count = self.range()
        after = (self.live[:lba] + (0,) * count + self.live[lba + count :], dict(self.snaps))
        return lambda: self.disk.unmap(lba, count), after

    def snapshot(self) -> Step:
        name = f"s{self.random.randrange(6)}"
        if name in self.snaps:
            with pytest.raises(SnapshotExists):
                self.disk.snapshot(name)
            return None, None
        return lambda: self.disk.snapshot(name), (self.live, {**self.snaps, name: self.live})

    def delete(self) -> Step:
        if not self.snaps:
            return None, None
        name = self.random.choice(sorted(self.snaps))
        return lambda: self.disk.delete(name), (
            self.live,
            {n: c for n, c in self.snaps.items() if n != name},
        )

    def revert(self) -> Step:
        if not self.snaps:
            return None, None
        name = self.random.choice(sorted(self.snaps))
        return lambda: self.disk.revert(name), (self.snaps[name], dict(self.snaps))

    def fail_device(self) -> None:
        """Fail a device, unless as many as the layout tolerates are not active."""
        out = [member for member in self.disk.array.members if member.state != "active"]
        if len(out) < self.shape.m:
            device = self.random.choice(
                [member.index for member in self.disk.array.members if member.state == "active"]
            )
            self.disk.fail(device, self.random.choice(["absent", "degraded"]))

    def return_device(self) -> None:
        for member in self.disk.array.in_state(ComponentState.ABSENT):
            self.disk.return_(member.index)

    def replace_device(self) -> None:
        for member in self.disk.array.in_state(ComponentState.DEGRADED):
            self.disk.replace(member.index)

    def tick_device(self) -> None:
        self.seconds += 2000
        self.disk.tick()

    def tags(self, count: int) -> tuple[int, ...]:
        self.tag += count
        return tuple(range(self.tag - count + 1, self.tag + 1))

    def block(self, tag: int) -> bytes:
        return block(tag)

    def range(self) -> tuple[int, int]:
        lba = self.random.randrange(self.shape.blocks)
        count = self.random.randint(
            1, min(self.shape.blocks - lba, self.random.choice([1, 2, self.shape.blocks]))
        )
        return lba, count

    def recover(self, in_flight: Content | None) -> None:
        """Open the disk after a power cut, through further cuts. Its content must be allowed."""
        self.seen["cut"] += 1
        self.seen[f"cut in {self.phase}"] += 1
        self.disk.abandon()
        self.power.restore(self.random.randrange(1 << 30))
        if self.random.random() < 0.3 and self.redundant and self.disk.array.redundant:
            device = self.folder / f"device-{self.random.choice(self.disk.array.members).index}"
            device.rename(f"{device}.pulled")  # it goes at the same time
            self.seen["cut and a device gone"] += 1
        while True:
            if self.random.random() < 0.5:
                self.power.cut_at(self.random.randint(1, 3))
            try:
                self.disk = self.open()
                break
            except PowerCut:
                self.seen["cut in recovery"] += 1
                self.power.restore(self.random.randrange(1 << 30))
        allowed = self.since_flush if self.shape.write_back else self.since_flush[-1:]
        found = self.read_all()
        assert found in [*allowed, in_flight]
        self.live, self.snaps = found
        self.since_flush = [self.content()]

    def read_all(self) -> Content:
        def tags(view: str | None) -> tuple[int, ...]:
            data = self.disk.read(0, self.shape.blocks, view)
            return tuple(
                int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 512)
            )

        return tags(None), {name: tags(name) for name in self.disk.state.views.names}
