"""Blocks are judged apart, and nothing is lost or added by it: cases that small random histories
seldom have.
"""

from typing import Any

import pytest

from conformance.contract.trace import Trace
from conformance.judging.orders import search
from support.overlap import admitted

OK = {"ok": True}


def write(called: int, answered: int | None, lba: int, *tags: int, **more: Any) -> Any:
    event = {"op": "write", "lba": lba, "tags": list(tags), "called": called, **more}
    return {**event, "answered": answered, "result": None if answered is None else OK}


def read(called: int, lba: int, *tags: int) -> Any:
    result = {"ok": True, "tags": list(tags)}
    event = {"op": "read", "lba": lba, "count": len(tags), "result": result}
    return {**event, "called": called, "answered": called + 1}


def request(op: str, called: int, answered: int, **more: Any) -> Any:
    return {"op": op, "called": called, "answered": answered, "result": OK, **more}


CASES = [  # (profile, events after create, whether there is an order)
    # The last of two writes of two blocks wrote both: what blocks hold is tied by the order.
    *(
        (
            "ack",
            [
                write(2, 3, 0, 1, 4),
                write(4, 7, 0, 1, 3),
                write(5, 6, 0, 2, 4),
                read(8, 0, first),
                read(10, 1, second),
            ],
            allowed,
        )
        for first, second, allowed in [(1, 3, True), (2, 4, True), (1, 4, False)]
    ),
    # A snapshot that came and went made the write durable, or did not.
    *(
        (
            "block",
            [
                write(2, 11, 0, 1),
                request("snapshot", 3, 6, name="a"),
                request("delete", 7, 10, name="a"),
                request("crash", 12, 13),
                read(14, 0, tag),
            ],
            allowed,
        )
        for tag, allowed in [(0, True), (1, True), (2, False)]
    ),
    # A flush covers what was answered before it, and nothing else.
    (
        "prefix",
        [write(2, 3, 0, 1), request("flush", 4, 5), request("crash", 6, 7), read(8, 0, 0)],
        0,
    ),
    (
        "prefix",
        [
            write(2, 7, 0, 1),
            write(3, 4, 1, 2),
            request("flush", 5, 6),
            request("crash", 8, 9),
            read(10, 0, 0, 2),
        ],
        True,
    ),
    # What a power cut leaves is the disk of one moment.
    *(
        (
            "prefix",
            [
                write(2, 3, 0, 1),
                write(4, 5, 1, 2),
                write(6, 7, 0, 3),
                request("crash", 8, 9),
                read(10, 0, *tags),
            ],
            allowed,
        )
        for tags, allowed in [((1, 2), True), ((1, 0), True), ((0, 2), False), ((3, 0), False)]
    ),
    # It may come after a write that is never answered, and before one that is.
    (
        "prefix",
        [write(2, None, 0, 1), write(3, 4, 1, 2), request("crash", 5, 6), read(7, 0, 1, 0)],
        True,
    ),
    # A write with fua that is not answered may be durable or not, though a read has shown it.
    *(
        (
            "prefix",
            [
                write(2, None, 0, 1, fua=True),
                read(3, 0, 1),
                request("crash", 5, 6),
                read(7, 0, tag),
            ],
            True,
        )
        for tag in (0, 1)
    ),
    # If it is answered, it is durable, and what was answered before it need not be.
    *(
        (
            "prefix",
            [
                write(2, 3, 1, 2),
                write(4, 5, 0, 1, fua=True),
                request("crash", 6, 7),
                read(8, 0, *tags),
            ],
            allowed,
        )
        for tags, allowed in [((1, 2), True), ((1, 0), True), ((0, 2), False), ((0, 0), False)]
    ),
]


@pytest.mark.parametrize("atomic", ["request", "block"])
@pytest.mark.parametrize("profile, events, allowed", CASES)
def test_blocks_apart(profile: str, events: list[Any], allowed: bool, atomic: str) -> None:
    create = {"op": "create", "blocks": 2, "called": 0, "answered": 1, "result": OK}
    capabilities = ["flush", "snapshot", "delete", "crash", "fua"]
    hello = {"crash_profile": profile, "atomic": atomic, "capabilities": capabilities}
    trace = Trace({"name": "t", "version": "1", "block_size": 512, **hello}, [create, *events])
    outcome = search.judge(trace)
    assert not outcome.unsure and (outcome.at is None) == admitted(trace)
    if atomic == "request":
        assert admitted(trace) == bool(allowed)
