"""Requests of clients, performed on a disk: groups, parts of blocks, errors."""

import random
from collections.abc import Callable

import pytest

from refmodel import LogStructuredDisk
from refmodel.core.errors import NoSpace
from refmodel.serving import requests as performing
from refmodel.serving.nbd.protocol import LONGEST_REQUEST
from support.disks import block
from support.serving.nbd_client import (
    CACHE,
    FAST,
    FLUSH,
    FUA,
    NO_HOLE,
    READ,
    REQ_ONE,
    STATUS,
    TRIM,
    WRITE,
    ZERO,
    Client,
    InProcess,
)

Make = Callable[..., LogStructuredDisk]
EPERM, EIO, EINVAL, ENOSPC, ENOTSUP = 1, 5, 22, 28, 95


def test_requests_that_arrive_together_are_one_operation_of_the_engine(make: Make) -> None:
    disk = make(64)
    client = Client(InProcess(disk))
    sequence = disk.state.log.sequence
    writes = [(WRITE, lba * 512, 0, block(lba + 1), 0) for lba in range(16)]
    assert not any(reply.error for reply in client.ask(*writes))
    assert disk.state.log.sequence == sequence + 2  # the record that opens the log, and one more
    found = client.ask(*((READ, lba * 512, 1024, b"", 0) for lba in range(15)))
    assert [reply.content for reply in found] == [
        block(lba + 1) + block(lba + 2) for lba in range(15)
    ]


def test_a_read_that_is_too_long_is_refused(make: Make) -> None:
    blocks = LONGEST_REQUEST // 512 + 1
    client = Client(InProcess(make(blocks)))
    reply = client.one(READ, 0, blocks * 512)
    assert reply.error == EINVAL and "too long" in reply.message


def test_a_refused_request_does_not_fail_the_others(make: Make) -> None:
    disk = make(8)
    disk.snapshot("s")
    client = Client(InProcess(disk))
    found = client.ask(
        (WRITE, 8 * 512, 0, block(1), 0),
        (READ, 8 * 512, 512, b"", 0),
        (WRITE, 3 * 512, 0, block(2), 0),
        (99, 0, 0, b"", 0),
        (READ, 0, 512, b"", FAST),
        (STATUS, 0, 0, b"", 0),
        (READ, 3 * 512, 512, b"", 0),
    )
    assert [reply.error for reply in found] == [ENOSPC, EINVAL, 0, EINVAL, EINVAL, EINVAL, 0]
    assert found[-1].content == block(2) and "past the end" in found[0].message
    snapshot = Client(InProcess(disk), "s")
    assert snapshot.one(WRITE, 0, 0, bytes(512)).error == EPERM
    assert snapshot.one(TRIM, 0, 512).error == snapshot.one(ZERO, 0, 512).error == EPERM
    assert snapshot.one(READ, 3 * 512, 512).content == bytes(512)
    disk.delete("s")
    disk.snapshot("s")
    assert snapshot.one(READ, 0, 512).error == EIO and snapshot.one(READ, 0, 100).error == EIO


