"""What a report says of requests that overlap, and have no order."""

import pytest

from conformance.contract.trace import Event, Trace, line
from conformance.judging.explain import CLAUSES, Verdict
from conformance.judging.explain_overlap import drawn
from conformance.judging.judge import judge
from conformance.judging.oracles import named

OK = {"ok": True}
HELLO = {
    "block_size": 512,
    "crash_profile": "prefix",
    "capabilities": ["flush", "snapshot", "revert", "crash"],
}


def write(lba: int, *tags: int) -> Event:
    return {"op": "write", "lba": lba, "tags": list(tags), "result": OK}


def read(lba: int, *tags: int) -> Event:
    found = {"ok": True, "tags": list(tags)}
    return {"op": "read", "lba": lba, "count": len(tags), "result": found}


def at(event: Event, called: int, answered: int | None) -> Event:
    cut = {} if answered else {"result": None}
    return {**event, **cut, "called": called, "answered": answered}


# A flush that is not durable, while writes of another block are in flight together.
FLUSHED = [
    at({"op": "create", "blocks": 8, "result": OK}, 0, 1),
    at(write(5, 9), 2, 4),
    at(write(3, 7, 8), 3, 5),
    at(write(5, 6), 6, 8),
    at({"op": "flush", "result": OK}, 7, 9),
    at({"op": "crash", "result": OK}, 10, 11),
    at(read(2, 0, 7, 0), 12, 13),
]


REFUSED: Event = {
    "op": "revert",
    "name": "s",
    "result": {"ok": False, "error": "no-such-snapshot"},
}


@pytest.mark.parametrize("beside", [write(5, 9), REFUSED])
@pytest.mark.parametrize("atomic", ["request", "block"])
def test_what_fails_in_turn_is_explained_as_if_nothing_overlapped(
    beside: Event, atomic: str
) -> None:
    """Also beside a write of another block, or a change that was refused; also if the flush is
    answered after the crash was called: it was answered before the power failed."""
    events = [FLUSHED[0], at(beside, 2, 4), *FLUSHED[2:]]
    events[4] = {**events[4], "answered": 10}
    events[5] = {**events[5], "called": 9}
    trace = Trace({**HELLO, "atomic": atomic}, events)
    verdict = judge([trace], {"model": named("model")})[0]
    assert (verdict.at, verdict.kind) == (6, "no-order")
    explained = drawn(trace, verdict)
    assert (explained.at, explained.kind) == (6, "lost-acknowledgement")
    assert explained.clause == CLAUSES["prefix"]
    assert explained.expected == "block 4 of the live disk: tag 8 (written by operation 2)"
    assert explained.actual == "block 4 of the live disk: zeroes"


@pytest.mark.parametrize("durable", ["fua", "flush"])
def test_changes_explain_more_than_reads_of_what_they_changed(durable: str) -> None:
    """A read in flight with the first write does not hide that all changes came in turn."""
    last = {**write(4, 8), "fua": True} if durable == "fua" else write(4, 8)
    flush = [] if durable == "fua" else [at({"op": "flush", "result": OK}, 8, 9)]
    events = [
        at({"op": "create", "blocks": 8, "result": OK}, 0, 1),
        at(write(4, 7), 2, 5),
        at(read(4, 7), 3, 4),
        at(last, 6, 7),
        *flush,
        at({"op": "crash", "result": OK}, 10, 11),
        at(read(4, 7), 12, 13),
    ]
    trace = Trace({**HELLO, "capabilities": ["fua", "flush", "crash"]}, events)
    explained = drawn(trace, judge([trace], {"model": named("model")})[0])
    assert (explained.at, explained.kind) == (len(events) - 1, "lost-acknowledgement")
    assert explained.clause == CLAUSES["fua" if durable == "fua" else "prefix"]
    assert explained.source == "operation 1: write 4: 7 -> ok"


