"""`conformance shrink`: where the shorter trace goes, and what is left if it cannot go there."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.campaign.attempts import Attempts
from conformance.cli import main
from conformance.contract import trace as traces
from conformance.selftest.corpus import SCRIPT

FAULTY = f"exec:python3 {SCRIPT} unmap-ignored"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are kept in the working directory."""
    monkeypatch.chdir(tmp_path)


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def whole() -> Path:
    """A long trace that failed, which was not shrunk."""
    words = ("--traces", 60, "--seed", 1, "--jobs", 1, "--failures", 1, "--report", "out")
    assert call("run", "--target", FAULTY, "--no-keep", *words).exit_code == 1
    (failing,) = Path("out/traces").glob("failure-*.jsonl")
    return failing.with_name(failing.name.removeprefix("failure-"))


def shrink(file: Path, *words: object) -> Result:
    return call("shrink", file, "--target", FAULTY, *words)


def test_a_kept_failure_is_replaced(whole: Path) -> None:
    kept = Path(".conformance/failures/mine/resurrected-0.jsonl")
    kept.parent.mkdir(parents=True)
    whole.replace(kept)
    long = traces.read(kept).operations
    assert shrink(kept, "--seconds", 0.001).exit_code == 1
    assert traces.read(kept).unfinished
    assert shrink(kept).exit_code == 1
    assert list(Path(".conformance").rglob("*.jsonl")) == [kept]
    found = traces.read(kept)
    assert found.operations < 10 < long == found.before and not found.unfinished


def test_what_was_shrunk_before_is_replaced(whole: Path) -> None:
    short = whole.with_suffix(".short.jsonl")
    assert f": {short}\n" in shrink(whole, "--seconds", 0.001).output
    result = shrink(short)
    assert f"shortened from {traces.read(whole).operations} to " in result.output
    assert result.output.endswith(f": {short}\n"), result.output
    assert not list(whole.parent.glob("*.short.short.jsonl"))


def test_an_output_is_refused_before_the_search(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_search(*_: object) -> None:
        raise AssertionError("it searched")

    monkeypatch.setattr(Attempts, "shrunk", no_search)
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
    result = shrink(whole)
    assert result.exit_code == 2 and "cannot be written: no permission in" in result.output


def test_a_result_that_cannot_be_written_is_shown(whole: Path) -> None:
    result = shrink(whole, "--output", "/dev/full")
    assert result.exit_code == 1 and "resurrected at operation" in result.output
    assert result.output.endswith(": /dev/full is not written: No space left on device\n")
    assert f"conformance replay {whole}" in result.output


def test_shrinking_goes_on_from_a_file(whole: Path) -> None:
    before = len(whole.read_text().splitlines())
    result = shrink(whole, "--output", "short.jsonl")
    assert result.exit_code == 1 and "shortened from" in result.output, result.output
    assert "conformance replay short.jsonl" in result.output
    assert len(Path("short.jsonl").read_text().splitlines()) <= 7 < before
    result = shrink(whole, "--seconds", 0.001)
    assert "shrinking was not finished" in result.output and result.exit_code == 1
    assert f"conformance shrink {whole.with_suffix('.short.jsonl')}" in result.output
    result = call("shrink", whole, "--target", "model:ack")
    assert result.exit_code == 3 and "it does not fail: it was sent 10 times" in result.output
