"""A full host never loses what the baselines have made durable; they are opened again after it."""

import errno
import random
from itertools import count
from pathlib import Path

import pytest

from refmodel.core.errors import DiskError, UnknownOutcome
from refmodel.registry import DEFAULT, ENGINES, create, open_disk, plan
from support.disks import block
from support.host_faults import refusing

BLOCKS = 32


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != DEFAULT])
def test_what_was_flushed_stays(folder: Path, engine: str) -> None:
    create(folder, plan(engine, BLOCKS), sync=False)
    disk = open_disk(folder, sync=False)
    size = disk.geometry.block_bytes
    choose = random.Random(engine)
    expected = [0] * BLOCKS
    refused, odds = 0, 0.0
    with (
        refusing("pwrite", errno.ENOSPC, lambda _: choose.random() < odds),
        refusing("posix_fallocate", errno.ENOSPC, lambda _: choose.random() < odds),
    ):
        for tag in range(1, 200):
            odds = choose.choice((0, 0, 0.1, 1))
            lba = choose.randrange(BLOCKS)
            before = expected[lba]
            expected[lba] = tag
            try:
                disk.write(lba, block(tag, size))
                disk.flush()
            except (DiskError, OSError) as error:
                refused += 1
                odds = 0.0
                if isinstance(error, UnknownOutcome | OSError):
                    disk.abandon()
                    disk = open_disk(folder, sync=False)
                if disk.read(lba) == block(before, size):
                    expected[lba] = before
            odds = 0.0
            for at, held in enumerate(expected):
                assert disk.read(at) == block(held, size), (tag, at)
    assert 20 < refused < 190
    assert not [file for file in folder.iterdir() if file.name.endswith(".pulled")]
    disk.close()


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_disk_that_cannot_be_made_leaves_no_files(folder: Path, engine: str) -> None:
    calls = [0, 0]  # so far, and the one that fails

    def fails(_: str) -> bool:
        calls[0] += 1
        return calls[0] == calls[1]

    for number in count(1):
        calls[:] = 0, number
        with refusing("pwrite", errno.ENOSPC, fails):
            try:
                create(folder, plan(engine, BLOCKS), sync=False)
                break
            except DiskError:
                assert not [*folder.iterdir()], number
    assert number > 1
    open_disk(folder, sync=False).close()