@pytest.mark.parametrize("other", [at(write(4, 5), 4, None), at(write(4, 5), 3, 12)])
def test_what_overlaps_is_drawn_with_the_power_cuts_in_between(other: Event) -> None:
    """A read that begins before the write ends, and another one that sees it no more."""
    events = [
        at({"op": "create", "blocks": 8, "result": OK}, 0, 1),
        at(write(4, 7), 2, 8),
        other,
        at(read(4, 7), 5, 6),
        at({"op": "flush", "result": OK}, 9, 10),
        at({"op": "crash", "result": OK}, 13, 14),
        at(read(4, 0), 15, 16),
    ]
    trace = Trace(HELLO, events)
    verdict = judge([trace], {"model": named("model")})[0]
    assert (verdict.at, verdict.kind) == (6, "no-order")
    explained = drawn(trace, verdict)
    assert explained.kind == "no-order"
    assert "5  crash -> ok" in explained.reason
    assert "of which none can be left out" in explained.actual


def test_a_write_is_drawn_whose_data_a_needed_read_shows() -> None:
    """Half of it. It may have happened or not, so its answer is not needed; it is the culprit."""
    events = [
        at({"op": "create", "blocks": 8, "result": OK}, 0, 1),
        at(write(4, 9), 2, 3),
        at(write(7, 5), 4, 5),
        at(write(6, 8, 7), 6, 8),
        at(read(6, 8, 5), 7, 9),
    ]
    trace = Trace(HELLO, events)
    verdict = drawn(trace, judge([trace], {"model": named("model")})[0])
    assert (verdict.at, verdict.kind) == (4, "no-order")
    assert verdict.actual == "none exists for 2 requests, of which none can be left out"
    rows = verdict.reason.splitlines()
    assert [row.split("|")[-1].split()[0] for row in rows] == ["2", "3", "4"]
    assert rows[1].endswith("3  write 6: 8 7 -> ok (whether it happened or not)")


def test_a_write_of_other_blocks_than_the_wrong_one_is_not_drawn() -> None:
    """Block 4 is wrong; a read that shows this also shows block 5."""
    events = [
        at({"op": "create", "blocks": 8, "result": OK}, 0, 1),
        at(write(5, 9), 2, 3),
        at(write(4, 7), 4, 8),
        at(read(4, 7), 5, 6),
        at(read(4, 0, 9), 7, 9),
    ]
    trace = Trace(HELLO, events)
    verdict = drawn(trace, judge([trace], {"model": named("model")})[0])
    assert "that concern block 4" in verdict.actual
    rows = [row.split("|")[-1].split()[0] for row in verdict.reason.splitlines()]
    assert rows == ["2", "3", "4"]


def test_a_power_cut_that_did_not_come_is_told_from_one_that_did() -> None:
    event = {**write(0, 7), "cut": {"after": 4, "seed": 1}}
    assert line(event) == "write 0: 7 (answered before device write 4: no power cut) -> ok"
    assert (
        line({**event, "result": None}) == "write 0: 7 (power cut at device write 4) -> cut short"
    )
    asked = {key: value for key, value in event.items() if key != "result"}
    assert line(asked) == "write 0: 7 (power cut at device write 4)"


def test_a_request_that_waits_says_so() -> None:
    """It may fail only because others pass it."""
    event: Event = {"op": "read", "lba": 0, "count": 2, "wait": 3, "result": None}
    assert line(event) == "read 0+2 (waits until 3 later requests were answered) -> cut short"


OUTSIDE = {"ok": False, "error": "out-of-range"}
LOST = {"ok": False, "error": "data-lost", "message": "two copies differ"}


