"""Exit statuses: what was refused, what may have happened, and numbers that are too large."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from refmodel.array import label
from refmodel.core.errors import HostFull, HostRefused, NotADisk, UnknownOutcome, Unsupported
from refmodel.serving.exit_status import REFUSED, UNKNOWN, USAGE, explained
from support.command_line import ENGINE, run

HUGE = 10**29


@pytest.mark.parametrize("engine", ["redo-se", "in-place-raid5"])
def test_a_write_that_may_have_happened_has_a_status_of_its_own(
    tmp_path: Path, engine: str
) -> None:
    disk = tmp_path / "d"
    run("create", disk, "--blocks", 400, "--engine", engine)
    done = subprocess.run(
        [*ENGINE, "write", str(disk), "0", "--fill", "3", "--count", "300"],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, 100 << 10)),
        timeout=60,
    )
    assert done.returncode == UNKNOWN
    assert done.stderr.startswith(b"refmodel: unknown-outcome: write was cut short")
    assert b"Errno" not in done.stderr


def test_the_status_of_an_error_does_not_depend_on_the_command() -> None:
    assert explained(UnknownOutcome("cut"))[1] == explained(MemoryError())[1] == UNKNOWN
    assert explained(Unsupported("none"))[1] == explained(NotADisk("none"))[1] == USAGE


def test_what_the_host_refuses_is_told_in_its_words() -> None:
    message = "the host refuses device-1: Permission denied"
    assert explained(HostRefused(message, errno.EACCES)) == (message, REFUSED)
    full = "the host refuses device-1: No space left on device"
    assert explained(HostFull(full, errno.ENOSPC)) == (f"no-space: {full}", REFUSED)


@pytest.mark.parametrize(
    "words, status, message",
    [
        (["create", "{new}", "--blocks", "64", "--cache-bytes", 1 << 62], 2, "at most"),
        (["create", "{new}", "--blocks", "64", "--log-bytes", 512 * HUGE], 2, "it may have"),
        (["create", "{new}", "--blocks", "9999999999999"], 2, "a disk of 9999999999999 blocks and"),
        (["create", "{new}", "--blocks", 1 << 60, "--engine", "in-place-raid6"], 2, "it may have"),
        (
            ["create", "{new}", "--blocks", "64", "--segment-blocks", "0"],
            2,
            "65536 blocks (see ",
        ),
        (["bench", "--cache-bytes", 1 << 50], 2, "a cache has at most"),
        (["bench", "--operations", HUGE], 2, "not in the range"),
        (["top", "{disk}", "--count", HUGE], 2, "not in the range"),
        (["adapter", "--fanout", "1"], 2, "the fanout is 3 to 128"),
        (["resize-cache", "{disk}", 1 << 50], 1, "a cache has at most"),
        (["write", "{disk}", "3", "--fill", "7", "--count", HUGE], 2, "not in the range"),
        (["write", "{disk}", "3", "--fill", "7", "--count", 1 << 40], 1, "out-of-range"),
        (["status", "{chain}"], 2, "has no devices that may fail"),
        (["status", "{disk}/nowhere"], 2, "there is no disk"),
        (["ls", "{disk}/.."], 2, "there is no disk"),
    ],
)
def test_a_number_or_a_path_that_cannot_be_is_one_line(
    tmp_path: Path, words: list[object], status: int, message: str
) -> None:
    paths = {name: tmp_path / name for name in ("new", "disk", "chain")}
    run("create", paths["disk"], "--blocks", 64, "--cache-bytes", 65536)
    run("create", paths["chain"], "--blocks", 64, "--engine", "redo-se")
    done = run(*(str(word).format(**paths) for word in words))
    assert (done.returncode, message in done.stderr.decode()) == (status, True)
    assert b"Traceback" not in done.stderr and not paths["new"].exists()


def test_a_cache_that_the_host_refuses_is_refused_when_the_disk_is_made(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    most = 1 << 26
    done = subprocess.run(
        [*ENGINE, "create", str(disk), "--blocks", "64", "--cache-bytes", str(2 * most)],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        timeout=60,
    )
    assert done.returncode == 1 and b"no-space" in done.stderr
    assert run("create", disk, "--blocks", 64).returncode == 0  # nothing was left behind


def test_settings_of_a_cache_that_cannot_be_name_their_file(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    run("create", disk, "--blocks", 64, "--cache-bytes", 65536)
    settings = disk / "cache.json"
    settings.write_text(settings.read_text().replace("65536", str(HUGE)))
    done = run("ls", disk)
    assert done.returncode == 2 and b"without this file the disk has no cache" in done.stderr
    settings.unlink()
    assert run("ls", disk).returncode == 0


def test_a_disk_of_another_version_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be opened by the version that made it: neither data-lost nor its status is true."""
    run("create", tmp_path / "d", "--blocks", 64)
    version = label.VERSION
    for device in (tmp_path / "d" / "device-0", tmp_path / "d" / "device-1"):
        with device.open("r+b") as file:
            found = label.decode(file.read(4096))
            assert found is not None
            with monkeypatch.context() as older:
                older.setattr(label, "VERSION", version - 1)
                page = label.encode(found)
            file.seek(0)
            file.write(2 * page)
    done = run("ls", tmp_path / "d")
    assert (done.returncode, done.stdout) == (2, b"")
    said = f"refmodel: the disk has format version {version - 1}, and this program reads "
    assert done.stderr.decode().startswith(said)


