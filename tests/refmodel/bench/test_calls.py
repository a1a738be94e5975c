"""Calls of functions per operation: they do not grow unnoticed."""

import pytest

from support.calls import measure
from support.snapshot_calls import of_snapshots


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


def test_a_snapshot_makes_hardly_more_calls_on_a_larger_disk() -> None:
    small, large = of_snapshots(2048, 0), of_snapshots(32768, 0)
    assert large["snapshot"] < 1.1 * small["snapshot"]
