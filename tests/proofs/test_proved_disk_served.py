"""The proved disk over NBD: bytes on its sockets, commands meanwhile, kills, hostile clients."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kill_server import Server, killed
from scheduler_bugs import built

from support.proved_disk import PROGRAM, call
from support.proved_server import BLOCK, answers_to, asked, connected, counted, sent_together
from support.serving.nbd_client import FLUSH, READ, TRIM, WRITE, ZERO, Client, replies, request
from support.serving.nbd_fuzz import fuzz


def stop(server: Server) -> None:
    """End the server, unless it has ended; it ends well."""
    if server.process.poll() is None:
        server.process.terminate()
    assert server.process.wait() == 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    call("create", tmp_path / "disk", "--blocks", 64)
    found = Server(tmp_path)
    yield found
    stop(found)
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["blocks"]
    assert not (tmp_path / "nbd.sock").exists()


def test_what_is_no_socket_stays(tmp_path: Path) -> None:
    call("create", tmp_path / "d", "--blocks", 64)
    notes = tmp_path / "notes"
    notes.write_text("mine")
    for path in (notes, tmp_path, tmp_path / "nowhere" / "socket"):
        done = subprocess.run(
            [PROGRAM, "serve", tmp_path / "d", "--socket", path], capture_output=True, timeout=10
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"proved-disk: cannot listen at {path}: ".encode())
    assert notes.read_text() == "mine"
    call("ls", tmp_path / "d")


def test_any_bytes_are_written_and_read(server: Server, tmp_path: Path) -> None:
    client, end = connected(tmp_path)
    with closing(end):
        assert client.size == 64 * BLOCK
        assert not client.one(WRITE, 100, data=b"a" * 10000).error
        assert not client.one(ZERO, 5000, 6).error
        assert not client.one(ZERO, 8000, 300).error
        assert not client.one(TRIM, 40000, 20000).error
        assert not client.one(FLUSH).error
        image = bytearray(64 * BLOCK)
        image[100:10100] = b"a" * 10000
        image[5000:5006], image[8000:8300] = bytes(6), bytes(300)
        for offset, length in [(0, 64 * BLOCK), (99, 3), (5001, 9000), (64 * BLOCK - 1, 1)]:
            assert client.one(READ, offset, length).content == bytes(
                image[offset : offset + length]
            )
        errors = [
            client.one(READ, 64 * BLOCK - 1, 2).error,
            client.one(WRITE, 64 * BLOCK - 1, data=b"xx").error,
            client.one(READ, (1 << 64) - 1, 1).error,
            client.one(READ, 1 << 63, 1).error,
            client.one(77).error,
        ]
        assert errors == [22, 28, 22, 22, 22]


def test_commands_work_meanwhile(server: Server, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    call("write", disk, 3, "--text", "one")
    call("snapshot", disk, "s")
    call("snapshot", disk, "s", status=1)
    call("write", disk, 3, "--text", "two")
    live, end = connected(tmp_path)
    view, other = connected(tmp_path, "s")
    with closing(end), closing(other):
        assert live.one(READ, 3 * BLOCK, 3).content == b"two"
        assert view.one(READ, 3 * BLOCK, 3).content == b"one"
        assert call("read", disk, 3, "--view", "s")[:3] == b"one"
        assert [view.one(kind, 0, 8).error for kind in (ZERO, TRIM)] == [1, 1]
        assert view.one(WRITE, 0, data=b"x").error == 1
        call("delete", disk, "s")
        call("snapshot", disk, "s")
        assert view.one(READ, 3 * BLOCK, 3).error == 108  # another snapshot took the name
        call("serve", disk, "--socket", tmp_path / "nbd.sock", status=4)
        call("ls", disk, status=4)


def test_the_oldest_request_is_first_and_writes_go_with_it(server: Server, tmp_path: Path) -> None:
    """A read between writes waits for them, and an unmap for all that came before it."""
    _, end = connected(tmp_path)
    with closing(end):
        before = counted(tmp_path / "disk")
        messages = [
            request(READ, BLOCK, BLOCK, cookie=1),
            request(WRITE, BLOCK, data=b"a" * BLOCK, cookie=2),
            request(READ, BLOCK, BLOCK, cookie=3),
            request(WRITE, 2 * BLOCK, data=b"b" * BLOCK, cookie=4),
            request(TRIM, BLOCK, BLOCK, cookie=5),
            request(READ, BLOCK, BLOCK, cookie=6),
            request(WRITE, 3 * BLOCK, data=b"c" * BLOCK, cookie=7),
        ]
        sizes = dict.fromkeys((1, 3, 6), BLOCK)
        length = 16 * len(messages) + sum(sizes.values())
        found = replies(answers_to(server.process, end, b"".join(messages), length), sizes)
        assert [reply.cookie for reply in found] == [1, 2, 4, 3, 5, 6, 7]
        assert not any(reply.error for reply in found)
        read = {reply.cookie: reply.content for reply in found if reply.cookie in sizes}
        assert read == {1: bytes(BLOCK), 3: b"a" * BLOCK, 6: bytes(BLOCK)}
        spent = counted(tmp_path / "disk") - before
        assert (spent["device_writes"], spent["device_flushes"]) == (3 + 1 + 2, 3)


def test_writes_that_arrive_together_share_a_record(server: Server, tmp_path: Path) -> None:
    client, end = connected(tmp_path)
    with closing(end):
        before = counted(tmp_path / "disk")
        writes = [(lba, bytes([lba]) * BLOCK) for lba in (*range(1, 12), 1)]
        assert not any(sent_together(server.process, end, writes))
        assert counted(tmp_path / "disk") - before == Counter(device_writes=13, device_flushes=1)
        last = (1, b"last" * (BLOCK // 4))
        assert not any(sent_together(server.process, end, [(1, b"a" * BLOCK), last]))
        assert client.one(READ, 0, 13 * BLOCK).content == b"".join(
            [bytes(BLOCK), last[1], *(bytes([lba]) * BLOCK for lba in range(2, 12)), bytes(BLOCK)]
        )


def test_writes_for_which_there_is_no_room_together_are_tried_one_by_one(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    call("create", disk, "--blocks", 8, "--segments", 1, "--segment-blocks", 8)
    call("write", disk, 0, "--fill", 1, "--count", 6)
    call("snapshot", disk, "s")
    server = Server(tmp_path)
    client, end = connected(tmp_path)
    with closing(end):
        errors = sent_together(server.process, end, [(lba, b"n" * BLOCK) for lba in range(4)])
        assert errors == [0, 0, 28, 28]
        assert client.one(READ, 0, 4 * BLOCK).content == b"n" * 2 * BLOCK + b"\1" * 2 * BLOCK
    stop(server)


@pytest.fixture
def mirrors(tmp_path: Path) -> Iterator[tuple[Server, Client]]:
    """The server of a disk on two mirrors, and a client, who has written to block 0."""
    call("create", tmp_path / "disk", "--blocks", 64, "--mirrors", 2)
    found = Server(tmp_path)
    client, end = connected(tmp_path)
    with closing(end):
        assert not client.one(WRITE, 0, data=b"a" * BLOCK).error
        yield found, client
    stop(found)


def test_requests_fail_while_no_member_answers_and_go_on_when_it_is_back(
    mirrors: tuple[Server, Client], tmp_path: Path
) -> None:
    (_, client), disk = mirrors, tmp_path / "disk"
    assert asked(disk, {"op": "snapshot", "name": "s"})["ok"]
    asked(disk, {"op": "fail", "device": 0})
    assert not client.one(WRITE, 0, data=b"b" * BLOCK).error
    asked(disk, {"op": "fail", "device": 1})
    assert [client.one(READ, 0, BLOCK).error for _ in range(2)] == [5, 5]
    assert client.one(WRITE, 0, data=b"c" * BLOCK).error == 5
    assert asked(disk, {"op": "read", "lba": 0, "count": 1})["error"] == "data-lost"
    assert asked(disk, {"op": "delete", "name": "s"})["error"] == "unknown-outcome"
    asked(disk, {"op": "return", "device": 0})  # it missed a write
    assert client.one(READ, 0, BLOCK).error == 5
    asked(disk, {"op": "return", "device": 1})
    assert client.one(READ, 0, BLOCK).content == b"b" * BLOCK
    assert not client.one(WRITE, 0, data=b"d" * BLOCK).error
    assert asked(disk, {"op": "settle"})["ok"]
    asked(disk, {"op": "fail", "device": 1})
    assert client.one(READ, 0, BLOCK).content == b"d" * BLOCK


def test_writes_that_arrive_together_share_a_record_on_mirrors(
    mirrors: tuple[Server, Client], tmp_path: Path
) -> None:
    (server, _), disk = mirrors, tmp_path / "disk"
    client, end = connected(tmp_path)
    with closing(end):
        before = counted(disk)
        writes = [(lba, bytes([lba]) * BLOCK) for lba in range(1, 13)]
        assert not any(sent_together(server.process, end, writes))
        assert counted(disk) - before == Counter(device_writes=26, device_flushes=2)
        for device in (0, 1):
            asked(disk, {"op": "fail", "device": device})
        assert sent_together(server.process, end, [(lba, b"b" * BLOCK) for lba in (1, 2)]) == [5, 5]
        for device in (0, 1):
            asked(disk, {"op": "return", "device": device})
        assert client.one(READ, BLOCK, 12 * BLOCK).content == b"".join(data for _, data in writes)


def test_a_server_that_ends_while_no_member_answers_leaves_the_record_alone(
    mirrors: tuple[Server, Client], tmp_path: Path
) -> None:
    """Who missed a write is not a member again because the disk was closed."""
    (server, client), disk = mirrors, tmp_path / "disk"
    asked(disk, {"op": "fail", "device": 0})
    asked(disk, {"op": "fail", "device": 1})
    assert client.one(READ, 0, BLOCK).error == 5
    record = (disk / "members").read_text()
    stop(server)
    assert (disk / "members").read_text() == record
    assert "members 1\n" in record


def test_hostile_clients(server: Server, tmp_path: Path) -> None:
    call("snapshot", tmp_path / "disk", "s1")
    found = fuzz(tmp_path / "nbd.sock", 3000, 1)
    assert found["received"] and found["disconnected by the server"], found
    call("write", tmp_path / "disk", 5, "--text", "still there")
    assert call("read", tmp_path / "disk", 5).startswith(b"still there")


def test_what_was_answered_survives() -> None:
    answered, _ = killed(6)
    assert answered > 6


def test_a_server_that_loses_a_flush_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill test is not vacuous: a server that answers before it writes is found."""
    bug = {
        "what": "only each third flush writes",
        "old": "store device (List.rev device.unflushed);\n",
        "new": "if device.flushes < 10 || device.flushes mod 3 = 0 then "
        "store device (List.rev device.unflushed);\n",
    }
    monkeypatch.setattr("kill_server.PROGRAM", built(tmp_path, bug, "device.ml"))
    with pytest.raises((AssertionError, subprocess.CalledProcessError)):
        killed(60)  # the first that finds it ends them; a busy machine writes little before a kill
