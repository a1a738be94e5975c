"""Devices that fail, return and are replaced: nothing stale is believed, no more is copied than was missed, nothing is made up."""

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from refmodel import create, open_disk, plan, registry
from refmodel.array.member import ComponentState
from refmodel.array.layout import LAYOUTS
from refmodel.core.errors import BadRequest, DataLost, NotADisk
from refmodel.log_structured.scrub import scrub
from refmodel.observe.counters import counters
from support.disks import block

BLOCKS = 64


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Disk:
    """A disk and what it has to read as."""

    def __init__(
        self, folder: Path, layout: str, *, spares: int = 0, segment_blocks: int = 8, **shape
    ) -> None:
        self.folder, self.clock, self.random = folder, Clock(), random.Random(1)
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
        self.disk = open_disk(self.folder, sync=False, now=self.clock)

    def reopen(self) -> None:
        self.disk.abandon()
        self.open()

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            lba = self.random.randrange(BLOCKS)
            self.tag += 1
            self.disk.write(lba, block(self.tag))
            self.content[lba] = self.tag

    def fill(self) -> None:
        for lba in range(BLOCKS):
            self.tag += 1
            self.disk.write(lba, block(self.tag))
            self.content[lba] = self.tag

    def is_right(self) -> bool:
        return self.disk.read(0, BLOCKS) == b"".join(
            block(tag) if tag else bytes(512) for tag in self.content
        )

    def states(self) -> list[str]:
        return [str(member.state) for member in self.disk.array.members]

    def bytes(self, cause: str, leg: str = "capacity") -> int:
        return counters(self.disk).get(f"device.{leg}.bytes_written.{cause}", 0)


@pytest.fixture
def disk(folder: Path):
    made: list[Disk] = []

    def make(layout: str, **shape) -> Disk:
        made.append(Disk(folder, layout, **shape))
        return made[-1]

    yield make
    for one in made:
        one.disk.abandon()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reads_are_right_with_any_devices_gone_that_the_layout_tolerates(
    disk: Callable[..., Disk], layout: str
) -> None:
    one = disk(layout)
    one.fill()
    one.disk.checkpoint()
    one.write(20)
    k, m = LAYOUTS[layout]
    for gone in combinations(range(k + m), m):
        for device in gone:
            one.disk.fail(device)
        assert one.is_right(), gone
        one.write(3)
        assert one.is_right(), gone
        for device in gone:
            one.disk.return_(device)
        one.disk.settle()
        assert one.states() == ["active"] * (k + m) and one.is_right()
    assert scrub(one.disk).clean and scrub(one.disk).repaired.total() == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_return_copies_what_was_missed_and_lives(disk: Callable[..., Disk], layout: str) -> None:
    one = disk(layout)
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(1)
    one.fill()  # the first half of this is dead by the time that the device is back
    one.disk.unmap(0, 32)
    one.content[:32] = [0] * 32
    one.disk.checkpoint()
    missed = [
        s
        for s, usage in one.disk.state.segments.sealed.items()
        if usage.filled > one.disk.array.members[1].since
    ]
    one.disk.return_(1)
    assert one.states()[1] == "stale"
    one.disk.settle()
    assert one.states()[1] == "active" and one.is_right()
    piece = one.disk.geometry.segment_bytes // one.disk.geometry.k
    assert len(missed) == 4 and one.bytes("resync") == 4 * piece
    one.disk.fail(0)
    assert one.is_right()


def test_a_device_that_missed_nothing_is_soon_active(disk: Callable[..., Disk]) -> None:
    one = disk("raid5-2+1")
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(2)
    one.disk.return_(2)
    one.disk.settle()
    assert one.states() == ["active"] * 3 and one.bytes("resync") == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_absent_is_rebuilt_when_the_timer_says_and_degraded_at_once(
    disk: Callable[..., Disk], layout: str
) -> None:
    one = disk(layout, spares=2)
    one.fill()
    spare = one.disk.geometry.members
    one.disk.fail(1)
    one.clock.seconds = 3599
    one.disk.tick()
    one.disk.settle()
    assert one.states()[1] == "absent"
    one.clock.seconds = 3600
    one.disk.tick()
    assert one.states()[1] == "resyncing" and one.disk.array.members[1].index == spare
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right()
    one.disk.fail(0, "degraded")
    assert one.disk.array.members[0].index == spare + 1
    one.write(10)
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right() and scrub(one.disk).clean
    one.disk.return_(1)  # late: it is a spare now
    assert [device for device, _ in one.disk.array.spares] == [1]


