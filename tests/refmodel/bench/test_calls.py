"""Calls of functions per operation: they do not grow unnoticed."""

import pytest

from support.calls import measure


@pytest.mark.parametrize(
    ("what", "together", "count", "most"),
    [
        ("random writes", 1, 2000, 104),
        ("random reads", 1, 2000, 28),
        ("random writes", 32, 6400, 6),
    ],
)
def test_an_operation_makes_few_calls(what: str, together: int, count: int, most: int) -> None:
    python, _ = measure(what, together, count)
    assert python <= most
