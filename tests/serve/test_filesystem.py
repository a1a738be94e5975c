"""A file system on a served disk is read back from its snapshots."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.serving.served import Server, refmodel, run

EXT4 = shutil.which("mkfs.ext4", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
DEBUGFS = shutil.which("debugfs", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
NEEDED = pytest.mark.skipif(
    not (EXT4 and DEBUGFS), reason="NOT RUN: mkfs.ext4 and debugfs are missing (e2fsprogs)"
)


def tree(root: Path, seed: bytes) -> Path:
    (root / "folder").mkdir(parents=True)
    for number in range(20):
        (root / "folder" / f"file-{number}").write_bytes(seed * (997 * number + 1))
    return root


def files(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("file-*")}


def extracted(uri: str, folder: Path) -> dict[str, bytes]:
    """Copy an export out, check the file system in it, and take its files out."""
    folder.mkdir()
    run("nbdcopy", uri, folder / "image")
    run(Path(str(DEBUGFS)).with_name("e2fsck"), "-fn", folder / "image")
    run(DEBUGFS, "-R", f"rdump /folder {folder}", folder / "image")
    return files(folder)


@NEEDED
def test_a_file_tree_is_read_back_from_the_snapshot(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve("--blocks", 8192, "--layout", "raid6-4+2")
    for name, seed in (("monday", b"monday\n"), ("tuesday", b"Tuesday, another day\n")):
        image = tmp_path / f"{name}.img"
        run("truncate", "-s", "32M", image)
        run(EXT4, "-q", "-F", "-d", tree(tmp_path / name, seed), image)
        run("nbdcopy", image, server.uri())
        refmodel("snapshot", server.disk, name)
    run("qemu-io", "-f", "raw", "-c", "write -P 0xee 0 32M", server.uri())
    refmodel("fail", server.disk, 1)
    for name in ("monday", "tuesday"):
        found = extracted(server.uri(name), tmp_path / f"{name}-out")
        assert found == files(tmp_path / name) and len(found) == 20
