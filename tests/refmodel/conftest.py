"""Disks for tests: small, deep, and on memory where there is some."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.media.power_supply import PowerSupply
from support.disks import TINY


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for a disk that needs no real medium under it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name) / "disk"


@pytest.fixture
def make(folder: Path) -> Iterator[Callable[..., LogStructuredDisk]]:
    """Make a disk of so many blocks and open it; `reopen` opens it again."""
    opened: list[LogStructuredDisk] = []

    def make_disk(blocks: int, *, power: PowerSupply | None = None, **shape) -> LogStructuredDisk:
        create(folder, plan(blocks, **{**TINY, **shape}), sync=False)
        opened.append(open_disk(folder, sync=False, power=power))
        return opened[-1]

    yield make_disk
    for disk in opened:
        disk.abandon()
