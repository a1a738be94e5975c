"""An outage ends: once all devices that were absent are back, `settle` is not refused."""

from typing import Any

from conformance.contract.trace import Event, Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.judging.outages import unended

HELLO = {
    "block_size": 512,
    "crash_profile": "ack",
    "capabilities": ["crash", "device"],
    "devices": 3,
    "tolerates": 1,
    "outages_end": True,
}
OK = {"ok": True}
LOST = {"ok": False, "error": "data-lost", "message": "devices 0, 1 are gone"}
SETTLE = {"op": "settle", "result": LOST}
SETTLED = {"op": "settle", "result": OK}


def sent(op: str, device: int, result: Any = OK, **more: Any) -> Event:
    mode = {"mode": "absent"} if op == "fail" else {}
    return {"op": op, "device": device, **mode, **more, "result": result}


def refused(*events: Event) -> int | None:
    return unended(Trace(HELLO, [{"op": "create", "blocks": 4, "result": OK}, *events]))


BOTH = sent("fail", 0), sent("fail", 1)
BACK = sent("return", 0), sent("return", 1)


def test_a_settle_is_refused_wrongly_once_all_devices_are_back() -> None:
    assert refused(*BOTH, *BACK, SETTLE) == 5
    assert refused(*BOTH, SETTLE, *BACK, {"op": "crash", "result": OK}, SETTLE) == 7
    assert refused(sent("fail", 0), sent("return", 0), SETTLE) == 3
    again = sent("fail", 1), sent("return", 1)
    assert refused(*BOTH, *BACK, *again, SETTLE) == 7
    assert refused(*BOTH, *BACK, SETTLED, *BOTH, *BACK, SETTLE) == 10


def test_it_may_be_refused_while_too_little_may_be_there() -> None:
    assert refused(SETTLE) is None, "nothing is said of a disk without an outage"
    assert refused(*BOTH, BACK[0], SETTLE) is None, "a device is away"
    cut = sent("return", 1, None), {"op": "crash", "result": OK}
    assert refused(*BOTH, BACK[0], *cut, SETTLE) is None, "it may be away"
    for how in ({"mode": "degraded"}, {"fault": "bit-flip"}):
        assert refused(BOTH[0], sent("fail", 1, **how), *BACK, SETTLE) is None
    assert refused(BOTH[0], sent("replace", 0), SETTLE) is None
    assert refused(*BOTH, *BACK, sent("fail", 1), SETTLE) is None, "it has left again"


def test_a_device_that_was_replaced_counts_again_once_it_has_caught_up() -> None:
    replaced = sent("fail", 2), sent("replace", 2), SETTLED
    assert refused(*replaced, *BOTH, *BACK, SETTLE) == 8
    too_many = *BOTH, sent("replace", 0), BACK[1], SETTLED
    assert refused(*too_many, *BOTH, *BACK, SETTLE) is None, "some data is gone for good"


def test_only_who_declares_it_is_held_to_it() -> None:
    undeclared = {name: value for name, value in HELLO.items() if name != "outages_end"}
    events = [{"op": "create", "blocks": 4, "result": OK}, *BOTH, *BACK, SETTLE]
    assert unended(Trace(undeclared, events)) is None


def test_the_judge_says_so() -> None:
    trace = Trace(HELLO, [{"op": "create", "blocks": 4, "result": OK}, *BOTH, *BACK, SETTLE])
    (verdict,) = judge([trace], {"model": named("model")})
    assert (verdict.kind, verdict.at) == ("lost-data", 5)
    assert verdict.expected == "ok: every device that was absent is back"
    assert verdict.actual == "data-lost (devices 0, 1 are gone)"
