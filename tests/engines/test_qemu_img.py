"""qemu-img that waits for commands: its output, its failures, and that the next command runs."""

import os
import signal
from pathlib import Path

import pytest

from conformance.targets.base import TargetFailure, Unusable
from conformance.targets.engines.qemu import qemu_img, storage_daemon

try:
    storage_daemon.version()
except Unusable as missing:
    pytest.skip(f"NOT RUN: {missing.message}", allow_module_level=True)

FOR_EVER = (
    "bench",
    "-c",
    "2000000000",
    "null-co://",
)  # reads of a device of a gigabyte, from its start again


@pytest.fixture(params=["waiting", "alone"])
def image(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "alone":
        monkeypatch.setattr(qemu_img, "_waiting", lambda: None)
    qemu_img.run("create", "-q", "-f", "qcow2", "image", "16k", folder=tmp_path)
    return tmp_path


def test_runs_where_it_is_told_and_says_what_was_printed(image: Path) -> None:
    assert qemu_img.run("snapshot", "-c", "one", "image", folder=image) == ""
    listed = qemu_img.run("snapshot", "-l", "image", folder=image)
    assert listed.startswith("Snapshot list:") and "one" in listed
    assert qemu_img.run("snapshot", "-a", "one", "image", folder=image) == ""


def test_a_complaint_is_of_its_own_command(image: Path) -> None:
    for name in ("a", "b"):
        with pytest.raises(
            qemu_img.ToolError, match=rf"^Could not apply snapshot '{name}': [^\n]*$"
        ):
            qemu_img.run("snapshot", "-a", name, "image", folder=image)


def test_hangs_are_ended(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu_img, "PATIENCE", 0.5)
    if (waiting := qemu_img._waiting()) is not None:
        waiting.close()
    with pytest.raises(TargetFailure, match="bench did not end within 0.5 seconds"):
        qemu_img.run(*FOR_EVER, folder=image)
    monkeypatch.undo()
    assert qemu_img.run("snapshot", "-l", "image", folder=image) == ""


def test_it_may_die(image: Path) -> None:
    if (waiting := qemu_img._waiting()) is not None:
        os.kill(waiting._process.pid, signal.SIGKILL)
        waiting._process.wait()
        with pytest.raises(TargetFailure, match="ended before it had done snapshot"):
            qemu_img.run("snapshot", "-l", "image", folder=image)
    assert qemu_img.run("snapshot", "-l", "image", folder=image) == ""


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    qemu_img._waiting.cache_clear()
    monkeypatch.setattr(qemu_img, "SOURCE", "no-such.c")
    assert qemu_img._waiting() is None and qemu_img.run("--version").startswith("qemu-img version")
    qemu_img._waiting.cache_clear()
