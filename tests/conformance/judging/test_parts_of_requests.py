"""A request may take effect in parts, or after its answer, though requests come one at a time."""

from typing import Any

from conformance.contract.trace import Event, Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.judging.orders.steps import placed

OK = {"ok": True}
UNKNOWN = {"ok": False, "error": "unknown-outcome"}
CREATE = {"op": "create", "blocks": 2, "result": OK}


def verdict(events: list[Event], profile: str = "ack", **hello: Any) -> str:
    promised = {"block_size": 512, "crash_profile": profile, "capabilities": [], **hello}
    return judge([Trace(promised, events)], {"model": named("model")})[0].verdict


def read(*tags: int) -> Event:
    result = {"ok": True, "tags": list(tags)}
    return {"op": "read", "lba": 0, "count": len(tags), "result": result}


def write(result: Any, *tags: int) -> Event:
    return {"op": "write", "lba": 0, "tags": list(tags), "result": result}


def test_in_version_2_a_request_of_unknown_outcome_may_take_effect_after_its_answer() -> None:
    later = [CREATE, write(UNKNOWN, 1), read(0), read(1)]
    assert verdict(later) == "fail"
    assert verdict(later, protocol=2) == "pass"
    assert verdict(placed(later)) == "pass"
    assert verdict([*later, read(0)], protocol=2) == "fail"


def test_a_power_cut_ends_a_request_of_unknown_outcome() -> None:
    crash = {"op": "crash", "result": OK}
    events = [CREATE, write(UNKNOWN, 1), read(0), crash]
    assert verdict([*events, read(0), read(1)], protocol=2) == "fail"
    assert verdict([*events, read(1)], protocol=2) == "pass"


def test_a_request_whose_steps_are_blocks_may_be_cut_between_them() -> None:
    crash = {"op": "crash", "result": OK}
    torn = [CREATE, write(None, 1, 2), crash, read(1, 0)]
    assert verdict(torn) == "fail"
    assert verdict(torn, atomic="block") == "pass"
    unknown = [CREATE, write(UNKNOWN, 1, 2), read(0, 2)]
    assert verdict(unknown) == "fail"
    assert verdict(unknown, atomic="block") == "pass"
    answered = [CREATE, write(OK, 1, 2), crash, read(0, 2)]
    assert verdict(answered, "prefix") == "fail"
    assert verdict(answered, "prefix", atomic="block") == "pass"
    assert verdict(answered, "ack", atomic="block") == "fail"


def test_a_durable_write_that_was_cut_is_durable_as_a_whole_or_not_at_all() -> None:
    def cut_with(other: Event, *left: int) -> str:
        events = [
            {**CREATE, "called": 0, "answered": 1},
            {**write(None, 1, 2), "fua": True, "called": 2, "answered": None},
            {**other, "result": None, "called": 3, "answered": None},
            {"op": "crash", "result": OK, "called": 4, "answered": 5},
            {**read(*left), "called": 6, "answered": 7},
        ]
        return verdict(events, "prefix")

    flush = {"op": "flush"}
    assert cut_with(flush, 1, 2) == cut_with(flush, 0, 0) == "pass"
    assert cut_with(flush, 1, 0) == cut_with(flush, 0, 2) == "fail"
    after_it = {"op": "unmap", "lba": 0, "count": 1}
    assert cut_with(after_it, 0, 2) == "pass"
    assert cut_with(after_it, 1, 0) == "fail"