def test_each_gets_its_own_error_when_the_engine_refuses(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make(8)
    client = Client(InProcess(disk))
    write = disk.write

    def refuse_many(writes: object) -> None:
        raise NoSpace("planted")

    def refuse_one(lba: int, data: bytes) -> None:
        if lba == 2:
            raise NoSpace("planted")
        write(lba, data)

    monkeypatch.setattr(disk, "write_many", refuse_many)
    monkeypatch.setattr(disk, "write", refuse_one)
    found = client.ask(*((WRITE, lba * 512, 0, block(1), 0) for lba in range(4)))
    assert [reply.error for reply in found] == [0, 0, ENOSPC, 0]
    assert found[2].message == "no-space: planted"


@pytest.mark.parametrize("write_back", [False, True])
def test_fua_and_flush_make_durable(
    make: Make, monkeypatch: pytest.MonkeyPatch, write_back: bool
) -> None:
    disk = make(64, write_back=write_back)
    flushes = []
    monkeypatch.setattr(disk, "flush", lambda: flushes.append(1))
    client = Client(InProcess(disk))
    for number, (kind, flags, expected) in enumerate(
        [(WRITE, 0, 0), (WRITE, FUA, 1), (ZERO, FUA, 1), (TRIM, FUA, 1), (FLUSH, 0, 1)]
    ):
        flushes.clear()
        length = 0 if kind == FLUSH else 512
        assert not client.one(kind, 512 * number, length, bytes(512 * (kind == WRITE)), flags).error
        assert len(flushes) == (expected if write_back or kind == FLUSH else 0), kind
    flushes.clear()
    assert not client.one(WRITE, 100, 0, b"parts of blocks", FUA).error
    assert len(flushes) == int(write_back)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("structured", [True, False])
def test_any_mixture_reads_as_a_file_would(
    make: Make, monkeypatch: pytest.MonkeyPatch, seed: int, structured: bool
) -> None:
    """Requests of any offset and length, several at a time on areas that do not overlap."""
    monkeypatch.setattr(performing, "USUAL_STEP", 1024)  # so that most have several steps
    monkeypatch.setattr(performing, "UNMAP_STEP", 1024)
    choose = random.Random(seed)
    size = 64 * 512
    disk = make(64, write_back=bool(seed % 2))
    client, expected = Client(InProcess(disk), structured=structured), bytearray(size)
    disk.snapshot("zeroes")
    for _ in range(300):
        cuts = sorted(choose.sample(range(size), choose.choice((2, 4, 8))))
        wanted = []
        for start, end in zip(cuts[::2], cuts[1::2], strict=True):
            if choose.random() < 0.5:
                start, end = start // 512 * 512, end // 512 * 512
            kind = choose.choice((READ, WRITE, WRITE, TRIM, ZERO, CACHE, FLUSH))
            length = 0 if kind == FLUSH else end - start
            data = choose.randbytes(length) if kind == WRITE else b""
            flags = choose.choice((0, FUA))
            if kind == ZERO:
                flags |= choose.choice((0, NO_HOLE, FAST))
            wanted.append((kind, start, length, data, flags))
        found = client.ask(*wanted)
        for (kind, start, length, data, _), reply in zip(wanted, found, strict=True):
            assert not reply.error
            end = start + length
            if kind == READ:
                assert reply.content == bytes(expected[start:end])
            elif kind == WRITE:
                expected[start:end] = data
            elif kind == ZERO:
                expected[start:end] = bytes(length)
            elif kind == TRIM and end // 512 > -(-start // 512):
                first, last = -(-start // 512) * 512, end // 512 * 512
                expected[first:last] = bytes(last - first)
    assert client.one(READ, 0, size).content == bytes(expected)
    assert Client(InProcess(disk), "zeroes").one(READ, 0, size).content == bytes(size)


def test_no_hole_writes_zeroes_and_is_never_fast(make: Make) -> None:
    client = Client(InProcess(make(64)))
    assert client.one(ZERO, 0, 1024, flags=NO_HOLE | FAST).error == ENOTSUP
    assert not client.one(ZERO, 0, 1024, flags=NO_HOLE).error
    assert client.one(STATUS, 0, 4096).content == [(1024, 0), (3072, 3)]
    assert not client.one(ZERO, 0, 512, flags=FAST).error
    assert client.one(STATUS, 0, 4096).content == [(512, 3), (512, 0), (3072, 3)]


def test_block_status(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = make(64)
    for lba in (2, 3, 7):
        disk.write(lba, block(1))
    client = Client(InProcess(disk))
    assert client.one(STATUS, 0, 64 * 512).content == [
        (1024, 3), (1024, 0), (1536, 3), (512, 0), (56 * 512, 3),
    ]  # fmt: skip
    assert client.one(STATUS, 100, 2000).content == [(924, 3), (1024, 0), (52, 3)]
    assert client.one(STATUS, 1024, 4096, flags=REQ_ONE).content == [(1024, 0)]
    monkeypatch.setattr(performing, "UNMAP_STEP", 1024)
    assert client.one(STATUS, 0, 64 * 512).content == [(1024, 3)]
