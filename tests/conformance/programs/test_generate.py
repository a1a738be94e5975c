"""Programs: what they ask for, and that a part of one is one."""

import random
from collections import Counter
from itertools import islice

import pytest

from conformance.campaign.driver import drive
from conformance.contract.model import answer_of
from conformance.judging.oracles.model import judge_one
from conformance.programs import generate, swarm
from conformance.targets.model import CAPABILITIES, ModelTarget

HELLO = {"crash_profile": "prefix", "capabilities": CAPABILITIES, "devices": 4, "tolerates": 1}


def programs(number, seed=1, ops=30, **more):
    return list(
        islice(generate.drawn(generate.programs({**HELLO, **more}, ops, True, True), seed), number)
    )


def test_the_same_seed_gives_the_same_programs():
    assert programs(60) == programs(60)
    assert programs(60) != programs(60, seed=2)


def test_only_what_is_declared_is_asked_for():
    asked = {r["op"] for p in programs(50, capabilities=["flush"]) for r in p}
    assert asked == {"create", "write", "read", "flush"}
    asked = {r["op"] for p in programs(50, crash_profile=None) for r in p}
    assert "crash" not in asked
    asked = {r["op"] for p in programs(50, capabilities=["device"]) for r in p}
    assert {"fail", "return", "replace", "tick", "settle"} <= asked


def test_at_most_one_device_too_many_fails_and_then_nothing_is_written():
    exceeded = 0
    for program in programs(80, capabilities=["device"], tolerates=1):
        failed, back = set(), set()
        for request in program:
            if len(failed) > 1:
                exceeded += 1
                assert request["op"] in swarm.BEYOND_TOLERANCE
            if request["op"] == "fail":
                failed.add(request["device"])
            assert len(failed) <= 2
            if request["op"] == "settle":
                failed -= back
                back.clear()
            if request["op"] in ("return", "replace"):
                back.add(request["device"])
    assert exceeded


def test_the_rare_is_in_it():
    """Refusals of every sort, cuts in every operation, cut recoveries, repeated tags."""
    seen = Counter()
    target = ModelTarget({"profile": "prefix"})
    for program in programs(150):
        for event in drive(target, program).events:
            seen[event["op"], answer_of(event)] += 1
            seen["straddles"] += (
                event["op"] == "write" and event["lba"] < 4 and answer_of(event) == "out-of-range"
            )
    for op in ("write", "unmap", "snapshot", "delete", "revert", "restart", "flush", "crash"):
        assert seen[op, "cut"], op
    assert (
        seen["write", "out-of-range"] and seen["straddles"] and seen["snapshot", "snapshot-exists"]
    )
    assert seen["snapshot", "bad-request"] and seen["read", "no-such-snapshot"]


@pytest.mark.parametrize("profile", ("ack", "prefix", "block"))
def test_any_part_of_a_program_is_a_program(profile):
    choose = random.Random(3)
    target = ModelTarget({"profile": profile})
    for program in programs(25):
        part = [program[0], *(request for request in program[1:] if choose.random() < 0.5)]
        trace = drive(target, part)
        assert "failure" not in trace.events[-1] and judge_one(trace).at is None


def test_long_programs_can_be_drawn():
    strategy = generate.programs(HELLO, generate.MOST_OPS)
    assert all(
        len(program) > generate.MOST_OPS
        for program in islice(generate.drawn(strategy, 1, batch=2), 2)
    )


def test_requests_begin_and_end_where_structures_do():
    """Clusters of 8 blocks: writes begin with one, or a block before, more often than by chance."""

    def hits(options):
        knobs = {name: [value] for name, value in options.items()}
        found = wide = 0
        for drawn in islice(generate.drawn(generate.seeds(30), 1), 100):
            _, program = generate.written(drawn, knobs, lambda chosen: {**HELLO, "block_size": 512})
            for request in program:
                if (
                    request["op"] == "write"
                    and request["lba"] + len(request["tags"]) <= program[0]["blocks"] > 8
                ):
                    wide += 1
                    found += request["lba"] % 8 in (0, 7)
        return found / wide

    assert hits({"cluster_size": 4096, "name": "x", "on": True}) > 1.25 * hits({})


def test_a_device_fails_after_another_was_rebuilt_and_snapshots_are_read_first(monkeypatch):
    """What a rebuild left out shows only if nothing reads, and so repairs, it in between: luck alone seldom does that."""

    def timed(program):
        rebuilt, taken = False, set()
        for before, request in zip(program, program[1:]):
            match request["op"]:
                case "snapshot":
                    taken.add(request["name"])
                case "settle":
                    rebuilt = before["op"] in ("write", "replace") and bool(taken)
                case "read" if (
                    rebuilt and before["op"] in ("fail", "read") and request.get("view") in taken
                ):
                    return True
                case "read" if rebuilt and before["op"] == "settle":
                    rebuilt = False
        return False

    played = sum(map(timed, programs(300, capabilities=swarm.CAPABILITIES)))
    monkeypatch.setattr(swarm, "DEVICE_THEMES", swarm.DEVICE_THEMES[:-1])
    lucky = sum(map(timed, programs(300, capabilities=swarm.CAPABILITIES)))
    assert played > 5 * lucky, (played, lucky)
