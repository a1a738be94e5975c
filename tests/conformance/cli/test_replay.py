"""`conformance replay` of a folder: what was judged is shown, whatever comes next."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance.campaign.driver import Bench
from conformance.cli import main
from conformance.selftest.corpus import SCRIPT
from conformance.targets.base import Unusable

FAULTY = f"exec:python3 {SCRIPT} unmap-ignored"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are kept in the working directory."""
    monkeypatch.chdir(tmp_path)


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def report() -> str:
    """The folder of a report with a failure and two traces that passed, and more."""
    words = ("--traces", 60, "--seed", 1, "--jobs", 1, "--failures", 1, "--report", "out")
    assert call("run", "--target", FAULTY, *words).exit_code == 1
    return "out"


def interrupted() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def unusable() -> None:
    raise Unusable("it went away")


def test_traces_are_found_below_a_folder(report: str) -> None:
    traces = list(Path(report).rglob("*.jsonl"))
    for words in (("check", report), ("replay", report, "--target", FAULTY)):
        result = call(*words)
        assert result.exit_code == 1 and f"{len(traces)} traces" in result.output, result.output
    result = call("replay", ".conformance", "--target", FAULTY)
    assert result.exit_code == 1 and "resurrected" in result.output


@pytest.mark.parametrize(
    "ends, status, says",
    [(interrupted, 130, "interrupted"), (unusable, 1, "the target is unusable: it went away")],
)
def test_what_was_judged_is_shown(
    ends: Any, status: int, says: str, report: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = sorted(Path(".conformance").rglob("*.jsonl"))
    others = sorted(Path(report).rglob("*.jsonl"))
    drive = Bench.drive
    sent: list[int] = []

    def one(bench: Bench, *arguments: Any, **how: Any) -> Any:
        if sent:
            ends()
        sent.append(1)
        return drive(bench, *arguments, **how)

    monkeypatch.setattr(Bench, "drive", one)
    result = call("replay", *kept, *others, "--target", FAULTY)
    assert result.exit_code == status and f"inconclusive: {says}" in result.output, result.output
    assert f"fail  replay of {kept[0]}" in result.output
    assert f"{len(others)} not judged" in result.output and "fail  1 trace, " in result.output
