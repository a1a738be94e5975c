"""Small disks for tests, in memory where the system has a file system for that."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.media.power_supply import PowerSupply
from support.disks import TINY


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for a disk, in memory if possible."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name) / "disk"


@pytest.fixture
def make(folder: Path) -> Iterator[Callable[..., LogStructuredDisk]]:
    """Makes a disk of so many blocks, and opens it."""
    opened: list[LogStructuredDisk] = []

    def make_disk(
        blocks: int, *, power: PowerSupply | None = None, **shape: Any
    ) -> LogStructuredDisk:
        create(folder, plan(blocks, **{**TINY, **shape}), sync=False)
        opened.append(open_disk(folder, sync=False, power=power))
        return opened[-1]

    yield make_disk
    for disk in opened:
        disk.abandon()
