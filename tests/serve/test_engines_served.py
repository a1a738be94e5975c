"""Disks of every engine are served, with and without a read cache."""

from collections.abc import Callable

import pytest

from refmodel.registry import ENGINES
from support.serving.served import Server, refmodel, run


@pytest.mark.parametrize(
    "engine, cache", [(name, 65536 * (number % 2)) for number, name in enumerate(ENGINES)]
)
def test_a_client_reads_what_it_wrote(
    serve: Callable[..., Server], engine: str, cache: int
) -> None:
    server = serve("--engine", engine, "--blocks", 64, "--cache-bytes", cache)
    run("qemu-io", "-f", "raw", "-c", "write -P 7 8192 8192", "-c", "flush", server.uri())
    snapshots = engine.startswith(("log", "redo"))
    refmodel("snapshot", server.disk, "s1", status=0 if snapshots else 2)
    run(
        "qemu-io",
        "-f",
        "raw",
        "-c",
        "write -P 8 8192 4096",
        "-c",
        "read -P 8 8192 4096",
        "-c",
        "read -P 7 12288 4096",
        server.uri(),
    )
    if snapshots:
        run("qemu-io", "-r", "-f", "raw", "-c", "read -P 7 8192 8192", server.uri("s1"))


def test_commands_resize_and_migrate_the_cache_of_a_served_disk(
    serve: Callable[..., Server],
) -> None:
    server = serve("--engine", "redo-se", "--blocks", 64, "--cache-bytes", 65536)
    run("qemu-io", "-f", "raw", "-c", "write -P 7 0 16384", server.uri())
    assert b"4 slots of the cache were copied" in refmodel("migrate", server.disk).stderr
    run("qemu-io", "-f", "raw", "-c", "read -P 7 0 16384", server.uri())
    assert b"cache.blocks outcome=hit" in refmodel("stats", server.disk).stdout
    refmodel("resize-cache", server.disk, 131072)
    assert b"0 slots" in refmodel("migrate", server.disk).stderr
    run("qemu-io", "-f", "raw", "-c", "read -P 7 0 16384", server.uri())
