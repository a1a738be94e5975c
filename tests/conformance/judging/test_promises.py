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


def verdict(*events: Event, **promised: int) -> Verdict:
    """Judge a trace in which two writes overlap first; `hello` has what is promised."""
    before = [
        event(0, 1, "create", blocks=8),
        event(2, 5, "write", lba=0, tags=[1]),
        event(3, 4, "write", lba=1, tags=[2]),
    ]
    trace = Trace({**HELLO, **promised}, [*before, *events])
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


def test_a_scrub_may_find_what_a_device_has_wrong_until_the_disk_has_settled() -> None:
    wrong = event(6, 7, "fail", device=1, mode="degraded", fault="bit-flip")
    scrub = {"ok": True, "problems": ["3 sectors are wrong, and repaired"]}
    back = event(8, 9, "return", device=1)
    assert verdict(wrong, event(8, 9, "scrub", scrub)).verdict == "pass"
    assert verdict(wrong, back, event(10, 11, "scrub", scrub)).verdict == "pass"
    settled = back, event(10, 11, "settle")
    assert verdict(wrong, *settled, event(12, 13, "scrub", scrub)).kind == "scrub"


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


def in_turn(*events: Event, options: dict[str, Any] | None = None, **promised: int) -> Verdict:
    """Judge a trace of one request at a time, on a target that promises this in `hello`."""
    create = {"op": "create", "blocks": 8, "result": OK}
    trace = Trace({**HELLO, "tolerates": 2, **promised}, [create, *events], options=options or {})
    return judge([trace], {"model": named("model")})[0]


def sent(op: str, result: Any = OK, **more: Any) -> Event:
    return {"op": op, **more, "result": result}


def test_a_snapshot_may_be_refused_only_once_there_are_as_many_as_the_target_promises() -> None:
    snapshots = [sent("snapshot", name="a"), sent("snapshot", NO_SPACE, name="b")]
    assert in_turn(*snapshots).kind == "false-no-space"
    assert in_turn(*snapshots, snapshots=1).verdict == "pass"
    assert in_turn(*snapshots, snapshots=2).kind == "false-no-space"
    write = sent("write", NO_SPACE, lba=0, tags=[1])
    found = in_turn(sent("snapshot", name="a"), write, snapshots=1)
    assert (found.kind, found.actual) == ("false-no-space", "no-space")
    told = {**write, "result": {**NO_SPACE, "message": "ENOSPC"}}
    assert in_turn(told).actual == "no-space (ENOSPC)"


def test_a_block_that_was_unmapped_needs_no_space_unless_a_snapshot_holds_it() -> None:
    full = sent("write", lba=0, tags=[1, 2])
    unmapped, refused = sent("unmap", lba=0, count=2), sent("write", NO_SPACE, lba=2, tags=[3])
    assert in_turn(full, unmapped, refused, holds=2).kind == "false-no-space"
    assert in_turn(full, sent("snapshot", name="a"), unmapped, refused, holds=2).verdict == "pass"
    zeroes = sent("write", lba=0, tags=[0, 0])
    assert in_turn(zeroes, refused, holds=2).verdict == "pass"


def test_zeroes_that_were_written_take_space_also_after_a_power_cut() -> None:
    zeroes, crash = sent("write", lba=0, tags=[0, 0]), sent("crash")
    refused = sent("write", NO_SPACE, lba=0, tags=[1])
    create = sent("create", blocks=8)
    for profile in ("ack", "prefix", "block"):
        hello = {**HELLO, "crash_profile": profile, "holds": 2}
        kept = Trace(hello, [create, zeroes, crash, refused])
        assert judge([kept], {"model": named("model")})[0].verdict == "pass"
        never = Trace(hello, [create, crash, refused])
        assert judge([never], {"model": named("model")})[0].kind == "false-no-space"


def test_snapshots_are_counted_also_where_requests_overlap() -> None:
    first = event(6, 9, "snapshot", name="a")
    refused = event(7, 8, "snapshot", NO_SPACE, name="b")
    assert verdict(first, refused).kind == "false-no-space"
    assert verdict(first, refused, snapshots=1).verdict == "pass"
    assert verdict(first, refused, snapshots=2).kind == "false-no-space"


UNKNOWN = {"ok": False, "error": "unknown-outcome"}


def test_a_write_of_unknown_outcome_may_still_need_its_space_until_the_power_fails() -> None:
    later = event(6, 7, "write", UNKNOWN, lba=2, tags=[3])
    refused = event(10, 11, "write", NO_SPACE, lba=3, tags=[4])
    assert verdict(later, refused, holds=3).verdict == "pass"
    assert verdict(later, refused, holds=4).kind == "false-no-space"
    crash = event(8, 9, "crash")
    shown = event(12, 13, "read", {"ok": True, "tags": [0]}, lba=2, count=1)
    assert verdict(later, crash, refused, shown, holds=4).kind == "false-no-space"
    cut = event(6, None, "write", lba=2, tags=[3])
    assert verdict(cut, crash, refused, shown, holds=4).kind == "false-no-space"


