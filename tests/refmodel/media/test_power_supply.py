"""A power supply that is given up holds no files open."""

import gc
from pathlib import Path

from refmodel.media.device import FileDevice
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
