"""TLC's distributed mode finds the same states and a bug, and refuses what it would ignore."""

import os
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from modelcheck.checkers import distributed, tlc
from modelcheck.runs import models
from modelcheck.runs.models import Run


def run() -> Run:
    return next(run for run in models.runs("distributed"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def left(port: int) -> list[str]:
    """The command lines of processes that name the port."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(path.read_bytes().replace(b"\0", b" ").decode())
    return [line for line in lines if f"TLCServer.port={port}" in line]


def test_two_workers_find_the_states_that_one_tlc_finds() -> None:
    port = free_port()
    result = distributed.check(run(), ["localhost", "127.0.0.1"], port=port, timeout=300)
    assert (result.status, result.distinct) == ("ok", run().distinct), result.message
    assert not left(port)


def test_a_violation_is_found_on_a_host_that_ssh_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"  # stands for the network: runs what it is given here
    ssh.write_text('#!/bin/sh\nshift 3; echo "$1" >>"$HOSTS"; shift\ncd "$TMPDIR" && exec "$@"\n')
    ssh.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    for name, value in (
        ("PATH", f"{tmp_path}:{os.environ['PATH']}"),
        ("HOSTS", str(tmp_path / "hosts")),
        ("TMPDIR", str(tmp_path / "scratch")),
    ):
        monkeypatch.setenv(name, value)
    port = free_port()
    result = distributed.check(replace(run(), deadlock=True), ["127.0.0.2"], port=port, timeout=300)
    assert (
        result.status == "violated"
        and result.violated == distributed.UNNAMED
        and result.trace[0].values["state"] == '<<"degraded", "degraded">>'
    )
    assert (tmp_path / "hosts").read_text() == "127.0.0.2\n" and not left(port)


def test_what_distributed_mode_ignores_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"MCRedundancy.cfg: distributed mode would silently not check "
        r"Patient, Reusable, Refines, Obeys: ",
    ):
        distributed.check(replace(run(), config="MCRedundancy"), ["localhost"])
    with pytest.raises(ValueError, match="would silently ignore CHECK_DEADLOCK FALSE"):
        distributed.check(replace(run(), config="APRedundancy"), ["localhost"])
    assert (
        distributed.refusal("CHECK_DEADLOCK\n  FALSE\n")
        and distributed.refusal("PROPERTIES\n  P\n")
        and not distributed.refusal("INVARIANT P\n")
    )


def test_workers_that_cannot_start_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        distributed, "_worker", lambda *_: ["sh", "-c", "echo no such host; exit 1"]
    )
    result = distributed.check(run(), ["far"], port=free_port(), timeout=120)
    assert (
        result.status == "error"
        and result.message == "no worker is left; a worker said: no such host"
    )
    with pytest.raises(tlc.Unavailable, match="no `ssh`"):
        monkeypatch.undo()
        monkeypatch.setenv("PATH", "/nowhere")
        distributed._worker("far", "here", 1, "")
