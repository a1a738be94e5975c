"""Where a program goes on from what another one showed, that is put to a test at once; and disks
dwell.
"""

import random
from collections import Counter
from itertools import pairwise

from conformance.campaign.driver import drive
from conformance.contract.trace import Trace
from conformance.judging.oracles.model import judge_one
from conformance.programs import generate
from conformance.programs.explored import Begun, Explored
from conformance.programs.generate import Request
from conformance.targets.model import CAPABILITIES, ModelTarget

HELLO = {"crash_profile": "prefix", "capabilities": CAPABILITIES}
OK = {"ok": True}


def begun() -> Begun:
    """A disk with two snapshots."""
    events: list[Request] = [
        {"op": "create", "blocks": 4, "result": OK},
        {"op": "write", "lba": 0, "tags": [1, 2, 3, 4], "result": OK},
        {"op": "snapshot", "name": "s1", "result": OK},
        {"op": "write", "lba": 1, "tags": [5], "result": OK},
        {"op": "snapshot", "name": "s2", "result": OK},
    ]
    explored, choose = Explored(), random.Random(1)
    explored.learn(Trace(HELLO, events[:4]))  # so that the second snapshot is what is new
    explored.learn(Trace(HELLO, events))
    found = [explored.beginning(choose) for _ in range(40)]
    return next(one for one in found if one is not None and len(one.requests) == len(events))


def is_dwelling(program: list[Request]) -> bool:
    """Whether eight single blocks are written in a row, and live is read whole after each."""
    alone = [
        one["op"] == "write"
        and len(one["tags"]) == 1
        and (two["op"], two.get("count")) == ("read", program[0]["blocks"])
        for one, two in pairwise(program)
        if one["op"] != "read"
    ]
    return "1" * 8 in "".join("01"[one] for one in alone)


def test_what_others_showed_is_put_to_a_test_and_looked_at() -> None:
    beginning, looked = begun(), Counter[str]()
    for seed in range(100):
        program = generate.program(random.Random(seed), HELLO, 40, begun=beginning)
        rest = program[len(beginning.requests) :]
        assert program[: len(beginning.requests)] == list(beginning.requests)
        views = [request.get("view") for request in rest[1:4] if request["op"] == "read"]
        looked[rest[0]["op"]] += views == [None, "s1", "s2"]
    assert min(looked["crash"], looked["restart"], looked["write"]) > 10, looked


def test_disks_dwell_in_some_programs_that_begin_anew() -> None:
    programs = [generate.program(random.Random(seed), HELLO, 60) for seed in range(100)]
    assert sum(map(is_dwelling, programs)) > 5


def test_an_honest_target_passes_the_tests() -> None:
    for seed in range(20):
        program = generate.program(random.Random(seed), HELLO, 30, cuts=True, begun=begun())
        opinion = judge_one(drive(ModelTarget({"profile": "prefix"}), program, seed))
        assert opinion.at is None, opinion
