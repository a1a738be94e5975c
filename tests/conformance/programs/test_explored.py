"""Programs go on from where earlier ones showed something new, as the target answered."""

import random

from conformance.contract.trace import Trace
from conformance.programs import generate
from conformance.programs.explored import Explored, follow
from conformance.programs.generate import Request
from conformance.programs.situation import ABSENT, Situation

HELLO = {"crash_profile": "ack", "capabilities": ["snapshot", "delete"], "tolerates": 1}
OK = {"ok": True}
CREATED = {"op": "create", "blocks": 4, "result": OK}
TAKEN = {"op": "snapshot", "name": "s1", "result": OK}
REFUSED = {"op": "snapshot", "name": "s2", "result": {"ok": False, "error": "no-space"}}
READ = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [0]}}


def beginnings(explored: Explored, number: int = 40) -> list[list[Request]]:
    """Return the requests that programs continue, without those of programs that begin anew."""
    choose = random.Random(1)
    found = [explored.beginning(choose) for _ in range(number)]
    return [list(begun.requests) for begun in found if begun is not None]


def test_a_trace_is_kept_up_to_where_it_showed_most_that_is_new() -> None:
    explored = Explored()
    assert beginnings(explored) == []
    explored.learn(Trace(HELLO, [CREATED, TAKEN, READ, READ, READ]))
    explored.learn(Trace(HELLO, [CREATED, TAKEN, READ, READ, READ]))  # nothing new
    kept = {str(requests) for requests in beginnings(explored)}
    assert len(kept) == 1
    explored.learn(Trace(HELLO, [CREATED, TAKEN, READ, REFUSED, READ]))
    found = beginnings(explored)
    assert len({str(requests) for requests in found}) == 2
    assert {"op": "snapshot", "name": "s2"} in [requests[-1] for requests in found]


def test_what_a_power_cut_left_open_is_not_gone_on_from() -> None:
    explored = Explored()
    cut = {"op": "fail", "device": 0, "mode": ABSENT, "cut": {"after": 1, "seed": 1}}
    crash = {"op": "crash", "result": OK}
    explored.learn(Trace(HELLO, [CREATED, {**cut, "result": None}, crash, READ]))
    assert beginnings(explored) == []


def test_a_failure_that_is_refused_because_it_took_effect_before_counts() -> None:
    now = Situation(4)
    refused = {"ok": False, "error": "bad-request"}
    follow(now, {"op": "fail", "device": 2, "mode": ABSENT, "result": refused})
    assert now.failed == {2: ABSENT}


def test_a_name_may_be_taken_again_after_a_deletion_that_a_power_cut_ended() -> None:
    now = Situation(4)
    for name in ("s1", "s2", "s1"):  # the first s1 is deleted by a request without an answer
        follow(now, {"op": "snapshot", "name": name, "result": OK})
        follow(now, {"op": "delete", "name": "s1", "result": None})
    assert now.shape_after("delete", "s1") == now.shape_after("delete", "s2")
    assert list(now.views) == ["s2", "s1"]


def test_a_program_goes_on_from_where_another_one_ended() -> None:
    explored = Explored()
    written = {"op": "write", "lba": 1, "tags": [1, 2, 3], "result": OK}
    explored.learn(Trace(HELLO, [CREATED, written, TAKEN, READ, REFUSED]))
    begun = next(filter(None, (explored.beginning(random.Random(seed)) for seed in range(9))))
    requests = list(begun.requests)
    rest = []
    for seed in range(3):
        program = generate.program(random.Random(seed), HELLO, 40, begun=begun)
        assert program[: len(requests)] == requests and len(program) > 10 + len(requests)
        rest += program[len(requests) :]
    tags = [tag for request in rest if request["op"] == "write" for tag in request["tags"]]
    fresh = [tag for tag in tags if tag % 8]
    assert sum(tag > 3 for tag in fresh) > 0.8 * len(fresh) > 0  # one in 32 may be repeated
    assert any(request.get("name") == "s1" or request.get("view") == "s1" for request in rest)
