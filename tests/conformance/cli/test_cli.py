"""The command line: exit statuses, files, and one line for a mistake."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli import main
from conformance.selftest.corpus import SCRIPT

EXAMPLE = Path(__file__).parents[3] / "conformance" / "examples" / "dict_disk.py"


def call(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_run_leaves_everything_behind(tmp_path):
    result = call(
        "run",
        "--target",
        f"exec:python3 {EXAMPLE}",
        "--traces",
        5,
        "--seed",
        1,
        "--report",
        tmp_path / "out",
        "--json",
        tmp_path / "r.json",
        "--junit",
        tmp_path / "r.xml",
    )
    assert result.exit_code == 0, result.output
    assert "pass" in result.output and "never" in result.output
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["verdict"] == "pass" and found["traces"] == 5
    assert "<testsuite" in (tmp_path / "r.xml").read_text()
    assert "<svg" not in (tmp_path / "out" / "report.html").read_text(), (
        "nothing is wrong, so there is no picture"
    )
    assert (tmp_path / "out" / "report.md").read_text().startswith("# exec:")
    files = sorted((tmp_path / "out" / "traces").glob("*.jsonl"))
    assert len(files) == 5
    assert call("check", tmp_path / "out" / "traces").exit_code == 0
    replayed = call("replay", files[0], "--target", f"exec:python3 {EXAMPLE}")
    assert replayed.exit_code == 0 and "create" in replayed.output


def test_a_failure_can_be_replayed(tmp_path):
    faulty = f"exec:python3 {SCRIPT} unmap-ignored"
    result = call("run", "--target", faulty, "--traces", 60, "--seed", 1, "--report", tmp_path)
    assert result.exit_code == 1 and "resurrected" in result.output and "--target" in result.output
    failing = next(tmp_path.glob("traces/failure-*.jsonl"))
    assert call("replay", failing, "--target", faulty).exit_code == 1
    assert call("replay", failing, "--target", "model:ack").exit_code == 0
    assert call("check", failing).exit_code == 1


def test_the_summary_says_that_nothing_certified_judged(monkeypatch):
    monkeypatch.setenv("CERTIFIED_ORACLE", "nowhere")
    result = call("run", "--target", "model", "--traces", 2, "--seed", 1)
    assert "judged by model (certified: not built, not run)" in " ".join(result.output.split())


def test_inconclusive_is_three(tmp_path):
    assert call("run", "--target", "exec:/nonexistent/engine").exit_code == 3
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    result = call("check", bad)
    assert result.exit_code == 3 and f"{bad}:1:" in result.output
    assert call("check", tmp_path / "missing.jsonl").exit_code == 3
    assert call("replay", bad, "--target", "model").exit_code == 3


@pytest.mark.parametrize(
    "words, says",
    [
        (["--target", "nope"], "no target 'nope'"),
        (["--target", "exec:"], "names no command"),
        (["--target", "model:fast"], "no profile 'fast'"),
        (["--target", "python:no_such_module:f"], "no_such_module"),
        (["--target", "python:json:nothing"], "nothing"),
        (["--target", "refmodel:fast"], "there is no engine 'fast'"),
        (["--target", "model", "--oracle", "certified"], "is not built (nowhere): run make proofs"),
        (["--target", "model", "--oracle", "model,moon"], "no oracle 'moon'"),
        (["--target", "model", "--crashes", "exhaustive"], "media that the kit owns"),
        (["--target", "refmodel", "--crashes", "exhaustive", "--ops", "9"], "out of reach"),
        (
            ["--target", "refmodel", "--crashes", "exhaustive", "--without", "unmap"],
            "are of random runs",
        ),
        (["--target", "model", "--resume", "p.jsonl"], "needs its --seed"),
        (["--target", "model", "--crashes", "some"], "'none', 'random', 'exhaustive'"),
        (["--target", "model", "--traces", "0"], "0 is not in the range"),
        ([], "--target"),
    ],
)
def test_wrong_usage_is_two(words, says, monkeypatch):
    monkeypatch.setenv("CERTIFIED_ORACLE", "nowhere")
    result = call("run", *words)
    assert result.exit_code == 2 and says in result.output, result.output
    assert "Traceback" not in result.output


def test_help_and_targets():
    for words in (
        ["--help"],
        ["run", "--help"],
        ["check", "--help"],
        ["replay", "--help"],
        ["targets"],
    ):
        assert call(*words).exit_code == 0
    assert "exec:COMMAND" in call("targets").output
