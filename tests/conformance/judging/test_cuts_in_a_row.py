"""Power cuts that follow on each other, with a change in flight of which nobody knows the end."""

from typing import Any

import pytest

from conformance.contract.trace import Event, Trace
from conformance.judging.orders import search

CREATE = {"op": "create", "blocks": 4, "result": {"ok": True}}
WRITE = {"op": "write", "lba": 0, "tags": [1, 2, 3, 4], "result": {"ok": True}}
UNMAP = {
    "op": "unmap",
    "lba": 1,
    "count": 1,
    "result": {"ok": False, "error": "unknown-outcome", "message": ""},
}
CUT = {"cut": {"after": 1, "seed": 1}, "result": None}
CRASH = {"op": "crash", "result": {"ok": True}}


@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
@pytest.mark.parametrize("alone", ["restart", "settle"])
@pytest.mark.parametrize(("second", "at"), [(2, None), (0, None), (9, 6)])
def test_a_change_may_happen_before_a_request_that_is_sent_alone_and_cut_short(
    second: int, at: int | None, alone: str, profile: str
) -> None:
    hello: dict[str, Any] = {
        "crash_profile": profile,
        "capabilities": ["unmap", "restart", "device", "crash"],
    }
    tags = [1, second, 3, 4]
    read = {"op": "read", "lba": 0, "count": 4, "result": {"ok": True, "tags": tags}}
    flush = {"op": "flush", "result": {"ok": True}}
    cut: dict[str, Any] = {"op": alone, **CUT}
    events: list[Event] = [CREATE, WRITE, flush, UNMAP, cut, CRASH, read]
    assert search.judge(Trace(hello, [dict(event) for event in events])).at == at


@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
@pytest.mark.parametrize(("tags", "at"), [([1, 2, 3, 4], None), ([9] * 4, 6)])
def test_what_the_first_cut_left_is_all_that_the_second_finds(
    tags: list[int], at: int | None, profile: str
) -> None:
    hello: dict[str, Any] = {
        "crash_profile": profile,
        "capabilities": ["unmap", "restart", "crash"],
    }
    read = {"op": "read", "lba": 0, "count": 4, "result": {"ok": True, "tags": tags}}
    restart: dict[str, Any] = {"op": "restart", **CUT}
    events = [CREATE, WRITE, UNMAP, restart, {"op": "crash", **CUT}, CRASH, read]
    assert search.judge(Trace(hello, [*map(dict, events)])).at == at