def test_a_spare_that_is_gone_is_not_used_and_nothing_stops(disk: Callable[..., Disk]) -> None:
    one = disk("raid5-2+1", spares=2)
    one.fill()
    (one.folder / "device-3").unlink()
    one.disk.fail(1, "degraded")
    one.write(5)
    one.disk.settle()
    assert one.disk.array.redundant and one.disk.array.members[1].index == 4 and one.is_right()
    one.disk.fail(0, "degraded")
    one.write(5)
    one.disk.settle()
    assert one.states()[0] == "degraded" and one.is_right()


def test_a_rebuild_takes_its_share_and_no_more(disk: Callable[..., Disk]) -> None:
    one = disk("raid6-4+2", segment_blocks=4, repair_share=20)
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(5, "degraded")
    one.disk.replace(5)
    before = one.disk.array.performance.ios + one.disk.array.capacity.ios
    steps = 0
    while not one.disk.array.redundant:
        one.write()
        steps += 1
    assert steps > 10 and one.is_right()
    all_ios = one.disk.array.performance.ios + one.disk.array.capacity.ios - before
    found = counters(one.disk)
    repair = sum(
        count
        for name, count in found.items()
        if name.endswith((".reads.rebuild", ".writes.rebuild"))
    )
    assert 0.1 * all_ios < repair <= 0.2 * all_ios + 64


def test_a_rebuild_goes_on_where_the_last_checkpoint_knew_it(disk: Callable[..., Disk]) -> None:
    one = disk("raid5-4+1", segment_blocks=4)
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(4, "degraded")
    one.disk.replace(4)
    for _ in range(8):
        assert one.disk.resync.step()
    one.disk.checkpoint()
    left = one.disk.resync.progress()[4]
    one.reopen()
    assert one.states()[4] == "stale" and one.disk.resync.progress()[4] <= left + 1
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right() and scrub(one.disk).repaired.total() == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(6))
def test_no_stale_device_is_believed_whatever_comes_and_goes_between_restarts(
    disk: Callable[..., Disk], layout: str, seed: int
) -> None:
    """Files are moved away and back behind the engine's back; it opens and reads right, or does not open."""
    one = disk(layout)
    one.fill()
    choose = random.Random(seed)
    refused = 0
    for _ in range(30):
        one.write(choose.randrange(6))
        if choose.random() < 0.3:
            one.disk.checkpoint()
        one.disk.abandon()
        for index in range(one.disk.geometry.members):
            here, aside = one.folder / f"device-{index}", one.folder / f"aside-{index}"
            if choose.random() < 0.35:
                source, target = (here, aside) if here.exists() else (aside, here)
                source.rename(target)
        while True:
            try:
                one.open()
                assert one.is_right()
                one.write()
                assert one.is_right()
                if choose.random() < 0.5:
                    one.disk.settle()
                break
            except (DataLost, NotADisk):
                one.disk.abandon()
                refused += 1
                aside = [
                    i
                    for i in range(one.disk.geometry.members)
                    if (one.folder / f"aside-{i}").exists()
                ]
                index = choose.choice(aside)
                (one.folder / f"aside-{index}").rename(one.folder / f"device-{index}")
    assert refused


def test_beyond_tolerance_what_is_whole_stays_readable_and_nothing_is_made_up(
    disk: Callable[..., Disk],
) -> None:
    one = disk("raid5-4+1")
    one.fill()
    one.disk.checkpoint()
    one.disk.fail(2)
    one.disk.fail(3)
    right = lost = 0
    for lba in range(BLOCKS):
        try:
            assert one.disk.read(lba) == block(one.content[lba])
            right += 1
        except DataLost:
            lost += 1
    assert right and lost
    with pytest.raises(DataLost, match="devices 2, 3 are gone; the layout raid5-4.1 tolerates 1"):
        one.write()
    with pytest.raises(DataLost):
        one.disk.replace(2)
    one.disk.return_(3)
    assert one.is_right()
    one.write(20)
    one.disk.return_(2)
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right()