def test_text_is_written_as_the_bytes_that_were_given(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    run("create", disk, "--blocks", 64)
    done = subprocess.run([*ENGINE, "write", str(disk), "0", "--text", b"\xff\xfe"], timeout=60)
    assert done.returncode == 0
    assert run("read", disk, 0).stdout.startswith(b"\xff\xfe\0")


def test_input_without_an_end_is_refused(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    run("create", disk, "--blocks", 64)
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [*ENGINE, "write", str(disk), "0"],
            stdin=endless,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
            timeout=60,
        )
    assert done.returncode == 1 and b"out-of-range" in done.stderr


@pytest.mark.parametrize("served", [False, True])
def test_memory_that_is_not_there_is_one_line(tmp_path: Path, served: bool) -> None:
    disk = tmp_path / "d"
    run("create", disk, "--blocks", 1 << 20)
    words = ["write", str(disk), "0", "--fill", "7", "--count", str(1 << 20)]
    server = None
    if served:
        server = _limited("serve", str(disk), "--socket", str(tmp_path / "s"))
        assert server.stderr and b"serving" in server.stderr.readline()
    try:
        with _limited(*words) as write:
            assert write.stderr
            errors = write.stderr.read()
        assert (write.returncode, errors.count(b"\n")) == (UNKNOWN, 1)
        assert b"there is not enough memory" in errors
        assert run("read", disk, 0).stdout == bytes(4096)
    finally:
        if server is not None:
            server.terminate()
            server.communicate(timeout=60)


def _limited(*words: str) -> "subprocess.Popen[bytes]":
    """Start a command that may have 2 GiB of memory."""
    return subprocess.Popen(
        [*ENGINE, *words],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
    )


@pytest.mark.parametrize("words", [["adapter"], ["bench", "--sync", "--operations", "500000"]])
def test_sigterm_leaves_no_folder_behind(tmp_path: Path, words: list[str]) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*ENGINE, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        while process.poll() is None and not any(tmp_path.iterdir()):
            time.sleep(0.01)
        time.sleep(0.2)
        assert any(tmp_path.iterdir())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"refmodel: interrupted\n")
    assert not any(tmp_path.iterdir())


def test_ctrl_c_while_the_engine_is_imported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [*ENGINE, "--version"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (130, "refmodel: interrupted\n")


def test_what_is_no_device_is_not_waited_for(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    run("create", disk, "--blocks", 64)
    (disk / "device-0").unlink()
    os.mkfifo(disk / "device-0")
    done = run("read", disk, 0)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1
    assert b"device-0" in done.stderr and b"no file and no block device" in done.stderr
