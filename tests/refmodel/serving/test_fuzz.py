"""The server stands what a hostile client sends. The long form is `make serve-fuzz`."""

import os
from pathlib import Path

import pytest

from support.serving.nbd_fuzz import fuzz
from support.serving.served import Server, refmodel

MESSAGES = int(os.environ.get("FUZZ_MESSAGES", 5000))
MOST_GROWTH = 128 << 20  # bytes of memory


@pytest.mark.parametrize("seed", [1])
def test_hostile_clients(tmp_path: Path, seed: int) -> None:
    server = Server(tmp_path)
    refmodel("create", server.disk, "--blocks", 64, "--block-bytes", 4096)
    refmodel("snapshot", server.disk, "s1")
    server.start()
    try:
        before = server.peak_bytes()
        found = fuzz(server.socket, MESSAGES, seed)
        assert found["received"] and found["ended by the server"], found
        assert found["disconnected by the server"], found
        assert server.peak_bytes() - before < MOST_GROWTH
        assert server.log.count("\n") == 1, server.log
        refmodel("write", server.disk, 5, "--text", "still there")
        assert refmodel("read", server.disk, 5).stdout.startswith(b"still there")
        refmodel("scrub", server.disk)
        assert server.end() == 0
    finally:
        server.stop()
