"""The plugin of pytest in the suite of a user: counts, ids, ini options, `--lf`, `-n`, seeds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.pytest_plugin import TESTS
from conformance.selftest.corpus import SCRIPT as FAULTY

UNMAP_IGNORED = ("--conformance-target", f"exec:{sys.executable} {FAULTY} unmap-ignored")
CLASSES = 7
ROOT = Path(__file__).parents[2]


def suite(folder: Path, *options: str) -> tuple[int, str]:
    """Run pytest in a folder with one test of the user; return its status, and what it printed."""
    (folder / "test_theirs.py").write_text("def test_theirs():\n    pass\n")
    # Where `CI` is set, Hypothesis keeps no database by itself.
    profile = ["--hypothesis-profile", "default"]
    words = [sys.executable, "-m", "pytest", "-rfs", *profile, *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


def test_without_the_option_nothing_is_added(tmp_path: Path) -> None:
    status, output = suite(tmp_path)
    assert status == 0 and "1 passed" in output


def test_the_tests_are_counted_when_they_are_collected(tmp_path: Path) -> None:
    status, output = suite(
        tmp_path, "--conformance-target", "model:ack", "--collect-only", "-q", "-q"
    )
    assert status == 0 and f"{TESTS}: {CLASSES}" in output and "test_theirs.py: 1" in output
    _, output = suite(tmp_path, "--conformance-target", "model:ack", "--collect-only")
    assert f"{CLASSES + 1} tests collected" in output


def test_an_honest_target_named_in_the_ini_file_on_two_workers(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nconformance_target = model:ack\nconformance_traces = 5\n"
    )
    status, output = suite(tmp_path, "-n", "2")
    assert status == 0 and f"{CLASSES} passed, 1 skipped" in output, output
    assert "does not declare device" in output


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which a target failed in the class `unmap`, and what was printed."""
    folder = tmp_path_factory.mktemp("failed")
    status, output = suite(folder, *UNMAP_IGNORED, "-k", "unmap or data")
    assert status == 1 and "1 failed, 1 passed" in output, output
    return folder, output


def test_a_failure_is_short_and_can_be_replayed(failed: tuple[Path, str]) -> None:
    folder, output = failed
    assert "resurrected at operation" in output and "def test_contract" not in output
    found = re.search(r"conformance replay (\S+) --target '(.*)'", output)
    assert found, output
    words = [sys.executable, "-m", "conformance", "replay", found[1], "--target", found[2]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "resurrected" in done.stdout
    assert len((folder / found[1]).read_text().splitlines()) <= 5


def test_an_id_can_be_pasted_back(failed: tuple[Path, str]) -> None:
    folder, output = failed
    identifier = re.search(r"FAILED (\S+\[unmap\])", output)
    assert identifier, output
    status, output = suite(folder, *UNMAP_IGNORED, identifier[1])
    assert status == 1 and "1 failed" in output and "passed" not in output
    assert "collected 1 item" in output


def test_what_failed_last_is_run_again_from_the_example_database(failed: tuple[Path, str]) -> None:
    folder, _ = failed
    assert any((folder / ".hypothesis" / "examples").iterdir())
    status, output = suite(folder, *UNMAP_IGNORED, "--lf", "--conformance-traces", "1")
    assert status == 1 and "1 failed" in output and "data" not in output.partition("FAIL")[0]


def test_a_seed_of_hypothesis_repeats_the_run(tmp_path: Path) -> None:
    words = (*UNMAP_IGNORED, "--hypothesis-seed=5", "--conformance-ops", "15", "-k", "unmap")
    outputs = [suite(tmp_path, *words)[1].partition("FAILURES")[2] for _ in range(2)]
    listings = [re.findall(r"^ .*->.*$", output, re.MULTILINE) for output in outputs]
    assert listings[0] and listings[0] == listings[1]


@pytest.mark.parametrize(
    "options, says",
    [
        (["--conformance-target", "moon"], "there is no target 'moon'"),
        (["--conformance-target", "model", "--conformance-traces", "0"], "no number of at least 1"),
        (["--conformance-target", "model", "--conformance-ops", "2001"], "2001 is more than 2000"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, options: list[str], says: str) -> None:
    status, output = suite(tmp_path, *options)
    assert status == 4 and says in output


@pytest.mark.parametrize("target", ["exec:false", "python:support.rude_targets:WithoutHello"])
def test_an_unusable_target_fails_in_one_line(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests'}")
    words = ("--conformance-target", target, "-k", "data or unmap or snapshots", "-q")
    status, output = suite(tmp_path, *words)
    assert status == 1 and "3 failed" in output, output
    assert output.count("\nthe target is unusable: ") == 3 and len(output.splitlines()) < 30, output


def test_a_suite_may_have_a_module_named_test_contract(tmp_path: Path) -> None:
    theirs = tmp_path / "tests" / "test_contract.py"
    theirs.parent.mkdir()
    theirs.write_text("def test_theirs():\n    pass\n")
    words = ("--conformance-target", "model", "--conformance-traces", "1", "-k", "data or theirs")
    status, output = suite(tmp_path, *words)
    assert status == 0 and "3 passed" in output, output