def test_a_device_that_raises_errors_is_absent_and_the_disk_goes_on(
    disk: Callable[..., Disk],
) -> None:
    one = disk("raid6-4+2")
    one.fill()
    for index in (0, 4):
        device = one.disk.array.members[index].device

        def broken(*_: object) -> None:
            raise OSError("no such device")

        device.write = device.read = broken
        one.fill()
        assert one.states()[index] == "absent" and one.is_right()
    one.disk.return_(0)
    one.disk.return_(4)
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right() and scrub(one.disk).repaired.total() == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_flip_anywhere_on_any_device_is_repaired(disk: Callable[..., Disk], layout: str) -> None:
    one = disk(layout)
    one.fill()
    one.disk.snapshot("s")
    one.write(30)
    one.disk.checkpoint()
    one.write(5)
    one.disk.close()
    flips = 0
    for index in range(one.disk.geometry.members):
        path = one.folder / f"device-{index}"
        data = path.read_bytes()
        used = [at for at in range(len(data)) if data[at]]
        for at in used[:: len(used) // 40]:
            with path.open("r+b") as file:
                file.seek(at)
                file.write(bytes([data[at] ^ 0x40]))
            one.open()
            assert one.is_right(), (index, at)
            assert scrub(one.disk).clean, (index, at)
            one.disk.close()
            flips += 1
    one.open()
    assert flips > 80 and scrub(one.disk).repaired.total() == 0


def test_raid6_repairs_two_wrong_pieces_of_every_stripe(disk: Callable[..., Disk]) -> None:
    one = disk("raid6-4+2")
    one.fill()
    one.disk.checkpoint()
    for first, second in combinations(range(6), 2):
        one.disk.close()
        for index in (first, second):
            with (one.folder / f"device-{index}").open("r+b") as file:
                file.seek(one.disk.geometry.capacity_base)
                file.write(bytes(one.disk.geometry.device_bytes - one.disk.geometry.capacity_base))
        one.open()
        assert scrub(one.disk).clean and one.is_right(), (first, second)
        assert scrub(one.disk).repaired.total() == 0


def test_what_cannot_be_done_to_a_device_is_said(disk: Callable[..., Disk]) -> None:
    one = disk("raid5-2+1", spares=1)
    for call, reason in [
        (lambda: one.disk.fail(9), "there is no device 9"),
        (lambda: one.disk.fail(1, "broken"), "absent or degraded"),
        (lambda: one.disk.return_(1), "device 1 is active, not absent"),
        (lambda: one.disk.replace(1), "fail it first"),
        (lambda: one.disk.replace(3), "spare already"),
    ]:
        with pytest.raises(BadRequest, match=reason):
            call()
    one.disk.fail(3)
    one.disk.fail(1, "degraded")
    with pytest.raises(BadRequest, match="device 1 is degraded, not absent; replace it"):
        one.disk.return_(1)
    assert one.disk.array.in_state(ComponentState.DEGRADED)


@pytest.mark.parametrize(
    "engine, shape",
    [("log-structured", {"layout": "raid5-2+1", "write_back": True}), ("in-place-raid5", {})],
)
def test_what_a_crash_took_does_not_come_back_with_a_member(
    folder: Path, engine: str, shape: dict
) -> None:
    """In a crash a write in flight was left on a device alone that was no member yet. Nobody reads it there; nor once it is a member."""
    registry.create(
        folder, registry.plan(engine, BLOCKS, block_bytes=512, repair_share=1, **shape), sync=False
    )
    disk = registry.open_disk(folder, sync=False)
    for lba in range(0, BLOCKS, 4):
        disk.write(lba, block(1))
    disk.checkpoint()
    disk.fail(0)
    disk.replace(0)
    disk.write(0, block(2))
    disk.flush()
    others = {file: file.read_bytes() for file in folder.iterdir() if file.name != "device-0"}
    disk.write(1, block(3))
    assert str(disk.array.members[0].state) == "resyncing"
    disk.abandon()
    for file, content in others.items():
        file.write_bytes(content)
    for _ in range(2):
        disk = registry.open_disk(folder, sync=False)
        assert disk.read(0, 2) == block(2) + bytes(512)
        disk.settle()
        assert disk.array.redundant
        disk.abandon()
