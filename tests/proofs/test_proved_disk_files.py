"""The files of a disk on several devices: exchanged, of another disk, too short, missing, or of an
older program. What is wrong is said in a line, and costs no data."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_server import Server

from support.proved_disk import call, told
from support.proved_server import asked

SUPERBLOCK = 9 * 512  # with its digests
LAYOUTS = ["--mirrors 2", "--raid5 4", "--raid6 5"]


def made(disk: Path, layout: str, text: str) -> Path:
    """Return a new disk whose block 3 has the text, and whose log is empty."""
    call("create", disk, "--blocks", 64, *layout.split())
    call("write", disk, 3, "--text", text)
    call("checkpoint", disk)
    return disk


@pytest.fixture(params=LAYOUTS)
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return made(tmp_path / "d", request.param, "hello")


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    return made(tmp_path / "d", "--mirrors 2", "hello")


def exchange(disk: Path) -> None:
    (disk / "device-0").rename(disk / "kept")
    (disk / "device-1").rename(disk / "device-0")
    (disk / "kept").rename(disk / "device-1")


def test_exchanged_devices_are_refused(disk: Path) -> None:
    exchange(disk)
    for command in (["read", disk, 3], ["status", disk], ["scrub", disk], ["settle", disk]):
        assert told(*command, status=5) == f"{disk}/device-0 is device 1 of this disk"
    exchange(disk)
    assert call("read", disk, 3)[:5] == b"hello"
    assert b" 0 unreadable blocks" in call("scrub", disk)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_device_of_another_disk_is_refused_and_not_changed(layout: str, tmp_path: Path) -> None:
    ours, other = made(tmp_path / "a", layout, "ours"), made(tmp_path / "b", layout, "other")
    (other / "device-0").replace(ours / "device-0")
    before = (ours / "device-0").read_bytes()
    for command in (["read", ours, 3], ["scrub", ours], ["replace", ours, 0]):
        assert told(*command, status=5) == f"{ours}/device-0 is a device of another disk"
    assert (ours / "device-0").read_bytes() == before
    (ours / "device-0").rename(other / "device-0")
    for found, text in ((ours, b"ours"), (other, b"other")):
        assert call("read", found, 3).rstrip(b"\0") == text


def test_blocks_of_another_device_are_not_read(mirrors: Path, tmp_path: Path) -> None:
    """Only its superblock is the right one: the others have what is read, and it is repaired."""
    other = made(tmp_path / "other", "--mirrors 2", "wrong")
    right = (mirrors / "device-0").read_bytes()
    for wrong in (other / "device-0", mirrors / "device-1"):
        (mirrors / "device-0").write_bytes(right[:SUPERBLOCK] + wrong.read_bytes()[SUPERBLOCK:])
        assert call("read", mirrors, 3)[:5] == b"hello"
        assert b"device 0: 0 " not in call("scrub", mirrors)
        assert (mirrors / "device-0").read_bytes() == right


def test_a_device_that_returns_is_the_right_one(mirrors: Path) -> None:
    call("fail", mirrors, 0)
    away = mirrors / "device-0.failed"
    right = away.read_bytes()
    away.write_bytes((mirrors / "device-1").read_bytes())
    assert told("return", mirrors, 0, status=5) == f"{away} is device 1 of this disk"
    assert away.exists() and not (mirrors / "device-0").exists()
    away.write_bytes(right)
    call("return", mirrors, 0)
    assert call("status", mirrors).count(b": member") == 2


def test_a_device_that_is_not_there_does_not_return(mirrors: Path) -> None:
    call("fail", mirrors, 0)
    (mirrors / "device-0.failed").unlink()
    assert told("return", mirrors, 0, status=1) == "bad-request: device 0 does not answer"


def test_a_disk_without_a_superblock_says_so(disk: Path) -> None:
    for device in disk.glob("device-*"):
        device.write_bytes(bytes(SUPERBLOCK) + device.read_bytes()[SUPERBLOCK:])
    for command in (["read", disk, 3], ["scrub", disk], ["settle", disk], ["status", disk]):
        line = told(*command, status=5)
        assert line == f"data-lost: no device of {disk} has a superblock that can be read"


def test_a_member_is_not_replaced(disk: Path) -> None:
    files = {path: path.read_bytes() for path in disk.iterdir()}
    line = "bad-request: device 1 is a member: fail it first"
    assert told("replace", disk, 1, status=1) == line
    assert {path: path.read_bytes() for path in disk.iterdir()} == files
    call("fail", disk, 1)
    call("replace", disk, 1)
    call("settle", disk)
    assert call("read", disk, 3)[:5] == b"hello"


def test_the_last_device_with_all_data_is_not_replaced(mirrors: Path) -> None:
    call("fail", mirrors, 0)
    call("replace", mirrors, 0)
    call("fail", mirrors, 1)
    line = "bad-request: device 1 is needed: too few others have all data"
    assert told("replace", mirrors, 1, status=1) == line
    call("return", mirrors, 1)
    call("settle", mirrors)
    call("fail", mirrors, 1)
    assert call("read", mirrors, 3)[:5] == b"hello"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    made(tmp_path / "disk", "--mirrors 2", "hello")
    server = Server(tmp_path)
    yield tmp_path / "disk"
    server.process.terminate()
    assert server.process.wait() == 0


def test_a_server_does_not_replace_a_member(served: Path) -> None:
    assert asked(served, {"op": "replace", "device": 0})["error"] == "bad-request"
    assert asked(served, {"op": "fail", "device": 0})["ok"]
    assert asked(served, {"op": "replace", "device": 0})["ok"]
    assert asked(served, {"op": "fail", "device": 1})["ok"]
    refused = asked(served, {"op": "replace", "device": 1})
    assert refused["message"] == "device 1 is needed: too few others have all data"
    assert asked(served, {"op": "return", "device": 1})["ok"]
    assert asked(served, {"op": "settle"})["ok"]
    assert call("read", served, 3)[:5] == b"hello"


def test_a_server_does_not_take_the_wrong_device_back(served: Path) -> None:
    assert asked(served, {"op": "fail", "device": 0})["ok"]
    (served / "device-0.failed").write_bytes((served / "device-1").read_bytes())
    refused = asked(served, {"op": "return", "device": 0})
    assert refused["error"] == "bad-request"
    assert str(refused["message"]).endswith("device-0.failed is device 1 of this disk")
    assert call("read", served, 3)[:5] == b"hello"


@pytest.mark.parametrize("length", [0, -1])
def test_a_file_that_is_too_short_does_not_answer(length: int, disk: Path) -> None:
    device = disk / "device-1"
    device.write_bytes(device.read_bytes()[:length])
    assert b"device 1: does not answer" in call("status", disk, status=1)
    assert b"device 1: does not answer" in call("settle", disk, status=1)
    assert b"device 1: does not answer: not scrubbed\n" in call("scrub", disk, status=1)
    assert call("read", disk, 3)[:5] == b"hello"
    call("replace", disk, 1)
    assert b"device 1: stale" in call("status", disk, status=1)
    call("settle", disk)
    call("status", disk)
    assert b"device 1: 0 unreadable blocks\n" in call("scrub", disk)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("blocks", "block"),
        ("members 0 1", "members 0 9"),
        ("clean true\n", "cle"),
        ("disk ", "id "),
    ],
)
def test_a_damaged_record_is_named(old: str, new: str, mirrors: Path) -> None:
    record = mirrors / "members"
    text = record.read_text()
    assert text.count(old) == 1
    for damaged in (text.replace(old, new), ""):
        record.write_text(damaged)
        for command in (["read", mirrors, 3], ["status", mirrors]):
            assert told(*command, status=5) == f"{record} is damaged"
    record.unlink()
    assert told("read", mirrors, 3, status=5) == f"{record} is missing"
    record.write_text(text)
    assert call("read", mirrors, 3)[:5] == b"hello"


@pytest.mark.parametrize("sealed", ["", "sealed\n"])
def test_a_disk_of_an_older_program_is_not_opened(sealed: str, mirrors: Path) -> None:
    """Its devices had digests that named no device, or none at all."""
    (mirrors / "members").write_text(f"blocks 9\ndevices 2\n{sealed}clean true\nmembers 0 1\n")
    assert told("read", mirrors, 3, status=2) == f"{mirrors} is a disk of an older program"


@pytest.mark.parametrize("command", ["fail", "return", "replace"])
def test_a_command_for_one_device_names_it(command: str, mirrors: Path) -> None:
    assert told(command, mirrors, 2, status=1) == "bad-request: there are devices 0 to 1"
    call(command, mirrors, status=2)


@pytest.mark.parametrize("command", ["settle", "scrub", "status"])
def test_a_command_for_all_devices_names_none(command: str, mirrors: Path) -> None:
    call(command, mirrors, 1, status=2)
