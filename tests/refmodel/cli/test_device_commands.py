"""Commands on devices, and what `scrub` prints: they say what took effect."""

from pathlib import Path

import pytest

from support.command_line import run


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
    run("create", tmp_path / "six", "--blocks", 64, "--layout", "raid6-4+2")
    assert b"tolerates 2 failed devices;" in run("status", tmp_path / "six").stdout


def test_scrub_tells_what_the_opening_repaired(disk: Path) -> None:
    with (disk / "device-0").open("r+b") as device:
        device.write(bytes(4096))  # one copy of the label
    lines = run("scrub", disk).stdout.splitlines()
    assert lines[0] == b"2 labels verified, 0 copies repaired"
    assert lines[-1] == b"1 label repaired when the disk was opened"
    assert b"opened" not in run("scrub", disk).stdout


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