def test_a_false_want_of_space_comes_before_a_later_answer_without_an_order() -> None:
    refused = event(6, 7, "write", NO_SPACE, lba=2, tags=[3])
    stale = event(8, 9, "read", {"ok": True, "tags": [9]}, lba=0, count=1)
    found = verdict(refused, stale)
    assert (found.kind, found.at) == ("false-no-space", 3)
    found = verdict(refused, stale, holds=2)
    assert found.at == 4
    found = verdict({**stale, "called": 6, "answered": 7}, {**refused, "called": 8, "answered": 9})
    assert found.at == 3


REFUSED = {"ok": False, "error": "bad-request"}


def of_devices(*events: Event) -> tuple[str, int | None]:
    found = in_turn(*events)
    return found.kind, found.at


def test_a_device_does_what_it_is_told_unless_that_has_a_fault() -> None:
    gone = sent("fail", device=1, mode="absent")
    assert of_devices(sent("fail", REFUSED, device=1, mode="absent")) == ("wrong-refusal", 1)
    assert of_devices(gone, sent("return", REFUSED, device=1)) == ("wrong-refusal", 2)
    assert of_devices(gone, sent("replace", REFUSED, device=1)) == ("wrong-refusal", 2)
    back = gone, sent("return", device=1)
    again = sent("fail", REFUSED, device=1, mode="degraded")
    assert of_devices(gone, sent("crash"), sent("return", REFUSED, device=1)) == (
        "wrong-refusal",
        3,
    )
    assert of_devices(*back, again) == ("wrong-refusal", 3)
    assert of_devices(*back, sent("settle"), again) == ("wrong-refusal", 4)


def test_nothing_else_is_said_of_what_devices_are_told() -> None:
    gone = sent("fail", device=1, mode="degraded")
    refused = sent("return", REFUSED, device=1)
    assert of_devices(refused, gone, refused, sent("return", device=2)) == ("", None)
    assert of_devices(gone, sent("fail", REFUSED, device=1, mode="absent")) == ("", None)
    absent = sent("fail", device=1, mode="absent")
    for later in sent("tick", seconds=1), sent("settle"):  # a spare may have taken its place
        assert of_devices(absent, later, refused) == ("", None)
        assert of_devices(absent, later, sent("replace", REFUSED, device=1)) == ("", None)
        again = sent("fail", REFUSED, device=1, mode="absent")
        assert of_devices(absent, later, sent("return", device=1), sent("settle"), again) == (
            "",
            None,
        )
    assert of_devices(gone, sent("replace", REFUSED, device=1)) == ("", None)
    lacks = sent("fail", {"ok": False, "error": "unsupported"}, device=1, mode="degraded")
    assert of_devices(lacks, refused) == ("", None)
    unknown = {"ok": False, "error": "unknown-outcome"}
    assert of_devices(sent("fail", unknown, device=1, mode="absent"), refused) == ("", None)
    many = [sent("fail", device=device, mode="absent") for device in (0, 1)]
    assert of_devices(*many, sent("fail", REFUSED, device=2, mode="absent")) == ("", None)
    cut = sent("fail", None, device=1, mode="absent"), sent("crash")
    assert of_devices(*cut, sent("fail", REFUSED, device=1, mode="absent")) == ("", None)


def test_a_disk_that_cannot_be_is_refused_as_that() -> None:
    for answer, verdict in ((REFUSED, "pass"), (OK, "fail"), (NO_SPACE, "fail")):
        trace = Trace(HELLO, [sent("create", answer, blocks=8)], options={"impossible": "log"})
        other = Trace(HELLO, [sent("create", blocks=8)])
        found = judge([other, trace, other], {"model": named("model")})
        assert [one.verdict for one in found] == ["pass", verdict, "pass"]
        assert found[1].kind == ("missing-refusal" if verdict == "fail" else "")


LOST = {"ok": False, "error": "data-lost"}


def refused_read(*events: Event) -> int | None:
    """Return where the promise of one spare of four devices is broken, if reads come at the end."""
    hello = {**HELLO, "devices": 4, "spares": 1, "repair_seconds": 60}
    read = {"op": "read", "lba": 0, "count": 1, "result": LOST}
    create = {"op": "create", "blocks": 8}
    trace = Trace(hello, [{"result": OK, **event} for event in (create, *events, read)])
    return judge([trace], {"model": named("model")})[0].at


