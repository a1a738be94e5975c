"""Devices that fail or are damaged: reads stay right, and nothing stale is believed."""

import random
from collections.abc import Callable
from itertools import combinations

import pytest

from refmodel.array.layout import LAYOUTS
from refmodel.array.member import ComponentState
from refmodel.core.errors import BadRequest, DataLost, NotADisk
from refmodel.log_structured.scrub import scrub
from support.array_disks import BLOCKS, TrackedDisk
from support.disks import block


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reads_are_right_while_any_tolerated_devices_are_gone(
    tracked: Callable[..., TrackedDisk], layout: str
) -> None:
    one = tracked(layout)
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
@pytest.mark.parametrize("seed", range(6))
def test_stale_devices_are_never_believed_when_files_come_and_go_between_restarts(
    tracked: Callable[..., TrackedDisk], layout: str, seed: int
) -> None:
    """Files are moved away and back while the disk is closed. It reads right, or does not open."""
    one = tracked(layout)
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
                gone = [
                    i
                    for i in range(one.disk.geometry.members)
                    if (one.folder / f"aside-{i}").exists()
                ]
                index = choose.choice(gone)
                (one.folder / f"aside-{index}").rename(one.folder / f"device-{index}")
    assert refused


def test_beyond_the_tolerance_reads_are_right_or_refused_and_writes_are_refused(
    tracked: Callable[..., TrackedDisk],
) -> None:
    one = tracked("raid5-4+1")
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
    with pytest.raises(
        DataLost, match="devices 2, 3 are gone or not up to date; the layout raid5-4.1 tolerates 1"
    ):
        one.write()
    with pytest.raises(DataLost):
        one.disk.replace(2)
    one.disk.return_(3)
    assert one.is_right()
    one.write(20)
    one.disk.return_(2)
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right()


def test_a_device_that_raises_errors_becomes_absent(
    tracked: Callable[..., TrackedDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tracked("raid6-4+2")
    one.fill()
    for index in (0, 4):
        device = one.disk.array.members[index].device

        def broken(*_: object) -> None:
            raise OSError("no such device")

        monkeypatch.setattr(device, "write", broken)
        monkeypatch.setattr(device, "read", broken)
        one.fill()
        assert one.states()[index] == "absent" and one.is_right()
    one.disk.return_(0)
    one.disk.return_(4)
    one.disk.settle()
    assert one.disk.array.redundant and one.is_right() and scrub(one.disk).repaired.total() == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_flipped_bit_anywhere_on_any_device_is_repaired(
    tracked: Callable[..., TrackedDisk], layout: str
) -> None:
    one = tracked(layout)
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


def test_raid6_repairs_two_wrong_pieces_of_every_stripe(
    tracked: Callable[..., TrackedDisk],
) -> None:
    one = tracked("raid6-4+2")
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


def test_impossible_device_changes_are_refused_with_the_reason(
    tracked: Callable[..., TrackedDisk],
) -> None:
    one = tracked("raid5-2+1", spares=1)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: one.disk.fail(9), "there is no device 9"),
        (lambda: one.disk.fail(1, "broken"), "absent or degraded"),
        (lambda: one.disk.return_(1), "device 1 is active, not absent"),
        (lambda: one.disk.replace(1), "fail it first"),
        (lambda: one.disk.replace(3), "spare already"),
    ]
    for call, reason in calls:
        with pytest.raises(BadRequest, match=reason):
            call()
    one.disk.fail(3)
    one.disk.fail(1, "degraded")
    with pytest.raises(BadRequest, match="device 1 is degraded, not absent; replace it"):
        one.disk.return_(1)
    assert one.disk.array.in_state(ComponentState.DEGRADED)
