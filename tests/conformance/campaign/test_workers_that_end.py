"""Workers that hang in C or abort: the trace is named, and no process is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance.campaign import crew, workers
from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.judging.oracles import named
from conformance.targets import resolve
from support import rude_targets

ROOT = Path(__file__).parents[3]


def run(name: str) -> Campaign:
    return campaign(
        resolve(f"python:support.rude_targets:{name}"),
        count=200,
        ops=20,
        seed=2,
        oracles={"model": named("model")},
        workers=workers.on_this_machine(2),
    )


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes find `support` too."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests'}")


def test_a_worker_that_hangs_in_c_is_killed_and_its_trace_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crew, "SILENT", 0.5)
    result = run("Hangs")
    assert result.verdict == "inconclusive" and "it hung in trace " in result.reason, result.reason
    assert "of seed 2, no time limit could interrupt it" in result.reason


def test_a_worker_that_is_aborted_is_named_with_its_trace() -> None:
    result = run("Aborts")
    assert result.verdict == "inconclusive"
    assert "SIGABRT in trace " in result.reason and "of seed 2" in result.reason, result.reason


class EndsMeanwhile:
    """A sign of life: the call has ended when one looks at it again."""

    pid, trace = 0, 1

    def __init__(self) -> None:
        self.looks = 0

    @property
    def due(self) -> float:
        self.looks += 1
        return time.monotonic() if self.looks % 2 else 0.0


def test_a_call_that_ends_while_the_crew_looks_does_not_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed = []
    monkeypatch.setattr(crew, "LOOK", 0.01)
    monkeypatch.setattr(os, "kill", lambda *words: killed.append(words))
    sign = EndsMeanwhile()
    watched = crew.Crew([sign])
    started = time.monotonic()
    while sign.looks < 8 and time.monotonic() < started + 30:
        time.sleep(0.01)
    watched.end()
    assert sign.looks >= 8 and not killed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_is_left(tmp_path: Path, number: signal.Signals) -> None:
    target = "python:support.rude_targets:Hangs"
    words = ["run", "--target", target, "--jobs", "2", "--traces", "200", "--no-keep"]
    process = subprocess.Popen(
        [sys.executable, "-m", "conformance", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in a shell's job
    )
    try:
        started = time.monotonic()
        while len(workers_of := _children(process.pid)) < 2 and time.monotonic() < started + 30:
            time.sleep(0.1)
        time.sleep(3)  # now they hang; the kernel ends them after ten CPU seconds
        process.send_signal(number)
        told = process.communicate(timeout=240)  # their CPU seconds are long on a busy machine
        assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL), told
        started = time.monotonic()
        while any(map(_lives, workers_of)) and time.monotonic() < started + 60:
            time.sleep(0.1)
        assert not any(map(_lives, workers_of))
    finally:
        for pid in (process.pid, *workers_of):
            if _lives(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_worker_that_is_terminated_hands_over_what_it_did(tmp_path: Path) -> None:
    """`timeout` sends SIGTERM to the workers, too, not only to the campaign."""
    crowd = workers.on_this_machine(1)
    try:
        future = crowd.submit(rude_targets.until_interrupted, begun := tmp_path / "begun")
        started = time.monotonic()
        while not begun.exists() and time.monotonic() < started + 30:
            time.sleep(0.1)
        (worker,) = _children(os.getpid())
        os.kill(worker, signal.SIGTERM)
        assert future.result(timeout=20) == "interrupted"
        while _lives(worker) and time.monotonic() < started + 60:
            time.sleep(0.1)
        assert not _lives(worker)
    finally:
        crowd.close()


def _children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in children if b"spawn_main" in _command(int(one))]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _lives(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
