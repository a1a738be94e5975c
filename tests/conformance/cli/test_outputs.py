"""The files that a run writes. They name each other; a wrong name is one line before the run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli import main
from conformance.contract import trace as traces
from conformance.selftest.corpus import SCRIPT

FAULTY = f"exec:python3 {SCRIPT} unmap-ignored"
PASSING = ("run", "--target", "model:ack", "--traces", 2, "--seed", 1, "--jobs", 1)
FAILING = ("run", "--target", FAULTY, "--traces", 60, "--seed", 1, "--jobs", 1, "--failures", 1)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are kept in the working directory."""
    monkeypatch.chdir(tmp_path)


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_json_and_junit_name_the_file_of_the_report() -> None:
    files = ("--report", "out", "--json", "r.json", "--junit", "r.xml")
    assert call(*FAILING, "--no-keep", *files).exit_code == 1
    (failure,) = json.loads(Path("r.json").read_text())["failures"]
    assert failure["trace"].startswith("out/traces/failure-")
    assert failure["replay"].startswith(f"conformance replay {failure['trace']} --target")
    assert f"conformance replay {failure['trace']}" in Path("r.xml").read_text()


def test_a_report_has_a_file_for_each_kept_failure() -> None:
    call(*FAILING)
    (kept,) = Path(".conformance").rglob("*.jsonl")
    lines = kept.read_text().splitlines(keepends=True)
    other = '{"op":"flush","result":{"ok":true}}\n'
    kept.with_name("other.jsonl").write_text("".join([*lines[:2], other, *lines[2:]]))
    call(*PASSING[:2], FAULTY, *PASSING[3:], "--report", "out", "--json", "r.json")
    first, second = json.loads(Path("r.json").read_text())["failures"]
    assert first["trace"] != second["trace"]
    for one in (first, second):
        assert one["trace"].startswith("out/traces/failure-kept")
        assert len(traces.read(one["trace"]).events) == len(one["events"])


def test_a_report_that_is_refused_does_not_keep_others_from_being_written() -> None:
    Path("out/report.md").mkdir(parents=True)
    result = call(*PASSING, "--report", "out", "--json", "r.json")
    assert result.exit_code == 3 and "the report is not written: out/report.md" in result.output
    assert json.loads(Path("r.json").read_text())["verdict"] == "pass"


@pytest.mark.parametrize(
    "option, name",
    [
        *((option, "") for option in ("--report", "--json", "--junit", "--resume")),
        ("--report", "-"),
        ("--resume", "-"),
    ],
)
def test_a_name_of_no_file_is_refused(option: str, name: str, tmp_path: Path) -> None:
    result = call(*PASSING, option, name)
    assert result.exit_code == 2 and f"'{option}': '{name}' names no file" in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["/dev/null", "file", "/dev/null/out"])
def test_a_report_that_cannot_be_a_folder_is_told_before_the_run(name: str) -> None:
    Path("file").touch()
    result = call(*PASSING, "--report", name)
    assert result.exit_code == 2 and "'--report'" in result.output, result.output
    assert "pass" not in result.output


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_has_the_json_alone(name: str, tmp_path: Path) -> None:
    result = call(*PASSING, "--json", name)
    assert result.exit_code == 0 and json.loads(result.stdout)["verdict"] == "pass"
    assert result.stderr.startswith("pass  ")
    bug = ("selftest", "overwrite-drops-shared", "--traces", 1, "--jobs", 1)
    result = call(*bug, "--json", name)
    assert json.loads(result.stdout)[0]["good"] and "1 of 1 planted bugs" in result.stderr
    assert call(*PASSING, "--junit", name).stdout.startswith("<testsuites>")
    result = call(*PASSING, "--json", name, "--junit", "-")
    assert result.exit_code == 2 and "--json and --junit are the same file" in result.output
    assert not (tmp_path / "-").exists()


def test_standard_output_that_cannot_be_written_hides_no_verdict() -> None:
    command = [sys.executable, "-m", "conformance", *map(str, PASSING), "--json", "-"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and done.stderr.startswith("pass  "), done
    assert done.stderr.endswith("not written: /dev/stdout: No space left on device\n")


@pytest.mark.parametrize("words", [("check",), ("replay", "--target", "model")])
def test_traces_of_no_name_are_refused(words: tuple[str, ...]) -> None:
    call(*PASSING, "--report", "out")
    result = call(*words, "")
    assert result.exit_code == 2 and "'' names no file" in result.output


def test_a_link_stays_a_link() -> None:
    Path("file").touch()
    Path("link").symlink_to("file")  # such as /dev/stderr, where that is redirected to a file
    assert call(*PASSING, "--json", "link").exit_code == 0
    assert Path("link").is_symlink() and json.loads(Path("file").read_text())["traces"] == 2


def test_two_outputs_are_not_one_file() -> None:
    result = call(*PASSING, "--json", "same", "--junit", Path("same").absolute())
    assert result.exit_code == 2 and "--json and --junit are the same file" in result.output
    assert not Path("same").exists()
    assert call(*PASSING, "--json", "/dev/null", "--junit", "/dev/null").exit_code == 0