def fail(device: int, mode: str = "degraded") -> Event:
    return {"op": "fail", "device": device, "mode": mode}


def test_a_spare_stands_in_for_a_device_that_failed_once_the_disk_has_settled() -> None:
    settle = {"op": "settle"}
    assert refused_read(fail(0), settle, fail(1)) == 4
    assert refused_read(fail(0), fail(1)) is None, "it has not settled"
    assert refused_read(fail(0), settle, fail(1), fail(2)) is None, "one spare, three failed"
    waits = fail(0, "absent"), {"op": "tick", "seconds": 59}, settle, fail(1)
    assert refused_read(*waits) is None, "it may come back"
    over = fail(0, "absent"), {"op": "tick", "seconds": 60}, settle, fail(1)
    assert refused_read(*over) == 5
    cut = {**settle, "result": None}, {"op": "crash"}
    assert refused_read(fail(0), *cut, fail(1)) is None, "it may not have settled"
    assert refused_read({**fail(0), "fault": "bit-flip"}, settle, fail(1)) is None


def test_spares_count_again_when_all_devices_have_caught_up() -> None:
    settle = {"op": "settle"}
    back = fail(0, "absent"), {"op": "return", "device": 0}
    assert refused_read(*back, fail(1)) is None
    assert refused_read(*back, settle, fail(1), settle, fail(2)) == 7
    gone = fail(0), fail(1), {"op": "replace", "device": 0}, {"op": "replace", "device": 1}
    assert refused_read(*gone, settle, fail(1), settle, fail(2)) is None, "some data was lost"


def test_a_spare_that_was_away_itself_counts_once_it_has_caught_up() -> None:
    settle, returned = {"op": "settle"}, {"op": "return", "device": 3}
    both = fail(0), fail(3, "absent"), returned
    assert refused_read(*both, settle, fail(1)) is None, "both were away, and one is tolerated"
    spare = fail(3, "absent"), returned, settle
    assert refused_read(*spare, fail(0), settle, fail(1)) == 7
    again = fail(0), settle, fail(3, "absent"), returned
    assert refused_read(*again, settle, fail(1)) == 7
    assert refused_read(*again, fail(1)) is None, "it has not caught up"
    refused = {**returned, "result": REFUSED}
    assert refused_read(*again[:3], refused, settle, fail(1)) is None, "it did not come back"
    twice = fail(0, "absent"), {"op": "return", "device": 0}, fail(0), settle, fail(1)
    assert refused_read(*twice) == 6
    swapped = fail(0), settle, {"op": "replace", "device": 0}, settle
    assert refused_read(*swapped, fail(1)) == 6
    assert refused_read(*swapped, fail(1), settle, fail(2)) == 8
    unasked = {"op": "replace", "device": 1}
    assert refused_read(unasked, fail(2)) is None
    assert refused_read(unasked, settle, fail(2)) == 4


def test_what_cannot_have_a_fault_is_not_refused_with_the_code_of_one() -> None:
    def refused(op: str, code: str, **more: Any) -> tuple[str, int | None]:
        return of_devices(sent(op, {"ok": False, "error": code}, **more))

    for op in ("settle", "clean", "checkpoint", "scrub"):
        assert refused(op, "bad-request") == ("wrong-refusal", 1)
        assert refused(op, "no-such-snapshot") == ("wrong-refusal", 1)
        assert refused(op, "no-space") == refused(op, "data-lost") == ("", None)
        assert refused(op, "unsupported") == refused(op, "unknown-outcome") == ("", None)
    assert refused("return", "out-of-range", device=1) == ("wrong-refusal", 1)
    assert refused("return", "bad-request", device=1) == ("", None)
    one, two, three = (sent("fail", device=device, mode="degraded") for device in range(3))
    assert of_devices(one, two, sent("settle", REFUSED)) == ("wrong-refusal", 3)
    assert of_devices(one, two, three, sent("settle", REFUSED)) == ("", None), "beyond tolerance"
    assert of_devices({**one, "fault": "bit-flip"}, sent("settle", REFUSED)) == ("", None)
    new = [sent("replace", device=device) for device in range(3)]
    assert of_devices(*new[:2], sent("settle", REFUSED)) == ("wrong-refusal", 3)
    assert of_devices(*new, sent("settle", REFUSED)) == ("", None), "as if they had failed"
    all_tolerated = Trace(
        {**HELLO, "devices": 1},
        [sent("create", blocks=8), {**one, "fault": "bit-flip"}, sent("settle", REFUSED)],
    )
    assert judge([all_tolerated], {"model": named("model")})[0].verdict == "pass"
