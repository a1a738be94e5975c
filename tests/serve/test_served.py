"""A served disk and its clients: tools of qemu and libnbd, commands, and the end of the server."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.serving.served import ENGINE, Server, refmodel, run

Serve = Callable[..., Server]
MIB = 1 << 20


def test_what_the_server_declares(serve: Serve) -> None:
    server = serve("--blocks", 1024)
    refmodel("snapshot", server.disk, "monday")
    exports = json.loads(run("nbdinfo", "--json", "--list", server.uri()).stdout)["exports"]
    live, monday = exports
    assert (live["export-name"], live["is_read_only"], live["export-size"]) == ("", False, 4 * MIB)
    assert (monday["export-name"], monday["is_read_only"], monday["export-size"]) == (
        "monday",
        True,
        4 * MIB,
    )
    for able in ("can_flush", "can_fua", "can_trim", "can_zero", "can_fast_zero", "can_multi_conn"):
        assert live[able] is True, able
    assert live["block_size_preferred"] == 4096


def test_unaligned_requests_trim_zero_and_fua(serve: Serve) -> None:
    server = serve("--blocks", 1024)
    script = [
        "write -P 0x11 100 5000", "read -P 0x11 100 5000", "read -P 0 0 100", "read -P 0 5100 1000",
        "write -f -P 0x12 1M 64k", "discard 1M 32k", "read -P 0 1M 32k", "read -P 0x12 1056k 32k",
        "write -z 1057k 1k", "read -P 0 1057k 1k", "read -P 0x12 1056k 1k", "read -P 0x12 1058k "
                                                                            "30k", "flush",
    ]  # fmt: skip
    done = run("qemu-io", "-f", "raw", *(f"-c{line}" for line in script), server.uri())
    assert b"error" not in done.stdout.lower() and b"failed" not in done.stdout.lower(), (
        done.stdout.decode()
    )
    extents = json.loads(run("nbdinfo", "--json", "--map", server.uri()).stdout)
    data = [(extent["offset"], extent["length"]) for extent in extents if extent["type"] == 0]
    assert data == [(0, 8192), (1 * MIB + 32768, 32768)]


def test_images_go_in_and_out(serve: Serve, tmp_path: Path) -> None:
    server = serve("--blocks", 2048, "--layout", "raid5-4+1")
    image = tmp_path / "in"
    image.write_bytes(os.urandom(3 * MIB) + bytes(2 * MIB) + os.urandom(3 * MIB))
    run("nbdcopy", image, server.uri())
    refmodel("snapshot", server.disk, "s1")
    run("qemu-io", "-f", "raw", "-c", "write -P 0x77 0 8M", server.uri())
    run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", server.uri("s1"), tmp_path / "out.qcow2")
    run("qemu-img", "compare", image, tmp_path / "out.qcow2")
    run("nbdcopy", server.uri("s1"), tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == image.read_bytes()
    run("qemu-io", "-f", "raw", "-c", "read -P 0x77 0 8M", server.uri())


def test_commands_on_a_disk_that_is_served(serve: Serve) -> None:
    server = serve("--blocks", 256, "--layout", "raid5-2+1", "--spares", 1)
    refmodel("write", server.disk, 5, stdin=b"by command")
    assert (
        b"read 10/10"
        in run(
            "qemu-io",
            "-f",
            "raw",
            "-c",
            "read -P 0x62 20480 1",
            "-c",
            "read 20480 10",
            server.uri(),
        ).stdout
    )
    refmodel("snapshot", server.disk, "s1")
    run("qemu-io", "-f", "raw", "-c", "write -P 0x33 20480 4096", server.uri())
    assert refmodel("read", server.disk, 5).stdout == b"\x33" * 4096
    assert refmodel("read", server.disk, 5, "--view", "s1").stdout == b"by command".ljust(
        4096, b"\0"
    )
    assert refmodel("ls", server.disk).stdout == b"s1\t1 block\n"
    refmodel("revert", server.disk, "s1")
    assert refmodel("read", server.disk, 5).stdout.startswith(b"by command")
    refmodel("fail", server.disk, 1)
    assert b"absent" in refmodel("status", server.disk, status=1).stdout
    assert refmodel("read", server.disk, 5).stdout.startswith(b"by command")
    refmodel("return", server.disk, 1)
    refmodel("settle", server.disk)
    refmodel("status", server.disk)
    refused = refmodel("snapshot", server.disk, "s1", status=1)
    assert refused.stderr == b"refmodel: snapshot-exists: a snapshot named 's1' exists\n"
    refmodel("frobnicate", server.disk, status=2)
    for command in ("checkpoint", "clean", "scrub", "inspect", "flush"):
        refmodel(command, server.disk)
    assert json.loads(refmodel("stats", server.disk, "--json").stdout)["chunks.live"] == 1
    refmodel("delete", server.disk, "s1")
    assert refmodel("ls", server.disk).stdout == b""


def test_an_export_of_a_deleted_snapshot_never_shows_another_of_its_name(serve: Serve) -> None:
    server = serve("--blocks", 64)
    refmodel("snapshot", server.disk, "s")
    client = subprocess.Popen(
        ["qemu-io", "-f", "raw", "-r", server.uri("s")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    )
    assert client.stdin is not None and client.stdout is not None
    client.stdin.write(b"read -P 0 0 4k\n")
    while b"ops/sec" not in (line := client.stdout.readline()):
        assert line
    refmodel("delete", server.disk, "s")
    refmodel("write", server.disk, 0, "--text", "later")
    refmodel("snapshot", server.disk, "s")
    said, _ = client.communicate(b"read 0 4k\nquit\n", timeout=60)
    assert b"read failed: Input/output error" in said, said.decode()


def test_a_second_server_gets_one_line(serve: Serve) -> None:
    server = serve("--blocks", 64)
    for path in (server.socket, server.socket.with_name("other")):
        done = refmodel("serve", server.disk, "--socket", path, status=4)
        assert b"another process" in done.stderr and done.stderr.count(b"\n") == 1


def test_mistakes_get_one_line(serve: Serve, tmp_path: Path) -> None:
    server = serve("--blocks", 64)
    refmodel("create", tmp_path / "d2", "--blocks", 64)
    for disk, path, message in (
        (tmp_path / "nowhere", tmp_path / "s", b"there is no disk"),
        (tmp_path / "d2", server.socket, b"another server listens"),
        (tmp_path / "d2", tmp_path / "d2" / "device-0", b"not a socket"),
    ):
        done = refmodel("serve", disk, "--socket", path, status=2)
        assert message in done.stderr and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_though_a_client_stays(serve: Serve, how: signal.Signals) -> None:
    server = serve("--blocks", 64, "--write-back")
    refmodel("write", server.disk, 1, "--text", "kept")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(server.socket))
        assert client.recv(8) == b"NBDMAGIC"
        assert server.end(how) == 0
    assert not server.socket.exists() and not (server.disk / "control").exists()
    assert refmodel("read", server.disk, 1).stdout.startswith(b"kept")
    server.start()
    assert refmodel("read", server.disk, 1).stdout.startswith(b"kept")


def test_sockets_of_a_killed_server_are_removed_by_the_next(serve: Serve) -> None:
    server = serve("--blocks", 64)
    run("qemu-io", "-f", "raw", "-c", "write -P 0x44 4k 4k", server.uri())
    server.end(signal.SIGKILL)
    assert server.socket.exists()
    assert (
        refmodel("read", server.disk, 1).stdout == b"\x44" * 4096
    )  # the control socket is stale, the disk is free
    server.start()
    run("qemu-io", "-f", "raw", "-c", "read -P 0x44 4k 4k", server.uri())
    assert server.end() == 0


def test_a_rebuild_ends_without_any_client(serve: Serve) -> None:
    server = serve("--blocks", 2048, "--layout", "raid5-2+1", "--spares", 1)
    run("qemu-io", "-f", "raw", "-c", "write -P 0x21 0 8M", server.uri())
    refmodel("fail", server.disk, 0, "--mode", "degraded")
    deadline = time.monotonic() + 120
    while refmodel("status", server.disk, status=None).returncode != 0:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    run("qemu-io", "-f", "raw", "-c", "read -P 0x21 0 8M", server.uri())


def test_top_shows_what_a_server_does(serve: Serve, tmp_path: Path) -> None:
    server = serve("--blocks", 1024)
    top = subprocess.Popen(
        [*ENGINE, "top", str(server.disk), "--interval", "10", "--count", "1"],
        stdout=subprocess.PIPE,
    )
    time.sleep(4)
    run(
        "qemu-io",
        "-f",
        "raw",
        *(f"-cwrite -P 1 {lba * 4096} 4k" for lba in range(100)),
        server.uri(),
    )
    shown, _ = top.communicate(timeout=60)
    rates = {
        row.split()[0]: row.split()[1:]
        for row in reversed(shown.decode().splitlines())
        if row.strip()
    }
    assert float(rates["write"][0]) > 0 and "foreground" in rates
    assert all(float(bound.replace(",", "")) > 0 for bound in rates["write"][2:])
    server.end()
    done = refmodel("top", server.disk, status=2)
    assert b"nothing to watch" in done.stderr and done.stderr.count(b"\n") == 1
