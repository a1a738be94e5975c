"""Calls of functions per operation: they do not grow unnoticed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.calls import measure
from support.snapshot_calls import OPERATIONS, of_snapshots

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("what", "together", "count", "most"),
    [
        ("random writes", 1, 2000, 103),
        ("random reads", 1, 2000, 27),
        ("random writes", 32, 6400, 6),
    ],
)
def test_an_operation_makes_few_calls(what: str, together: int, count: int, most: int) -> None:
    python, _ = measure(what, together, count)
    assert python <= most


@pytest.fixture(scope="module")
def sizes() -> tuple[dict[str, int], dict[str, int]]:
    """The calls of operations on views, of a small and of a large disk."""
    return of_snapshots(2048, 0), of_snapshots(32768, 0)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_on_views_makes_hardly_more_calls_on_a_larger_disk(
    sizes: tuple[dict[str, int], dict[str, int]], operation: str
) -> None:
    small, large = (calls[operation] for calls in sizes)
    assert large < 1.1 * small  # twice to three times when they did background work themselves
    assert large <= 200


@pytest.mark.parametrize(
    "line",
    [
        "snapshot_calls",
        "snapshot_calls x",
        "write_calls",
        "write_calls 0",
        "write_calls 1",
        "calls x",
        "calls sequential",
        "serving.soak x",
    ],
)
def test_wrong_usage_of_a_program_that_counts_is_said(line: str) -> None:
    command = [sys.executable, "-P", "-m", *f"support.{line}".split()]
    path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    found = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=found)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("usage: ") and "error: " in done.stderr.splitlines()[-1]
