"""The command line of the proved disk: a mistake is one line and a status, and costs nothing."""

import resource
import signal
import subprocess
from pathlib import Path

import pytest
from kill_server import Server

from refmodel import __version__
from support.proved_disk import PROGRAM, call, told


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    call("create", tmp_path / "d", "--blocks", 64)
    return tmp_path / "d"


def test_mistakes_are_one_line_and_a_status(disk: Path, tmp_path: Path) -> None:
    call("write", disk, 64, "--text", "x", status=1)
    call("snapshot", disk, "no name", status=1)
    call("revert", disk, "absent", status=1)
    call("create", disk, "--blocks", 8, status=1)
    call("read", disk, "three", status=2)
    call("write", disk, 0, "--text", "x", "--fill", 3, status=2)
    call("write", disk, 0, "--fill", 256, status=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "blocks").write_bytes(b"x" * 9000)
    call("ls", tmp_path / "other", status=5)


@pytest.mark.parametrize("words", ["inspect d", "read d 0 50", "--version", "--help=plain"])
def test_output_that_cannot_be_written_is_one_line(words: str, disk: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PROGRAM, *words.split()], cwd=disk.parent, stdout=full, stderr=subprocess.PIPE
        )
    line = b"proved-disk: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, line)


def test_a_number_that_is_too_large_is_refused_with_the_limit(tmp_path: Path) -> None:
    words = ("create", tmp_path / "d", "--blocks", 9_999_999_999_999)
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "is not an integer from 1 to 1099511627775" in " ".join(done.stderr.split())


def test_nothing_is_written_where_there_is_nothing_to_write(disk: Path) -> None:
    call("write", disk, 3, "--text", "kept")
    call("write", disk, 3, text=b"", status=1)
    call("write", disk, 3, "--text", "", status=1)
    assert call("read", disk, 3).startswith(b"kept")


def test_a_disk_that_the_host_refuses_leaves_no_file(tmp_path: Path) -> None:
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for layout in ([], ["--mirrors", "2"]):
        done = subprocess.run(
            [PROGRAM, "create", tmp_path / "d", "--blocks", "4096", *layout],
            capture_output=True,
            preexec_fn=small_files,
        )
        assert (done.returncode, b"File too large" in done.stderr) == (1, True)
        assert not (tmp_path / "d").exists()


def test_devices_that_were_made_are_removed_if_another_one_fails(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "create", tmp_path, "--blocks", "8", "--mirrors", "16"],
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)),
    )
    assert (done.returncode, b"Too many open files" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["read {} 0", "ls {}", "status {}", "serve {} --socket s"])
def test_where_there_is_no_disk_it_is_said(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name in ("absent", "empty", "file"):
        path = tmp_path / name
        assert told(*command.format(path).split(), status=2) == f"there is no disk in {path}"


@pytest.mark.parametrize("count", [64, 3_000_000, (1 << 40) - 1])
def test_more_blocks_than_the_disk_has_are_out_of_range(count: int, disk: Path) -> None:
    """Also where they would not go into memory."""
    write = ["write", disk, 1, "--fill", 1, "--count", count]
    for command in (["read", disk, 1, count], ["unmap", disk, 1, count], write):
        assert told(*command, status=1).startswith("out-of-range: ")


@pytest.mark.parametrize("words", [[], ["create"]])
def test_the_help_has_the_exit_statuses(words: list[str]) -> None:
    text = call(*words, "--help=plain").decode()
    found = text.partition("EXIT STATUS")[2].partition("SEE ALSO")[0]
    assert [line.split()[0] for line in found.splitlines() if line[7:8].isdigit()] == list("01245")


def test_the_version_names_the_program() -> None:
    assert call("--version").decode() == f"proved-disk {__version__}\n"


def test_a_write_that_is_too_long_for_a_server_is_not_sent(tmp_path: Path) -> None:
    call("create", tmp_path / "disk", "--blocks", 20_000)
    server = Server(tmp_path)
    words = ("write", tmp_path / "disk", 0, "--fill", 1, "--count", 20_000)
    line = "bad-request: the disk is served, and takes at most 16384 blocks in a write"
    try:
        assert told(*words, status=1) == line
    finally:
        server.process.terminate()
        assert server.process.wait() == 0
    call(*words)
