"""What `make` says where it cannot write: tools/setup, which it runs first."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A copy of what the setup reads, on a tmpfs of 64 KiB."""
    where = tmp_path / "project"
    where.mkdir()
    if os.geteuid() or os.system(f"mount -t tmpfs -o size=64k none {where} 2>/dev/null"):
        pytest.skip("NOT RUN: only root may mount a file system")
    (where / "tools").mkdir()
    for name in ("tools/setup", "requirements.txt"):
        shutil.copy(PROJECT / name, where / name)
    yield where
    os.system(f"umount {where}")


def setup(project: Path) -> tuple[int, str]:
    """Run the setup, which may install nothing. Return its status and what it said."""
    done = subprocess.run([project / "tools" / "setup"], capture_output=True, text=True, timeout=60)
    assert not done.stdout
    return done.returncode, done.stderr


def test_a_full_file_system_is_one_line(project: Path) -> None:
    with (project / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(4096))
    expected = f"setup: nothing can be written to {project}/.venv: No space left on device\n"
    assert setup(project) == (1, expected)


def test_a_folder_that_cannot_be_written_to_is_one_line(project: Path) -> None:
    assert not os.system(f"mount -o remount,ro {project}")
    expected = f"setup: nothing can be written to {project}/.venv: Read-only file system\n"
    assert setup(project) == (1, expected)
