"""What `import refmodel` offers, used as a program of somebody else would."""

from pathlib import Path

import pytest

import refmodel
from refmodel import registry
from refmodel.core.errors import NotADisk


def test_a_folder_may_be_a_string_or_a_path(tmp_path: Path) -> None:
    refmodel.create(str(tmp_path / "a"), refmodel.plan(64), sync=False)
    disk = refmodel.open_disk(str(tmp_path / "a"), sync=False)
    disk.write(3, b"x" * disk.geometry.block_bytes)
    disk.close()
    disk = refmodel.open_disk(tmp_path / "a", sync=False)
    assert disk.folder == tmp_path / "a"
    disk.close()
    registry.create(str(tmp_path / "b"), registry.plan("log-structured", 64), sync=False)
    registry.open_disk(str(tmp_path / "b"), sync=False).close()


def test_a_folder_without_a_disk_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotADisk, match="there is no disk at"):
        refmodel.open_disk(str(tmp_path / "none"))
