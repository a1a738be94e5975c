"""Where a guest cannot be had, a target says what is missing, and nothing counts as run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli import main
from conformance.selftest import kernel
from conformance.targets.base import Unusable
from conformance.targets.engines.kernel.machine import guest, qemu_guest


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    guest.version.cache_clear()
    monkeypatch.setenv("PATH", "/nonexistent")
    yield
    guest.version.cache_clear()


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("command", ["doctor", "run"])
def test_without_user_mode_linux_the_exit_status_is_that_of_inconclusive(command: str) -> None:
    done = CliRunner().invoke(main, [command, "--target", "kernel:dm-thin"])
    assert done.exit_code == 3
    assert "linux.uml not found: run make kernel" in done.output


@pytest.mark.usefixtures("nothing_installed")
def test_without_user_mode_linux_make_kernel_says_not_run() -> None:
    done = CliRunner().invoke(kernel.main, ["--fault", "none"])
    assert done.exit_code == 3
    assert "NOT RUN: linux.uml not found" in done.output


def test_a_kernel_for_qemu_is_where_its_package_puts_it(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="dpkg-deb -x"):
        qemu_guest.found(tmp_path)
    modules = tmp_path / "usr/lib/modules/6.12"
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-6.12").touch()
    modules.mkdir(parents=True)
    (modules / "modules.dep").touch()
    assert qemu_guest.found(tmp_path) == (tmp_path / "boot/vmlinuz-6.12", modules)
