"""Blocks that every request names whole or not at all are judged as one, and count as many."""

from dataclasses import replace
from typing import Any

import pytest

from conformance.contract.trace import Trace
from conformance.judging.orders import search
from conformance.judging.orders.extents import by_extent

OK = {"ok": True}
HELLO = {"name": "t", "version": "1", "block_size": 512, "crash_profile": "ack"}
BLOCKS = 2000


def request(op: str, called: int, answered: int, **more: Any) -> dict[str, Any]:
    return {"op": op, "called": called, "answered": answered, "result": OK, **more}


def read(called: int, lba: int, tags: list[int], **more: Any) -> dict[str, Any]:
    result = {"ok": True, "tags": tags}
    event = request("read", called, called + 1, lba=lba, count=len(tags), **more)
    return {**event, "result": result}


def write(called: int, answered: int, lba: int, tags: list[int]) -> dict[str, Any]:
    return request("write", called, answered, lba=lba, tags=tags)


def trace(*events: dict[str, Any], blocks: int = BLOCKS, **hello: Any) -> Trace:
    create = request("create", 0, 1, blocks=blocks)
    return Trace({**HELLO, **hello}, [create, *events])


def racing_halves() -> list[dict[str, Any]]:
    """Return writes of smaller and smaller parts of the disk, and two snapshots; all of them are in
    flight together."""
    events, called, lba, count = [], 2, 0, BLOCKS
    while count > 1:
        count //= 2
        events.append(write(called, 100 + called, lba, [called] * count))
        if len(events) in (2, 6):
            events.append(request("snapshot", called + 1, 200 + called, name=f"s{called}"))
        called, lba = called + 2, lba + count
    return events


def test_racing_writes_of_a_large_disk_take_few_steps() -> None:
    """One step for each configuration and block would be hundreds of thousands."""
    outcome = search.judge(trace(*racing_halves(), read(400, 0, [2] * (BLOCKS // 2))), 3000)
    assert outcome == search.Outcome()


@pytest.mark.parametrize("at", [0, BLOCKS // 2 - 1])
def test_one_wrong_block_of_an_extent_is_seen(at: int) -> None:
    tags = [2] * (BLOCKS // 2)
    tags[at] = 4
    events = [*racing_halves(), read(400, 0, tags)]
    assert search.judge(trace(*events), 3000).at == len(events)


def test_a_large_disk_becomes_few_blocks_and_its_extents_have_all() -> None:
    original = trace(*racing_halves(), read(400, 10, [2]))
    small, sizes = by_extent(original)
    assert sum(sizes) == BLOCKS and small.events[0]["blocks"] == len(sizes) < 20
    assert [event["called"] for event in small.events] == [
        event["called"] for event in original.events
    ]


def test_a_request_past_the_end_stays_one() -> None:
    last = write(2, 3, BLOCKS - 1, [1, 2])
    assert search.judge(trace(last)).at == 1
    refused = {**last, "result": {"ok": False, "error": "out-of-range"}}
    assert search.judge(trace(refused)).at is None
    inside = write(2, 3, BLOCKS - 2, [1, 2])
    assert search.judge(trace({**inside, "result": refused["result"]})).at == 1


@pytest.mark.parametrize("profile, atomic", [("block", "request"), ("ack", "block")])
def test_blocks_that_a_power_cut_or_an_order_may_mix_stay_apart(profile: str, atomic: str) -> None:
    write_of_two = write(2, 7, 0, [1, 2])
    cut = request("crash", 8, 9)
    during = read(3, 0, [1, 0])  # the first block of the write was performed, and not the second
    mixed = trace(write_of_two, during, blocks=2, crash_profile=profile, atomic=atomic)
    if profile == "block":
        mixed = replace(
            mixed, events=[mixed.events[0], write(2, 3, 0, [1, 2]), cut, read(10, 0, [1, 0])]
        )
    assert search.judge(mixed).at is None
    assert search.judge(replace(mixed, hello={**HELLO})).at is not None


def test_what_views_hold_is_counted_in_blocks() -> None:
    refused = write(8, 9, 0, [4] * 4)
    refused["result"] = {"ok": False, "error": "no-space"}
    events = [
        write(2, 3, 0, [1, 2, 3, 4]),
        request("snapshot", 4, 5, name="a"),
        write(6, 7, 0, [5, 6]),
        refused,
        read(10, 0, [5, 6, 3, 4]),
        read(12, 0, [1, 2, 3, 4], view="a"),
    ]
    assert search.judge(trace(*events, blocks=8)).held == {4: 6}
