"""A power supply: what it loses, what a cut that is to come does, and which files it holds open."""

import gc
from contextlib import suppress
from pathlib import Path

import pytest

from refmodel.core.errors import PowerCut
from refmodel.media.device import FileDevice
from refmodel.media.faults import FaultySupply
from refmodel.media.power_supply import PowerSupply


def opened(path: Path) -> int:
    """Return how many open files of this process are the file at `path`."""
    files = [Path("/proc/self/fd") / name for name in Path("/proc/self/fd").iterdir()]
    return sum(file.exists() and file.samefile(path) for file in files)


def test_what_a_power_cut_never_decided_is_closed_with_its_supply(tmp_path: Path) -> None:
    path = tmp_path / "device-0"
    FileDevice.create(path, 4096)
    supply = PowerSupply()
    device = supply.feed(FileDevice(path, sync=False))
    device.write(0, b"x")
    device.close()
    assert opened(path) == 1, "a power cut may come, and has to decide about the write"
    del device, supply
    gc.collect()
    assert opened(path) == 0


def test_what_was_not_flushed_may_be_lost_while_the_disk_is_closed(tmp_path: Path) -> None:
    kept = []
    for number in range(20):
        path = tmp_path / f"device-{number}"
        FileDevice.create(path, 8192)
        supply = PowerSupply()
        device = supply.feed(FileDevice(path, sync=False))
        device.write(0, b"flushed")
        device.flush()
        for _ in range(number):
            device.write(4096, b"written")
        device.close()
        supply.cut_at(2)
        supply.off_and_on()
        again = supply.feed(FileDevice(path, sync=False))
        assert again.read(0, 7) == b"flushed"
        kept.append(again.read(4096, 7) == b"written")
        again.write(0, b"x")
        with pytest.raises(PowerCut):  # the cut that was to come still comes
            again.write(0, b"y")
    assert not all(kept[1:]) and any(kept), kept


def test_a_device_that_is_to_vanish_often_does_so_while_the_power_comes_back(
    tmp_path: Path,
) -> None:
    there = vanished = 0
    for seed in range(300):
        path = tmp_path / f"{seed}" / "device-0"
        path.parent.mkdir()
        FileDevice.create(path, 512)
        supply = FaultySupply(512, [], 1, seed)
        device = supply.feed(FileDevice(path, sync=False))
        supply.begin(0, "vanishing-device")
        with suppress(OSError):
            for _ in range(20):
                device.read(0, 512)
            there += 1
            supply.cut()
            supply.restore(seed)
            device = supply.feed(FileDevice(path, sync=False))
            try:
                for _ in range(6):
                    device.read(0, 512)
            except OSError:
                vanished += 1
    assert there > 20 and vanished > there / 2, (there, vanished)
