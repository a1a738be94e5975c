"""Promises beyond the contract are judged where requests overlap, too: scrub, and space."""

from typing import Any

from conformance.contract.trace import Event, Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.judging.verdict import Verdict

OK = {"ok": True}
NO_SPACE = {"ok": False, "error": "no-space"}
HELLO = {
    "block_size": 512,
    "crash_profile": "ack",
    "capabilities": ["snapshot", "delete", "crash", "device", "scrub"],
    "devices": 3,
    "tolerates": 1,
    "holds": 4,
}


def event(called: int, answered: int | None, op: str, result: Any = OK, **more: Any) -> Event:
    result = None if answered is None else result
    return {"op": op, **more, "result": result, "called": called, "answered": answered}


def verdict(*events: Event) -> Verdict:
    """Of a trace in which two writes overlap first."""
    before = [
        event(0, 1, "create", blocks=8),
        event(2, 5, "write", lba=0, tags=[1]),
        event(3, 4, "write", lba=1, tags=[2]),
    ]
    trace = Trace(HELLO, [*before, *events])
    assert trace.overlapping
    return judge([trace], {"model": named("model")})[0]


def test_a_problem_that_scrub_reports_is_a_failure_while_every_device_is_sound() -> None:
    scrub = {"ok": True, "problems": ["a leak"]}
    found = verdict(event(6, 7, "scrub", scrub))
    assert (found.kind, found.at, found.actual) == ("scrub", 3, "a leak")
    assert verdict(event(6, 7, "scrub", {"ok": True, "problems": []})).verdict == "pass"
    fail = event(6, 7, "fail", device=1, mode="absent")
    assert verdict(fail, event(8, 9, "scrub", scrub)).verdict == "pass"
    back = event(8, 9, "replace", device=1), event(10, 11, "settle")
    assert verdict(fail, *back, event(12, 13, "scrub", scrub)).kind == "scrub"


def test_while_devices_go_wrong_nothing_may_be_beyond_repair() -> None:
    """In `settle` as in `scrub`; but something may be once more devices go wrong than are
    tolerated, or while one is away.
    """
    lost = {"ok": True, "problems": ["page 3 is lost"]}
    hello = {**HELLO, "faults": ["bit-flip"]}

    def at(*events: Event) -> int | None:
        create, settle = {"op": "create", "blocks": 8}, {"op": "settle", "result": lost}
        trace = Trace(hello, [{"result": OK, **event} for event in (create, *events, settle)])
        return judge([trace], {"model": named("model")})[0].at

    def wrong(device: int) -> Event:
        return {"op": "fail", "device": device, "mode": "degraded", "fault": "bit-flip"}

    away = {"op": "fail", "device": 1, "mode": "absent"}
    back, new = {"op": "return", "device": 1}, {"op": "replace", "device": 1}
    assert at(wrong(1)) == 2 and at(wrong(1), back) == 3
    assert at(wrong(1), back, away) is None
    assert at(away, wrong(1)) is None
    assert at({**wrong(1), "result": {"ok": False, "error": "bad-request"}}) is None
    assert at(wrong(1), new) is None
    assert at(wrong(1), wrong(2)) is None


def test_a_power_cut_that_ends_what_is_in_flight_leaves_the_devices_as_they_are() -> None:
    cut = event(8, None, "write", lba=2, tags=[3]), event(9, 10, "crash")
    scrub = event(11, 12, "scrub", {"ok": True, "problems": ["a leak"]})
    assert verdict(*cut, scrub).kind == "scrub"
    assert verdict(event(6, 7, "fail", device=1, mode="absent"), *cut, scrub).verdict == "pass"


def test_space_is_refused_wrongly_only_if_it_is_there_with_all_that_is_in_flight() -> None:
    refused = event(6, 7, "write", NO_SPACE, lba=2, tags=[3, 4])
    found = verdict(refused)
    assert (found.kind, found.at) == ("false-no-space", 3) and "4 blocks at most" in found.expected
    assert verdict(event(6, 7, "write", NO_SPACE, lba=2, tags=[3, 4, 5])).verdict == "pass"
    with_another = event(6, 9, "write", lba=5, tags=[9]), {**refused, "called": 7, "answered": 8}
    assert verdict(*with_another).verdict == "pass"


def test_a_snapshot_keeps_what_was_overwritten_also_where_no_read_tells_the_tags_apart() -> None:
    kept = (
        event(6, 7, "snapshot", name="s"),
        event(8, 11, "write", lba=0, tags=[3]),
        event(9, 10, "write", lba=1, tags=[4]),
    )
    refused = event(12, 13, "write", NO_SPACE, lba=2, tags=[5])
    assert verdict(*kept, refused).verdict == "pass"
    assert (
        verdict(
            *kept, event(12, 13, "delete", name="s"), {**refused, "called": 14, "answered": 15}
        ).verdict
        == "fail"
    )
