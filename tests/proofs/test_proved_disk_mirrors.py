"""The proved disk on mirrors: devices fail, come back and are replaced; nothing is lost within what
it tolerates, and nothing is wrong beyond it."""

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from support.proved_disk import PROGRAM, call

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=[[], ["--trees"]], ids=["whole maps", "trees"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    call("create", tmp_path / "d", "--blocks", 64, "--mirrors", 2, *request.param)
    return tmp_path / "d"


def test_a_stale_device_is_never_read(disk: Path) -> None:
    call("write", disk, 3, "--text", "old")
    call("fail", disk, 0)
    call("write", disk, 3, "--text", "new")
    call("fail", disk, 1)
    call("return", disk, 0)
    call("read", disk, 3, status=5)
    call("return", disk, 1)
    assert call("read", disk, 3)[:3] == b"new"
    assert b"device 0: stale" in call("status", disk, status=1)


def test_settle_makes_a_device_whole(disk: Path) -> None:
    call("fail", disk, 0)
    call("write", disk, 3, "--text", "new")
    call("replace", disk, 0)
    call("settle", disk)
    call("fail", disk, 1)
    assert call("read", disk, 3)[:3] == b"new"


def test_members_that_differ_after_a_crash_are_made_equal(disk: Path) -> None:
    """A process that was killed wrote to one device and not to the other."""
    call("write", disk, 3, "--text", "new")
    record = (disk / "members").read_text()
    assert "clean true" in record
    (disk / "members").write_text(record.replace("clean true", "clean false"))
    size = (disk / "device-1").stat().st_size
    (disk / "device-1").write_bytes(bytes(size))
    assert call("read", disk, 3)[:3] == b"new"
    call("fail", disk, 0)
    assert call("read", disk, 3)[:3] == b"new"


def test_mistakes_are_one_line_and_a_status(disk: Path, tmp_path: Path) -> None:
    call("fail", disk, 2, status=1)
    call("fail", disk, "x", status=2)
    call("create", tmp_path / "one", "--blocks", 8)
    call("status", tmp_path / "one", status=1)


@pytest.mark.skipif(not shutil.which("qemu-img"), reason="NOT RUN: no qemu-img: make engines")
@pytest.mark.skipif(not Path("/sbin/mkfs.ext4").exists(), reason="NOT RUN: no mkfs.ext4")
def test_an_ext4_image_survives_a_device_that_fails_while_it_is_served(tmp_path: Path) -> None:
    disk, image, back = tmp_path / "d", tmp_path / "a.img", tmp_path / "b.img"
    subprocess.run(["truncate", "-s", "4M", image], check=True)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-d", ROOT / "docs", image], check=True)
    call("create", disk, "--blocks", 1024, "--mirrors", 2)
    uri = f"nbd+unix:///?socket={tmp_path / 's'}"
    server = subprocess.Popen([PROGRAM, "serve", disk, "--socket", tmp_path / "s", "--no-sync"])
    try:
        while not (disk / "control").exists():
            assert server.poll() is None
            time.sleep(0.05)
        convert = ["qemu-img", "convert", "-f", "raw", "-O", "raw"]
        subprocess.run([*convert, "-n", image, uri], check=True)
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(disk / "control"))
            control.sendall(b'{"op":"fail","device":0}\n')
            assert json.loads(control.recv(4096))["ok"]
        call("snapshot", disk, "degraded")
        subprocess.run([*convert, uri, back], check=True)
    finally:
        server.terminate()
        assert server.wait() == 0
    assert back.read_bytes() == image.read_bytes()
    assert subprocess.run(["/sbin/e2fsck", "-fn", back], capture_output=True).returncode == 0
    assert b"device 1: member" in call("status", disk, status=1)
