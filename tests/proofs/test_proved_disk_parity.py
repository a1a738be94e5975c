"""The proved disk on devices with parity: one device may fail, or two, and what they had is
computed from the others."""

from itertools import combinations
from pathlib import Path

import pytest

from support.proved_disk import call

ROOT = Path(__file__).parents[2]
BLOCK = 4096


def sealed(length: int) -> int:
    """Return how many bytes so many take on a device, with their digests."""
    return -(-length // 504) * 512


def pattern(seed: int) -> bytes:
    return bytes((seed + i * i) % 251 for i in range(BLOCK))


@pytest.mark.parametrize("devices", [3, 4, 8])
def test_any_device_may_be_absent_and_replaced(devices: int, tmp_path: Path) -> None:
    """Blocks are the same without each device in turn, and another one takes its place."""
    disk = tmp_path / "d"
    call("create", disk, "--blocks", 64, "--raid5", devices)
    call("write", disk, 0, text=b"".join(pattern(n) for n in range(8)))
    for gone in range(devices):
        call("fail", disk, gone)
        assert call("read", disk, 0, 8) == b"".join(pattern(n + gone) for n in range(8))
        call("write", disk, 0, text=b"".join(pattern(n + gone + 1) for n in range(8)))
        call("replace", disk, gone)
        call("settle", disk)
    assert call("read", disk, 0, 8) == b"".join(pattern(n + devices) for n in range(8))


@pytest.mark.parametrize("devices", [4, 5, 8])
def test_any_two_devices_may_be_absent_and_replaced(devices: int, tmp_path: Path) -> None:
    """On RAID-6 blocks are the same without each pair of devices, data and parity alike."""
    disk = tmp_path / "d"
    call("create", disk, "--blocks", 64, "--raid6", devices)
    call("write", disk, 0, text=b"".join(pattern(n) for n in range(8)))
    for turn, (first, second) in enumerate(combinations(range(devices), 2), 1):
        call("fail", disk, first)
        call("fail", disk, second)
        call("write", disk, 0, text=b"".join(pattern(n + turn) for n in range(8)))
        assert call("read", disk, 0, 8) == b"".join(pattern(n + turn) for n in range(8))
        call("replace", disk, first)
        call("return", disk, second)
        call("settle", disk)
    assert call("read", disk, 0, 8) == b"".join(pattern(n + turn) for n in range(8))


def test_two_devices_are_too_many_until_one_comes_back(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    call("create", disk, "--blocks", 64, "--raid5", 4)
    call("write", disk, 3, "--text", "hello")
    call("fail", disk, 0)
    call("fail", disk, 2)
    call("read", disk, 3, status=5)
    call("return", disk, 2)
    assert call("read", disk, 3)[:5] == b"hello"


def test_a_device_has_a_part_of_the_data(tmp_path: Path) -> None:
    """On five devices each file is a fourth of the data, and superblock, headers and log.

    A sector of 512 bytes has 504 bytes of them, and a digest."""
    disk = tmp_path / "d"
    call("create", disk, "--blocks", 64, "--raid5", 5, "--snapshots", 2)
    call("write", disk, 0, text=b"".join(pattern(n) for n in range(64)))
    record = (disk / "members").read_text().split()
    whole, blocks = int(record[record.index("block") + 1]), int(record[record.index("blocks") + 1])
    most = whole * sealed(BLOCK) + (blocks - whole) * sealed(BLOCK // 4)
    assert max((disk / f"device-{i}").stat().st_size for i in range(5)) <= most
