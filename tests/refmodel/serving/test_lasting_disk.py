"""A served disk that an error made unusable is opened again."""

import errno
from pathlib import Path
from typing import Any

import pytest

from refmodel import create, open_disk, plan
from refmodel.core.errors import UnknownOutcome
from refmodel.serving.lasting_disk import LastingDisk
from support.disks import TINY, block
from support.host_faults import refusing
from support.serving.nbd_client import FLUSH, FUA, READ, WRITE, Client, InProcess


def lasting(folder: Path, **options: Any) -> LastingDisk:
    create(folder, plan(64, **{**TINY, **options}), sync=False)
    return LastingDisk(lambda: open_disk(folder, sync=False))


def test_clients_go_on_where_they_were(folder: Path) -> None:
    disk = lasting(folder)
    client = Client(InProcess(disk))
    disk.snapshot("s")
    snapshot = Client(InProcess(disk), "s")
    client.one(WRITE, 512, 0, block(1))
    with refusing("pwrite", errno.ENOSPC):
        assert client.one(WRITE, 1024, 0, block(2)).error == 5  # its outcome is not known
        assert client.one(READ, 512, 512).content == block(1)
    assert not client.one(WRITE, 1024, 0, block(3)).error
    assert client.one(READ, 1024, 512).content == block(3)
    assert snapshot.one(READ, 512, 512).content == bytes(512)
    disk.close()


def test_an_error_of_the_program_is_no_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = lasting(folder)
    disk.write(1, block(1))
    broken = disk.disk
    monkeypatch.setattr(broken, "write", lambda lba, data: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        disk.write(1, block(2))
    assert disk.read(1) == block(1) and disk.disk is not broken
    disk.close()


def test_a_flush_after_answers_that_may_be_lost_is_refused_once(folder: Path) -> None:
    disk = lasting(folder, write_back=True)
    client = Client(InProcess(disk))
    client.one(WRITE, 512, 0, block(1))
    with refusing("pwrite", errno.ENOSPC):
        assert client.one(WRITE, 1024, 0, block(2)).error == 5
    assert client.one(READ, 512, 512).content == block(1)
    refused = client.one(FLUSH)
    assert refused.error == 5 and "may be lost" in refused.message
    assert not client.one(FLUSH).error
    disk.close()


def test_each_connection_is_told_once_of_answers_that_may_be_lost(folder: Path) -> None:
    disk = lasting(folder, write_back=True)
    disk.snapshot("s")
    writer, other, third = (Client(InProcess(disk)) for _ in range(3))
    reader = Client(InProcess(disk), "s")
    writer.one(WRITE, 512, 0, block(1))
    other.one(WRITE, 1024, 0, block(2))
    disk.disk.abandon()
    assert "may be lost" in writer.one(FLUSH).message
    later = Client(InProcess(disk))
    assert not later.one(FLUSH).error and not writer.one(FLUSH).error
    assert "may be lost" in other.one(WRITE, 1024, 0, block(3), FUA).message
    assert not other.one(FLUSH).error
    assert "may be lost" in third.one(WRITE, 1024, 0, b"part", FUA).message
    assert not third.one(FLUSH).error and not reader.one(FLUSH).error
    disk.close()


def test_a_client_that_connects_later_is_told_if_nobody_was(folder: Path) -> None:
    disk = lasting(folder, write_back=True)
    Client(InProcess(disk)).one(WRITE, 512, 0, block(1))
    disk.disk.abandon()
    later = Client(InProcess(disk))
    assert "may be lost" in later.one(FLUSH).message and not later.one(FLUSH).error
    disk.close()


def test_it_waits_between_attempts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = lasting(folder)
    attempts = []

    def refuse() -> None:
        attempts.append(1)
        raise OSError(errno.EMFILE, "too many open files")

    right, disk._reopen = disk._reopen, refuse  # type: ignore[assignment]
    disk.disk.abandon()
    for _ in range(10):
        with pytest.raises(UnknownOutcome):
            disk.read(0)
    assert len(attempts) == 1
    disk._reopen, disk._retry_from = right, 0.0
    assert disk.read(0) == bytes(512)
    disk.close()
