"""Failures that are kept between runs: one bug stays one failure, and no evidence is lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.campaign.results import Campaign, Failure
from conformance.campaign.saved import kept_failures
from conformance.campaign.saved.kept_failures import FOLDER, KeptFailures
from conformance.cli import main
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.reports.evidence import shrink_line
from conformance.selftest.corpus import SCRIPT

MODEL = {"model": named("model")}
FAULTY = f"exec:python3 {SCRIPT} unmap-ignored"
SHORT: list[dict[str, Any]] = [
    {"op": "create", "blocks": 8},
    {"op": "write", "lba": 3, "tags": [1]},
    {"op": "unmap", "lba": 3, "count": 1},
    {"op": "read", "lba": 3, "count": 1},
]
LONG = [
    SHORT[0],
    *({"op": "write", "lba": 5, "tags": [tag]} for tag in range(2, 20)),
    {"op": "flush"},
    *SHORT[1:],
]
TWO = (SHORT, [SHORT[0], {"op": "write", "lba": 4, "tags": [2]}, *SHORT[1:]])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are kept in the working directory."""
    monkeypatch.chdir(tmp_path)


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def run(*words: object, traces: int = 2) -> Result:
    return call("run", "--target", FAULTY, "--traces", traces, "--seed", 3, "--jobs", 1, *words)


def kept(*programs: list[dict[str, Any]], unfinished: bool = False) -> list[Path]:
    """Keep the failure of each program, and return the files."""
    bench = Bench(targets.resolve(FAULTY))
    for program in programs:
        trace = bench.drive(program, 1, {})
        (verdict,) = judge([trace], MODEL)
        failure = Failure(trace, verdict, 0, 40, unfinished=unfinished)
        KeptFailures(FOLDER, FAULTY).keep(Campaign(FAULTY, 1, failures=[failure]))
    bench.clear()
    return files()


def files() -> list[Path]:
    return sorted(FOLDER.rglob("*.jsonl"))


def found(result: Result) -> Any:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return json.loads(Path("r.json").read_text())


def test_what_needs_an_operation_that_is_left_out_is_not_sent() -> None:
    kept(SHORT)
    result = run("--without", "unmap", traces=20)
    assert result.exit_code == 0, result.output
    line = (
        "kept failures: 0 fail again, 0 passed and are forgotten, 1 not sent: the target is not "
        "asked for unmap"
    )
    assert line in result.output and len(files()) == 1


def test_a_failure_that_was_not_shrunk_stays_so() -> None:
    kept(LONG, unfinished=True)
    again = KeptFailures(FOLDER, FAULTY).run_again(targets.resolve(FAULTY), MODEL, ())
    (alone,) = again.failures
    assert alone.unfinished and alone.before == 40
    line = shrink_line(Campaign(FAULTY, 1), alone)
    assert line.startswith("conformance shrink .conformance/failures/")
    together = found(run("--json", "r.json", traces=60))["failures"]
    assert len(together) == 1 and None in together[0]["traces"], "one bug is one failure"
    assert not together[0]["unfinished"]
    assert call("check", *files()).exit_code == 1, "the header is that of a trace"


def test_a_trace_that_says_nothing_of_shrinking_may_be_long() -> None:
    (file,) = kept(LONG)
    header, *lines = file.read_text().splitlines(keepends=True)
    bare = {key: value for key, value in json.loads(header).items() if key != "before"}
    file.write_text("".join([json.dumps(bare) + "\n", *lines]))
    assert len(found(run("--json", "r.json", traces=60))["failures"]) == 1, "one bug is one failure"


def test_a_damaged_file_is_left_and_the_others_are_sent() -> None:
    damaged, _ = kept(*TWO)
    text = damaged.read_text() + "x"
    damaged.write_text(text)
    result = run()
    assert result.exit_code == 1 and "kept failures: 1 fail again, 0 passed" in result.output
    assert f"a kept failure is not run: {damaged}:" in result.output
    assert damaged.read_text() == text


def test_an_interrupt_shows_the_kept_failures_that_were_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept(*TWO)
    sent = kept_failures._sent_again

    def interrupted(*arguments: Any) -> Any:
        if files_sent:
            os.kill(os.getpid(), signal.SIGINT)
        files_sent.append(1)
        return sent(*arguments)

    files_sent: list[int] = []
    monkeypatch.setattr(kept_failures, "_sent_again", interrupted)
    result = run("--json", "r.json", "--report", "out", "--junit", "r.xml")
    assert result.exit_code == 130 and "kept failures: 1 fail again" in result.output
    assert "a failure kept from an earlier run" in result.output and "fail  " in result.output
    shown = found(result)
    assert shown["interrupted"] and shown["traces"] == 0 and len(shown["failures"]) == 1
    assert Path("out/report.html").exists() and len(files()) == 2


def test_what_was_found_is_said_and_kept_at_once() -> None:
    words = ["--target", FAULTY, "--traces", "1000000", "--failures", "1000000", "--jobs", "1"]
    command = [sys.executable, "-m", "conformance", "run", *words, "--seed", "3"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    first = process.stderr.readline()
    assert first.startswith("failure  trace ") and "shrinking takes up to a minute" in first
    second = process.stderr.readline()
    process.kill()  # as by a host that has no more time
    process.communicate()
    *_, file = second.split()
    assert "resurrected, shortened from " in second and Path(file) in files()


def test_a_trace_that_was_kept_gives_way_to_a_shorter_one_of_its_bug() -> None:
    bench, keeper = Bench(targets.resolve(FAULTY)), KeptFailures(FOLDER, FAULTY)
    result = Campaign(FAULTY, 1)
    for program, unfinished in ((LONG, True), (SHORT, False)):
        trace = bench.drive(program, 1, {})
        (verdict,) = judge([trace], MODEL)
        result.failures = [Failure(trace, verdict, 0, 40, unfinished=unfinished)]
        keeper.keep(result)
        (file,) = files()
        assert file == Path(trace.origin)
    bench.clear()


def test_a_failure_of_an_earlier_run_that_is_found_again_stays_on_file() -> None:
    (file,) = kept(SHORT)
    keeper = KeptFailures(FOLDER, FAULTY)
    (old,) = keeper.run_again(targets.resolve(FAULTY), MODEL, ()).failures
    result = Campaign(FAULTY, 1, failures=[Failure(old.trace, old.verdict, 7, 40)])
    keeper.keep(result)  # in the middle of the run
    result.failures.insert(0, old)
    keeper.keep(result)
    assert files() == [file]
