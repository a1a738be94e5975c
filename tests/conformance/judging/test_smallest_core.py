"""A failure of requests that overlap is explained by what concerns one snapshot or one block."""

import random

import pytest

from conformance.contract.trace import Trace
from conformance.judging.explain_overlap import drawn
from conformance.judging.judge import judge
from conformance.judging.oracles import model
from conformance.judging.orders import search, smallest_core
from conformance.judging.orders.steps import placed
from conformance.selftest.overlapping_histories import history

HELLO = {"name": "x", "block_size": 512, "crash_profile": "ack", "protocol": 2, "in_flight": 4}


def trace(*lines: tuple[str, dict[str, object], dict[str, object]]) -> Trace:
    """Requests one behind the other, of which the last two overlap."""
    events = [
        {"op": op, **request, "result": {"ok": True} | result}
        | {"called": 2 * at, "answered": 2 * at + 1}
        for at, (op, request, result) in enumerate(lines)
    ]
    events[-2]["answered"], events[-1]["called"] = events[-1]["called"], events[-2]["answered"]
    return Trace({**HELLO, "capabilities": ["snapshot", "delete"]}, events)


def explained(found: Trace) -> tuple[str, list[int], str]:
    verdict = judge([found], {"model": model.judge})[0]
    assert verdict.kind == "no-order" and verdict.at is not None
    about = smallest_core.core(found, verdict.at)
    assert about.smallest
    return about.about, about.needed, drawn(found, verdict).kind


MISSING = {"ok": False, "error": "no-such-snapshot"}
OTHERS: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("write", {"lba": at, "tags": [at + 1]}, {}) for at in range(8)
]


def test_a_block_explains_a_wrong_read_of_many() -> None:
    found = trace(
        ("create", {"blocks": 8}, {}),
        *OTHERS,
        ("read", {"lba": 0, "count": 8}, {"tags": [1, 2, 3, 4, 5, 0, 7, 8]}),
        ("write", {"lba": 0, "tags": [1]}, {}),
    )
    assert explained(found) == ("block 5", [6, 9], "stale")


def test_a_snapshot_explains_a_wrong_refusal() -> None:
    found = trace(
        ("create", {"blocks": 8}, {}),
        *OTHERS,
        ("snapshot", {"name": "a"}, {}),
        ("snapshot", {"name": "b"}, {}),
        ("read", {"lba": 0, "count": 8, "view": "a"}, MISSING),
        ("write", {"lba": 0, "tags": [1]}, {}),
    )
    assert explained(found) == ("snapshot a", [9, 11], "lost-snapshot")


@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
def test_what_has_an_order_has_one_for_each_snapshot_and_block(profile: str) -> None:
    parts = failing = 0
    for seed in range(60):
        choose = random.Random(seed)
        found = history(choose, 40, 2, 4, choose.choice([0, 0.2]), profile, cuts=0.05)
        events = dict(enumerate(placed(found.events)))
        right = search.judge(found).at is None
        for last in found.events[-6:]:
            for _, alone in smallest_core._parts(events, last):
                fails = smallest_core._Searches(found).fail(alone, alone)
                assert not (fails and right), (seed, found.events)
                parts, failing = parts + 1, failing + fails
    assert parts > 500 and failing > 10, (parts, failing)
