"""Commands on devices, and what `scrub` prints: they say what took effect."""

from pathlib import Path

import pytest

from refmodel.engine.array_disk import ArrayDisk
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.registry import open_disk
from support.command_line import run


def damage(device: Path, at: int, pages: int = 1) -> None:
    """Overwrite pages of a device with zeroes."""
    with device.open("r+b") as file:
        file.seek(at)
        file.write(bytes(4096 * pages))


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    assert run("create", tmp_path / "d", "--blocks", 64).returncode == 0
    return tmp_path / "d"


def test_a_device_is_back_also_where_the_disk_needs_one_more(disk: Path) -> None:
    for device in (0, 1):
        assert run("fail", disk, device).returncode == 0
    done = run("return", disk, 0)  # what it missed is on device 1 only
    assert done.returncode == 0 and done.stderr.startswith(b"device 0 is back, but the disk")
    assert (disk / "device-0").exists()
    done = run("return", disk, 0)
    assert done.returncode == 1 and b"device 0 is there already" in done.stderr
    done = run("return", disk, 7)
    assert done.returncode == 1 and b"device 7 is not there to come back" in done.stderr
    assert run("return", disk, 1).returncode == 0
    assert run("settle", disk).returncode == run("status", disk).returncode == 0


def test_a_device_has_failed_also_where_that_cannot_be_recorded(disk: Path) -> None:
    (disk / "witness").unlink()
    done = run("fail", disk, 0)
    assert done.returncode == 0 and done.stderr.startswith(b"device 0 has failed; ")
    assert b"1 of 3 members could record the change" in done.stderr
    assert not (disk / "device-0").exists()
    assert run("fail", disk, 1).returncode == 5  # the disk cannot be opened
    assert (disk / "device-1").exists()
    assert run("return", disk, 0).returncode == 0


def test_status_counts_in_the_singular_and_the_plural(tmp_path: Path, disk: Path) -> None:
    assert b"tolerates 1 failed device;" in run("status", disk).stdout
    run("create", tmp_path / "six", "--blocks", 64, "--layout", "raid6-4+2", "--spares", 1)
    first = run("status", tmp_path / "six").stdout.splitlines()[0]
    assert first.endswith(b"tolerates 2 failed devices; spares: device 6")


def test_scrub_tells_what_the_opening_repaired(disk: Path) -> None:
    damage(disk / "device-0", 0)  # one copy of the label
    done = run("scrub", disk)
    assert done.stdout.splitlines()[0] == b"2 labels verified, 0 copies repaired"
    assert done.stderr == b"1 label repaired when the disk was opened\n"
    assert not run("scrub", disk).stderr


@pytest.mark.parametrize("options", [(), ("--engine", "in-place-raid5")])
def test_scrub_tells_that_the_opening_rewrote_a_slot(tmp_path: Path, options: list[str]) -> None:
    disk = tmp_path / "disk"
    run("create", disk, "--blocks", 64, *options)
    opened = open_disk(disk)
    assert isinstance(opened, ArrayDisk)
    slots = opened.array.performance.components[0].base
    opened.close()
    damage(disk / "device-0", slots, 2)  # one copy of the newest, and of the one before
    assert run("scrub", disk).stderr == b"1 checkpoint repaired when the disk was opened\n"
    assert not run("scrub", disk).stderr


def test_scrub_tells_that_the_opening_rewrote_a_page(disk: Path) -> None:
    run("write", disk, 0, stdin=b"x")
    run("checkpoint", disk)
    opened = open_disk(disk)
    assert isinstance(opened, LogStructuredDisk)
    pages = opened.state.pages
    at = opened.array.performance.components[0].base + pages.offset(opened.state.chunks.middle.root)
    opened.close()
    damage(disk / "device-0", at)
    assert run("read", disk, 0).stderr == b"1 page repaired when the disk was opened\n"
    assert not run("read", disk, 0).stderr


@pytest.mark.parametrize(
    "engine, line",
    [
        ("redo-se", b"1 grain table verified, 0 copies repaired\n"),
        ("in-place-raid5", b"1 parity stripe verified, 0 copies repaired\n"),
    ],
)
def test_scrub_tells_what_it_compared(tmp_path: Path, engine: str, line: bytes) -> None:
    disk = tmp_path / "d"
    run("create", disk, "--blocks", 64, "--engine", engine)
    if engine == "redo-se":
        run("snapshot", disk, "s1")
    run("write", disk, 0, "--fill", 7)
    assert run("scrub", disk).stdout == line
