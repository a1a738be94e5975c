"""Requests that are answered after `crash` was called took effect before the power cut."""

from typing import Any

import pytest

from conformance.judging.orders import search
from support.overlap import answered_meanwhile


@pytest.mark.parametrize("recovers", [True, False], ids=["recovers", "cut short"])
@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
def test_a_wrong_read_is_found(profile: str, recovers: bool) -> None:
    wrong = answered_meanwhile(profile, 2, recovers)
    assert search.judge(wrong).at == 2


@pytest.mark.parametrize("recovers", [True, False], ids=["recovers", "cut short"])
@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
def test_a_right_read_is_accepted(profile: str, recovers: bool) -> None:
    outcome: Any = search.judge(answered_meanwhile(profile, 1, recovers))
    assert outcome.at is None and not outcome.unsure
