"""The guest's first file system: the format of the archive, and the order of modules."""

import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.targets.base import Unusable
from conformance.targets.engines.kernel.machine import image


def test_modules_come_after_what_they_need_and_once(tmp_path: Path) -> None:
    (tmp_path / "modules.dep").write_text(
        "md/thin.ko: md/data.ko md/bufio.ko md/mod.ko\nmd/snap.ko: md/bufio.ko md/mod.ko\n"
        "md/mod.ko:\n"
    )
    found = image.modules(tmp_path, ("thin", "snap", "built-in"))
    assert [path.name for path in found] == ["mod.ko", "bufio.ko", "data.ko", "thin.ko", "snap.ko"]


@pytest.mark.skipif(shutil.which("cpio") is None, reason="NOT RUN: cpio is not installed")
def test_cpio_reads_the_archive(tmp_path: Path) -> None:
    archive = image.archive({"init": b"program", "m/a.ko": b"module!"})
    subprocess.run(["cpio", "-idm", "--quiet"], input=archive, cwd=tmp_path, check=True)
    assert (tmp_path / "init").read_bytes() == b"program"
    assert (tmp_path / "m/a.ko").read_bytes() == b"module!"
    assert (tmp_path / "dev").is_dir()


def test_an_agent_that_does_not_compile_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong.c").write_text("int main(void) { return nothing; }")
    monkeypatch.setattr(image, "AGENT", tmp_path)
    with pytest.raises(Unusable, match="does not compile") as raised:
        image.agent(tmp_path / "built")
    assert "nothing" in raised.value.output
