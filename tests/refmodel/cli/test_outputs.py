"""Files that commands write: not over a device, and `-` is standard output."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from refmodel import __version__
from support.command_line import ENGINE, run


@pytest.mark.parametrize("name", ["device-0", "pictures.html", "link"])
def test_no_output_goes_into_the_folder_of_a_disk(tmp_path: Path, name: str) -> None:
    disk = tmp_path / "d"
    run("create", disk, "--blocks", 64)
    output = disk / name
    if name == "link":
        output = tmp_path / name
        output.symlink_to(disk / "device-0")
    before = (disk / "device-0").read_bytes()
    done = run("inspect", disk, "--html", output)
    assert done.returncode == 2 and b"is in the folder of the disk" in done.stderr
    assert (disk / "device-0").read_bytes() == before
    assert {file.name for file in disk.iterdir()} == {"device-0", "device-1", "witness"}


def test_no_results_go_into_the_folder_of_a_new_disk(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    words = ["--profile", "4k-random-read", "--operations", 10]
    done = run("bench", tmp_path / "d", *words, "--json", tmp_path / "d/results")
    assert done.returncode == 2 and b"is in the folder of the disk" in done.stderr


def test_a_page_in_a_folder_that_is_absent_is_wrong_usage(tmp_path: Path) -> None:
    run("create", tmp_path / "d", "--blocks", 64)
    done = run("inspect", tmp_path / "d", "--html", tmp_path / "nowhere/x.html")
    assert done.returncode == 2 and b"there is no folder" in done.stderr


def test_a_minus_is_standard_output(tmp_path: Path) -> None:
    run("create", tmp_path / "d", "--blocks", 64)
    assert run("inspect", tmp_path / "d", "--html", "-").stdout.startswith(b"<!doctype html>")
    words = ["--profile", "4k-random-read", "--operations", 100, "--blocks", 64]
    done = run("bench", *words, "--json", "-")
    assert done.returncode == 0
    assert json.loads(done.stdout)["operations"] == 100 and b"device I/Os" in done.stderr


def test_a_small_disk_takes_snapshots_before_a_bench() -> None:
    words = ["--profile", "4k-random-read", "--operations", 100, "--blocks", 64]
    assert run("bench", *words, "--snapshots", 1).returncode == 0


def test_versions_are_a_name_and_a_number() -> None:
    assert run("--version").stdout.decode() == f"refmodel {__version__}\n"
    python = ENGINE[0]
    done = subprocess.run(
        [python, "-m", "modelcheck", "--version"],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=60,
    )
    assert done.stdout == f"modelcheck {__version__}\n"
