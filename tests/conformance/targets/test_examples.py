"""The worked examples: each under 150 lines, built, and honest. Loud where its language is not installed."""

import sys

from support.examples import EXAMPLES, passes


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
