"""The worked examples: each under 150 lines, built, and honest. Loud where its language is not installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance import targets
from conformance.campaign.random_campaign import campaign
from conformance.judging.oracles import named

EXAMPLES = Path(targets.__file__).parents[1] / "examples"
BUILT = EXAMPLES.parents[1] / "build" / "examples"
MODEL = {"model": named("model")}


def passes(name, count=25):
    result = campaign(targets.resolve(name), count=count, ops=30, seed=3, oracles=MODEL)
    assert result.verdict == "pass", [
        f.verdict.words(f.trace) for f in result.failures
    ] or result.reason
    return result


def test_they_are_short():
    for path in EXAMPLES.rglob("*"):
        if path.suffix in (".py", ".rs", ".go", ".toml", ".sh") and "target" not in path.parts:
            assert len(path.read_text().splitlines()) < 150, path


def test_python_over_the_pipe():
    assert passes(f"exec:{sys.executable} {EXAMPLES / 'dict_disk.py'}").crashes > 0


def test_a_python_class(monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    result = passes("python:list_disk:ListDisk")
    assert "snapshot" in result.skipped


@pytest.mark.skipif(
    shutil.which("cargo") is None, reason="NOT RUN: no cargo: the Rust example was not built"
)
def test_rust():
    subprocess.run(
        [
            "cargo",
            "build",
            "--quiet",
            "--release",
            "--target-dir",
            BUILT / "rust",
            "--manifest-path",
            EXAMPLES / "rust_disk" / "Cargo.toml",
        ],
        check=True,
        timeout=600,
    )
    assert passes(f"exec:{BUILT / 'rust' / 'release' / 'rust-disk'}").crashes > 0


@pytest.mark.skipif(
    shutil.which("go") is None, reason="NOT RUN: no go: the Go example was not built"
)
def test_go():
    BUILT.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["go", "build", "-C", EXAMPLES / "go_disk", "-o", BUILT / "go-disk"],
        check=True,
        timeout=600,
    )
    assert passes(f"exec:{BUILT / 'go-disk'}").crashes > 0