@pytest.mark.parametrize(
    ("wrong", "kind", "expected"),
    [
        ({"op": "read", "lba": 0, "count": 2, "view": "s", "result": LOST}, "lost-data", "ok"),
        ({"op": "read", "lba": 0, "count": 2, "result": OUTSIDE}, "wrong-refusal", "ok"),
        (write(7, 1, 2), "missing-refusal", "a refusal with out-of-range"),
        (
            {"op": "delete", "name": "no word", "result": OK},
            "missing-refusal",
            "a refusal with bad-request or no-such-snapshot",
        ),
    ],
)
def test_what_is_wrong_whatever_else_happened_is_no_question_of_order(
    wrong: Event, kind: str, expected: str
) -> None:
    verdict = _beside_another(HELLO, [], wrong)
    assert (verdict.kind, verdict.expected) == (kind, expected)
    actual = {"lost-data": "data-lost (two copies differ)", "wrong-refusal": "out-of-range"}
    assert verdict.actual == actual.get(kind, "ok")


def test_what_depends_on_others_is_a_question_of_order() -> None:
    assert (
        _beside_another(HELLO, [], {"op": "delete", "name": "t", "result": OK}).kind == "no-order"
    )
    fails: list[Event] = [
        {"op": "fail", "device": device, "mode": "absent", "result": OK} for device in (0, 1)
    ]
    hello = {**HELLO, "devices": 3, "tolerates": 1}
    lost: Event = {"op": "read", "lba": 0, "count": 2, "result": LOST}
    assert _beside_another(hello, fails[:1], lost).kind == "lost-data"
    assert _beside_another(hello, fails, lost).verdict == "pass"


def _beside_another(hello: Event, before: list[Event], wrong: Event) -> Verdict:
    """Return the verdict on a request that is in flight with a write of another block."""
    events = [{"op": "create", "blocks": 8, "result": OK}, *before]
    events = [at(event, 2 * index, 2 * index + 1) for index, event in enumerate(events)]
    snapshot: Event = {"op": "snapshot", "name": "s", "result": OK}
    events += [at(snapshot, 10, 11), at(write(4, 7), 12, 14), at(wrong, 13, 15)]
    verdict = judge([Trace(hello, events)], {"model": named("model")})[0]
    assert verdict.at in (None, len(events) - 1)
    return verdict


def test_a_block_that_nobody_wrote_is_named() -> None:
    """It is wrong in every order: whether other requests overlap says nothing about it."""
    found = {"lba": 4, "kind": "torn", "detail": "sector 1 is of tag 8"}
    torn = read(3, 7, -1)
    torn["result"]["found"] = [found]
    events = [
        at({"op": "create", "blocks": 8, "result": OK}, 0, 1),
        at(write(3, 7, 8), 2, 4),
        at(write(3, 9, 10), 3, 5),
        at(torn, 6, 7),
    ]
    trace = Trace(HELLO, events)
    verdict = drawn(trace, judge([trace], {"model": named("model")})[0])
    assert (verdict.at, verdict.kind, verdict.clause) == (3, "torn", CLAUSES["read"])
    assert verdict.expected == "block 4 of the live disk: a block that the kit wrote, or zeroes"
    assert verdict.actual == "block 4 of the live disk: sector 1 is of tag 8"


def test_a_recovery_that_was_cut_short_does_not_hide_what_came_in_turn() -> None:
    crash: Event = {"op": "crash", "result": OK}
    events = [
        at({"op": "create", "blocks": 8, "result": OK}, 0, 1),
        at(write(4, 7), 2, 4),
        at({"op": "read", "lba": 5, "count": 1, "result": {"ok": True, "tags": [0]}}, 3, 5),
        at({"op": "flush", "result": OK}, 6, 7),
        at({**crash, "cut": {"after": 1, "seed": 0}}, 8, None),
        at(crash, 9, 10),
        at(read(4, 0), 11, 12),
    ]
    trace = Trace(HELLO, events)
    verdict = drawn(trace, judge([trace], {"model": named("model")})[0])
    assert (verdict.at, verdict.kind) == (6, "lost-acknowledgement")
    assert verdict.actual == "block 4 of the live disk: zeroes"
