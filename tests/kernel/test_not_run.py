"""Where a guest cannot be had, a target says what is missing, and nothing counts as run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.targets.base import Unusable
from conformance.targets.engines.kernel.machine import qemu_guest


@pytest.mark.parametrize(
    "words, said",
    [
        (["conformance", "doctor", "--target", "kernel:dm-thin"], "unusable: "),
        (["conformance", "run", "--target", "kernel:dm-thin"], "the target is unusable: "),
        (["conformance.selftest.kernel", "--fault", "none"], "NOT RUN: "),
    ],
)
def test_without_user_mode_linux_the_exit_status_is_3(words: list[str], said: str) -> None:
    """In a process of its own: this one may have guests that wait."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        env={**os.environ, "PATH": "/nonexistent"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3, done.stderr
    assert f"{said}linux.uml not found: run make kernel" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_kernel_for_qemu_is_where_its_package_puts_it(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="dpkg-deb -x"):
        qemu_guest.found(tmp_path)
    modules = tmp_path / "usr/lib/modules/6.12"
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-6.12").touch()
    modules.mkdir(parents=True)
    (modules / "modules.dep").touch()
    assert qemu_guest.found(tmp_path) == (tmp_path / "boot/vmlinuz-6.12", modules)
