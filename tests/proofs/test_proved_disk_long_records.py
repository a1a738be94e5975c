"""Writes of the proved disk whose log record is longer than a block: one flush, and all or none."""

import base64
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_states import laid
from kill_disk import Process
from kill_server import Server

from conformance.media import logwrites
from support.proved_disk import call
from support.proved_server import BLOCK, connected, counted
from support.serving.nbd_client import WRITE, replies, request

LONG = 600  # blocks: their record takes a head and two bodies
LOG = 8  # records in the log


def data_of(first: int, count: int) -> bytes:
    """Return blocks that hold `first` and the numbers after it."""
    return b"".join((first + i).to_bytes(8, "little") * (BLOCK // 8) for i in range(count))


@pytest.mark.parametrize("layout", [[], ["--trees"], ["--raid5", 4]])
def test_a_write_of_any_length_lasts(layout: list[object], tmp_path: Path) -> None:
    disk = tmp_path / "d"
    call("create", disk, "--blocks", 1500, *layout)
    call("write", disk, 100, text=data_of(1, LONG))
    call("snapshot", disk, "s")
    call("write", disk, 0, text=data_of(5000, 1500))
    assert call("read", disk, 0, 1500) == data_of(5000, 1500)
    assert call("read", disk, 100, LONG, "--view", "s") == data_of(1, LONG)


def test_a_write_that_is_longer_than_the_log_is_refused(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    call("create", disk, "--blocks", 1500, "--log-records", 2)
    call("write", disk, 0, text=data_of(1, 489))
    call("write", disk, 0, text=data_of(9, LONG), status=1)
    assert call("read", disk, 0, 1500) == data_of(1, 489) + bytes((1500 - 489) * BLOCK)


@pytest.mark.parametrize(("layout", "devices"), [([], 1), (["--mirrors", 2], 2)])
def test_one_flush_for_writes_of_any_length(
    layout: list[object], devices: int, tmp_path: Path
) -> None:
    """A long write of one client, then writes of eight clients that arrive together."""
    disk = tmp_path / "disk"
    call("create", disk, "--blocks", 1500, *layout)
    server = Server(tmp_path)
    clients = [connected(tmp_path) for _ in range(8)]
    before = counted(disk)
    assert not clients[0][0].one(WRITE, 0, data=data_of(1, LONG)).error
    spent = Counter(device_writes=devices * (LONG + 3), device_flushes=devices)
    assert counted(disk) - before == spent
    before = counted(disk)
    process = server.process
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    for i, (_, end) in enumerate(clients):
        end.settimeout(10)
        writes = [(48 * i + 16 * part, 16) for part in range(3)]
        end.sendall(
            b"".join(request(WRITE, lba * BLOCK, data=data_of(lba, n)) for lba, n in writes)
        )
    os.kill(process.pid, signal.SIGCONT)
    for _, end in clients:
        answers = b""
        while len(answers) < 3 * 16:
            answers += end.recv(1 << 16)
        assert not any(reply.error for reply in replies(answers, {}))
    spent = Counter(device_writes=devices * (384 + 3), device_flushes=devices)
    assert counted(disk) - before == spent
    for _, end in clients:
        end.close()
    process.terminate()
    assert process.wait() == 0
    assert call("read", disk, 0, 384) == data_of(0, 384)


def crash_states(
    stable: bytes, pending: list[logwrites.Write], choose: random.Random
) -> Iterator[bytes]:
    """Yield what a power cut may leave of a write: all subsets of the blocks of the record and of
    one block of the data, whole and torn; then all of it."""
    data, record = pending[:LONG], pending[LONG:]
    assert [write.offset // BLOCK < 3 + LOG for write in pending] == [False] * LONG + [True] * 3
    for mask in range(16):
        lost = data[choose.randrange(LONG)]
        kept = [write for write in data if write is not lost or mask & 8]
        kept += [write for i, write in enumerate(record) if mask >> i & 1]
        yield laid(stable, kept)
    for _ in range(16):
        sectors = [part for write in record for part in write.atoms(logwrites.SECTOR)]
        yield laid(stable, data + [part for part in sectors if choose.random() < 0.9])
    yield laid(stable, pending)


@pytest.mark.parametrize("layout", [[], ["--trees"]])
def test_a_power_cut_leaves_all_of_a_long_write_or_nothing(
    layout: list[str], tmp_path: Path
) -> None:
    disk, copy, log = tmp_path / "disk", tmp_path / "copy", tmp_path / "log"
    copy.mkdir()
    call("create", disk, "--blocks", LONG, "--log-records", LOG, "--snapshots", 1, *layout)
    process = Process(disk, "--log-writes", log)
    process.ask({"op": "hello"})
    found: Counter[bool] = Counter()
    content, stable, at = bytes(LONG * BLOCK), (disk / "blocks").read_bytes(), logwrites.START
    for first in (1, 1000, 2000, 3000):
        after = data_of(first, LONG)
        answer = process.ask({"op": "write", "lba": 0, "data": base64.b64encode(after).decode()})
        assert answer is not None and answer["ok"], json.dumps(answer)
        entries, at = logwrites.read(log, at)
        flushed = [i for i, entry in enumerate(entries) if entry.flags & logwrites.FLUSH]
        begins = flushed[-2] + 1 if len(flushed) > 1 else 0  # behind a checkpoint, if there is one
        pending = [entry for entry in entries[begins:] if entry.moves]
        before = laid(stable, [entry for entry in entries[:begins] if entry.moves])
        for state in crash_states(before, pending, random.Random(first)):
            (copy / "blocks").write_bytes(state)
            left = call("read", copy, 0, LONG)
            assert left in (content, after)
            found[left == after] += 1
        content, stable = after, laid(stable, [entry for entry in entries if entry.moves])
    process.ask({"op": "bye"})
    assert found[True] >= 8 and found[False] >= 60
