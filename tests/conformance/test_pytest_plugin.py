"""The plugin of pytest, in a suite of somebody else's."""

import subprocess
import sys

from conformance.selftest.corpus import SCRIPT as FAULTY


def suite(folder, *options):
    (folder / "test_theirs.py").write_text("def test_theirs():\n    pass\n")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *options, folder]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_without_the_option_nothing_is_added(tmp_path):
    status, output = suite(tmp_path)
    assert status == 0 and "1 passed" in output


def test_an_honest_target(tmp_path):
    status, output = suite(
        tmp_path, "--conformance-target", "model:ack", "--conformance-traces", "5"
    )
    assert (
        status == 0 and "7 passed, 1 skipped" in output and "does not declare device" in output
    ), output


def test_a_faulty_target_fails_where_it_is_faulty(tmp_path):
    status, output = suite(
        tmp_path,
        "--conformance-target",
        f"exec:{sys.executable} {FAULTY} unmap-ignored",
        "--conformance-traces",
        "15",
    )
    assert status == 1 and "resurrected at operation" in output and "Traceback" not in output
    failed = [
        line for line in output.splitlines() if line.startswith("_") and "conformance[" in line
    ]
    assert any(" unmap" in line for line in failed) and not any("] data" in line for line in failed)
    assert "conformance run --target" in output and "--without clean," in output


def test_no_such_target(tmp_path):
    status, output = suite(tmp_path, "--conformance-target", "moon")
    assert status == 4 and "there is no target 'moon'" in output and "Traceback" not in output
