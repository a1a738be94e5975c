"""LMDB as a target. It needs lmdb, qemu and FUSE; `make engines` installs the packages."""

import mmap
import os
import shutil
from typing import Any

import pytest

from conformance.contract.trace import Trace
from conformance.targets.base import Message

pytest.importorskip("lmdb", reason="NOT RUN: lmdb is not installed: make engines")

from conformance import targets
from conformance.campaign.driver import drive
from conformance.campaign.random_campaign import campaign
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.targets.engines import lmdb
from conformance.targets.engines.qemu import storage_daemon
from conformance.targets.engines.recorded_disk import log_writes

MISSING = [tool for tool in ("qemu-storage-daemon", "setpriv") if shutil.which(tool) is None]
MISSING += [] if os.access("/dev/fuse", os.R_OK | os.W_OK) else ["/dev/fuse"]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"NOT RUN: {', '.join(MISSING)} missing")
MODEL = {"model": named("model")}


@pytest.mark.parametrize("metasync, profile", lmdb.PROFILES.items())
def test_it_keeps_the_contract_through_power_cuts(metasync: str, profile: str) -> None:
    result = campaign(
        targets.resolve(f"lmdb:metasync={metasync}"), count=25, ops=30, seed=2, oracles=MODEL
    )
    assert result.verdict == "pass", [
        f.verdict.words(f.trace) for f in result.failures
    ] or result.reason
    first = result.judged[0][0]
    assert isinstance(first, Trace) and first.hello["crash_profile"] == profile
    assert result.skipped == ["clean", "device", "fua", "scrub"]
    assert sum(times for (_, outcome), times in result.coverage.items() if outcome == "cut") > 10


def test_without_metasync_it_is_not_ack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lmdb.PROFILES, "off", "ack")
    result = campaign(
        targets.resolve("lmdb:metasync=off"),
        count=50,
        ops=30,
        seed=1,
        oracles=MODEL,
        most_failures=1,
    )
    assert result.failures[0].verdict.kind in (
        "lost-acknowledgement",
        "lost-snapshot",
        "stale",
        "resurrected",
    )


def test_without_syncing_it_is_not_even_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """lmdb.h: with MDB_NOSYNC a power cut can corrupt the database. So the media lose data."""
    binding = pytest.importorskip("lmdb")
    really = binding.open
    monkeypatch.setattr(
        binding,
        "open",
        lambda *path, **more: really(*path, **more, **({} if "lock" in more else {"sync": False})),
    )
    result = campaign(
        targets.resolve("lmdb:metasync=off"),
        count=100,
        ops=30,
        seed=1,
        oracles=MODEL,
        most_failures=1,
    )
    assert result.verdict == "fail"


def test_a_snapshot_is_a_read_view_while_the_environment_is_open_and_a_copy_after_that() -> None:
    target = lmdb.LmdbTarget({})
    whole: Message = {"op": "read", "lba": 0, "count": 3}
    program: list[Message] = [
        {"op": "create", "blocks": 3},
        {"op": "write", "lba": 0, "tags": [1, 2]},
        {"op": "snapshot", "name": "s"},
        *({"op": "write", "lba": 0, "tags": [tag] * 3} for tag in range(3, 9)),
        {**whole, "view": "s"},
    ]
    trace = drive(target, program)
    assert trace.events[-1]["result"]["tags"] == [1, 2, 0]
    with target._environment.begin(write=True) as change:
        change.delete(lmdb._key(b"s", 0))

    def read() -> bytes:
        data: bytes = target.request({"op": "read", "lba": 0, "count": 1, "view": "s"})["data"]
        return data

    assert any(read()), "the copy is not what is read"
    target.request({"op": "restart"})
    assert not any(read())
    trace = drive(
        target,
        [
            *program,
            {"op": "restart"},
            {**whole, "view": "s"},
            {"op": "revert", "name": "s"},
            whole,
            {"op": "delete", "name": "s"},
            {**whole, "view": "s"},
        ],
    )
    target.close()
    assert judge([trace], MODEL)[0].verdict == "pass" and trace.events[-3]["result"]["tags"] == [
        1,
        2,
        0,
    ]
    assert not target._daemon.folder.joinpath("db").is_mount()


def test_what_it_refuses() -> None:
    target = targets.resolve("lmdb")({})

    def ask(op: str, **more: Any) -> str | None:
        return target.request({"op": op, **more}).get("error")

    ask("create", blocks=4)
    assert (
        ask("write", lba=3, data=bytes(1024)) == "out-of-range"
        and ask("delete", name="s") == "no-such-snapshot"
    )
    assert ask("snapshot", name="s") is None and ask("snapshot", name="s") == "snapshot-exists"
    assert ask("snapshot", name="a b") == "bad-request" and ask("tick", seconds=1) == "unsupported"
    assert (
        ask("read", lba=4, count=1, view="s") == "out-of-range"
        and ask("read", lba=0, count=1, view="t") == "no-such-snapshot"
    )
    target.close()


def test_the_finding_fuse_export_mixes_writes() -> None:
    """docs/findings. If a newer qemu has mended it: say so there, and offer MDB_WRITEMAP."""
    daemon = storage_daemon.Daemon()
    try:
        log_writes(daemon, 1 << 20)
        mount = daemon.folder / "db"
        mount.write_bytes(b"")
        daemon.do(
            (
                "block-export-add",
                {
                    "type": "fuse",
                    "id": "f",
                    "node-name": "w",
                    "mountpoint": str(mount),
                    "writable": True,
                },
            )
        )
        pages, mixed = range(0, 64, 3), 0
        for _ in range(100):
            with mount.open("r+b") as file, mmap.mmap(file.fileno(), 1 << 20) as memory:
                for page in pages:
                    memory[page * 4096 : (page + 1) * 4096] = bytes([page + 1]) * 4096
                memory.flush()
            disk = (daemon.folder / "disk").read_bytes()
            mixed += any(
                disk[page * 4096 : (page + 1) * 4096] != bytes([page + 1]) * 4096 for page in pages
            )
        daemon.do(("block-export-del", {"id": "f", "mode": "hard"}))
        assert mixed
    finally:
        daemon.close()
