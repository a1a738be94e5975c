"""Programs: what they ask for, that a part of one is one, and that they are led by what was not
asked yet.

It has more than 400 lines because it is a list of small tests of one generator.
"""

import random
from collections import Counter
from itertools import groupby, islice, pairwise, takewhile
from typing import Any

import pytest

from conformance.campaign.driver import drive
from conformance.contract.model import NAME, answer_of
from conformance.contract.tagged_block import ALIKE
from conformance.judging.oracles.model import judge_one
from conformance.programs import (
    array,
    full,
    generate,
    names,
    overlap,
    power_cuts,
    requests,
    swarm,
    writer,
)
from conformance.programs.generate import Request
from conformance.programs.ranges import Ranges, edges
from conformance.programs.situation import Asked, Situation
from conformance.programs.tags import Tags
from conformance.programs.wide_devices import DevicesWriter
from conformance.programs.writer import Writer
from conformance.targets.model import CAPABILITIES, ModelTarget

HELLO = {"crash_profile": "prefix", "capabilities": CAPABILITIES, "devices": 4, "tolerates": 1}


def programs(number: int, seed: int = 1, ops: int = 30, **more: Any) -> list[list[Request]]:
    return list(islice(generate.programs({**HELLO, **more}, ops, seed, cuts=True), number))


def test_the_same_seed_gives_the_same_programs() -> None:
    assert programs(60) == programs(60)
    assert programs(60) != programs(60, seed=2)


def test_only_what_is_declared_is_asked_for() -> None:
    asked = {r["op"] for p in programs(50, capabilities=["flush"], spares=1) for r in p}
    assert asked == {"create", "write", "read", "flush"}
    asked = {r["op"] for p in programs(50, crash_profile=None) for r in p}
    assert "crash" not in asked
    asked = {r["op"] for p in programs(50, capabilities=["device"]) for r in p}
    assert {"fail", "return", "replace", "tick", "settle"} <= asked


def test_once_spares_stand_in_for_devices_as_many_others_fail() -> None:
    relied = opened = 0
    hello = {"devices": 5, "tolerates": 1, "spares": 1, "repair_seconds": 60}
    for program in programs(40, capabilities=["device", "restart"], **hello):
        some = [request for request in program if request["op"] not in ("read", "write")]
        for at, request in enumerate(some):
            ticks = [one for one in some[at + 1 : at + 4] if one["op"] in ("tick", "restart")]
            after = [one["op"] for one in some[at + 1 + len(ticks) :][:2]]
            waited = sum(one.get("seconds", 0) for one in ticks)
            if request["op"] == "fail" and after == ["settle", "fail"] and waited == 60:
                relied += 1
                opened += ticks[0]["op"] == ticks[-1]["op"] == "tick" and len(ticks) == 3
    assert relied > 10, relied
    assert opened > 2, opened  # between two parts of the time


def test_a_device_that_a_spare_replaced_is_in_reserve_when_it_goes_away_next() -> None:
    again = 0
    hello = {"devices": 5, "tolerates": 2, "spares": 1, "repair_seconds": 60}
    for program in programs(60, capabilities=["device"], **hello):
        changes = [one for one in program if one["op"] not in ("read", "write", "unmap")]
        for before, gone, back in zip(changes, changes[1:], changes[2:], strict=False):
            if before["op"] == "settle" and (gone["op"], back["op"]) == ("fail", "return"):
                again += gone["device"] == back["device"]
    assert again > 10, again


def test_a_target_that_can_is_scrubbed_at_the_end() -> None:
    assert all(p[-1] == {"op": "scrub"} for p in programs(20, capabilities=["scrub"]))


@pytest.mark.parametrize("often", [False, True])
def test_at_most_one_device_too_many_fails_and_then_nothing_is_written(
    often: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if often:  # also by what follows power cuts while a disk is filled
        monkeypatch.setattr(array, "BEYOND_ONE_IN", (1,))
        monkeypatch.setattr(writer, "ALONE_ONE_IN", 1)
        monkeypatch.setattr(power_cuts, "ONE_IN", (2, 2, 2, 2))
    exceeded = 0
    for program in programs(120, capabilities=["device", "crash"], tolerates=1):
        failed: set[int] = set()
        back: set[int] = set()
        for request in program:
            if len(failed) > 1:
                exceeded += 1
                assert request["op"] in (*swarm.BEYOND_TOLERANCE, "replace")
            if request["op"] == "fail":
                failed.add(request["device"])
                back.discard(request["device"])
            assert len(failed) <= 2
            if request["op"] == "settle" and "cut" not in request:
                failed -= back
                back.clear()
            if request["op"] in ("return", "replace"):
                back.add(request["device"])
    assert exceeded


def test_devices_fail_again_before_they_have_caught_up_and_operations_on_them_are_cut() -> None:
    again, cut = 0, Counter[str]()
    for program in programs(150, capabilities=["device", "crash"], tolerates=2):
        back: set[int] = set()
        for before, request in pairwise(program):
            if request["op"] == "fail" and "cut" not in before:
                again += request["device"] in back
                back.discard(request["device"])
            if request["op"] in ("return", "replace"):
                back.add(request["device"])
            if request["op"] == "settle":
                back.clear()
            cut[request["op"]] += "cut" in request
    assert again > 10
    assert all(cut[op] for op in swarm.DEVICE_OPS), cut


def test_what_was_cut_short_on_a_device_is_sent_again_before_anything_is_read() -> None:
    for program in programs(100, capabilities=["device", "crash"]):
        for at, request in enumerate(program):
            if request["op"] in ("fail", "return", "replace", "settle") and "cut" in request:
                after = next(r for r in program[at + 1 :] if r["op"] != "crash")
                assert after == {key: request[key] for key in request if key != "cut"}


def test_the_rare_is_in_it() -> None:
    """Refusals of every sort, cuts in every operation, cut recoveries."""
    seen: Counter[object] = Counter()
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


def test_long_lives_large_disks_and_blocks_that_are_alike() -> None:
    draws = generate.cases(lambda choose: {}, lambda _: HELLO, 30, 1, long=True, lives=True)
    usual, every = generate.WIDE_ONE_IN - 1, generate.WIDE_ONE_IN
    drawn = [one for at, (_, one) in enumerate(islice(draws, 400)) if at % every < usual]
    long = sum(len(program) >= generate.LONG_LIFE for program in drawn)
    assert 15 <= long <= 45, "a tenth"
    assert {program[0]["blocks"] for program in drawn} >= {1, 64, 300} | {9, 17, 33, 65, 129}
    alike = 0
    for program in drawn:
        tags = Counter(tag for request in program for tag in request.get("tags", ()))
        alike += bool(tags) and tags.most_common(1)[0][1] > 8
    assert 30 < alike < 150


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [({}, 50, 150), ({"deduplication": True}, 150, 250), ({"compression": False}, 50, 150)],
)
def test_most_programs_for_targets_that_share_data_have_blocks_that_are_alike(
    options: dict[str, Any], least: int, most: int
) -> None:
    alike = 0
    for seed in range(300):
        tags = Tags(random.Random(seed), options)
        alike += any(tag and tag % ALIKE == 0 for _ in range(20) for tag in tags.next(1))
    assert least < alike < most


def test_some_long_programs_repeat_a_few_operations_more_often_than_a_power_of_two() -> None:
    """A counter of 7 or 8 bits that counts any of them wraps."""
    longest = Counter[str]()
    for program in programs(120, seed=2, ops=300):
        operations = [request["op"] for request in program if request["op"] != "read"]
        for op, same in groupby(operations):
            longest[op] = max(longest[op], len(list(same)))
    assert sum(times >= 129 for times in longest.values()) >= 2


def test_trees_of_views_take_many_shapes() -> None:
    """Most of all where each delete and revert is led by the shapes that were made before."""

    def shapes(led: bool) -> int:
        seen, asked = set(), Asked()
        for seed in range(200):
            choose = random.Random(seed)
            program = generate.program(
                choose, HELLO, 30, crashes=False, asked=asked if led else Counter()
            )
            tree = Situation(program[0]["blocks"])
            for request in program:
                name = request.get("name", "")
                if request["op"] == "snapshot" and (name in tree.views or not NAME.fullmatch(name)):
                    continue
                if request["op"] in ("delete", "revert") and name not in tree.views:
                    continue
                tree.note(request["op"], name)
                seen.add(tree.shape())
        return len(seen)

    assert shapes(True) > shapes(False) > 50


def test_a_situation_knows_the_tree_of_views() -> None:
    tree = Situation(4)
    for op, name in (
        ("write", ""),
        ("snapshot", "a"),
        ("write", ""),
        ("snapshot", "b"),
        ("revert", "a"),
        ("snapshot", "c"),
    ):
        tree.note(op, name)
    assert tree.views == {"a": None, "b": "a", "c": "a"}
    assert tree.shape() == (0, False, (0, True, (0, True), (1, False)))
    assert tree.ancestors() == ["a", "c"]
    before = tree.shape_after("delete", "a")
    tree.note("delete", "a")
    assert set(tree.views) == {"b", "c"} and tree.shape() == before
    assert tree.ancestors() == ["c"], "a deleted branching point is none"
    # they may share what was in the deleted one, until one of them goes
    assert before == (0, False, (-3, True, (0, True), (1, False)))
    tree.note("revert", "b")
    tree.note("delete", "c")
    assert tree.views == {"b": None} and tree.shape() == (0, False, (1, True))


def test_names_of_all_lengths_and_characters_and_those_next_to_them() -> None:
    choose = random.Random(1)
    good = [names.allowed(choose) for _ in range(3000)]
    assert all(NAME.fullmatch(name) for name in good)
    assert {1, 63, 64} <= set(map(len, good)) and set("".join(good)) == set(names.ALLOWED)
    bad = [names.forbidden(choose, choose.choice(good)) for _ in range(3000)]
    assert not any(NAME.fullmatch(name) for name in bad)
    assert {0, 65} <= set(map(len, bad)) and set("/:@[`{") <= set("".join(bad))
    asked = {r["name"] for p in programs(300) for r in p if r["op"] == "snapshot"}
    assert len(asked.intersection(names.SPECIAL)) > len(names.SPECIAL) // 2
    assert any(len(name) == 64 for name in asked) and any(len(name) > 64 for name in asked)


@pytest.mark.parametrize("profile", ("ack", "prefix", "block"))
def test_any_part_of_a_program_is_a_program(profile: str) -> None:
    choose = random.Random(3)
    target = ModelTarget({"profile": profile})
    for program in programs(25):
        part = [program[0], *(request for request in program[1:] if choose.random() < 0.5)]
        trace = drive(target, part)
        assert "failure" not in trace.events[-1] and judge_one(trace).at is None


def test_long_programs_can_be_drawn() -> None:
    drawn = islice(generate.programs(HELLO, generate.MOST_OPS, 1), 2)
    assert all(len(program) > generate.MOST_OPS for program in drawn)


def test_ranges_begin_and_end_where_structures_do() -> None:
    """Clusters of 8 blocks: ranges begin with one, or a block before, more often than by chance.
    So do ranges of several blocks that end with one, or a block behind, and begin anywhere."""

    def shares(options: tuple[int, ...]) -> tuple[float, float]:
        choose, begin, end = random.Random(1), 0, 0
        for _ in range(400):
            ranges = Ranges(choose, 64, options, 512)
            for lba, count in [ranges.next() for _ in range(20)]:
                begin += lba % 8 in (0, 7)
                end += count > 1 and lba % 8 not in (0, 7) and (lba + count) % 8 in (0, 1)
        return begin / 8000, end / 8000

    assert edges((4096, "x", True), 512, 64) == [8]
    (begin, end), (usual_begin, usual_end) = shares((4096,)), shares(())
    assert begin > 1.25 * usual_begin and end > 1.15 * usual_end


def test_power_cuts_come_right_behind_what_was_made_durable() -> None:
    lengths: Counter[int] = Counter()
    flushed = 0
    for program in programs(100, capabilities=["fua", "flush", "crash", "snapshot"]):
        for durable, crash in pairwise(program):
            if crash["op"] == "crash" and "cut" not in durable:
                if "fua" in durable:
                    lengths[len(durable["tags"])] += 1
                flushed += durable["op"] == "flush"
    assert flushed > 30
    assert sum(lengths.values()) > 30 and sum(n > 4 for n in lengths.elements()) > 15, lengths


def test_the_power_fails_at_the_end_of_long_requests() -> None:
    """A target may write each block by itself, then a record of several sectors, and flush."""
    ends: Counter[int] = Counter()
    for program in programs(400):
        for request in program:
            blocks = len(request.get("tags", ()))
            if "cut" in request and blocks > 8:
                ends[request["cut"]["after"] - blocks] += 1
    assert sum(ends[behind] for behind in (1, 2, 3)) > 5, ends


def test_what_a_deletion_or_a_revert_frees_is_cleaned_and_used_again() -> None:
    """With other views there, which may still need it."""
    freed = behind = 0
    for program in programs(300, capabilities=[c for c in CAPABILITIES if c != "device"]):
        for at, request in enumerate(program):
            if request["op"] in ("delete", "revert") and "cut" not in request:
                freed += 1
                next_ = [one["op"] for one in program[at + 1 : at + 4]]
                behind += next_[:1] == ["clean"] and "write" in next_
    assert behind > 0.1 * freed, (behind, freed)


def test_scrubs_come_right_before_and_behind_power_cuts() -> None:
    """An opening counts anew: what leaks before it, or by it, is gone with the next one."""
    before = behind = crashes = 0
    for program in programs(100, capabilities=["crash", "flush", "snapshot", "scrub"]):
        for one, crash, two in zip(program, program[1:], program[2:], strict=False):
            if crash == {"op": "crash"} and "cut" not in one:
                crashes += 1
                before += one["op"] == "scrub"
                behind += two["op"] == "scrub"
    assert min(before, behind) > 0.12 * crashes, (before, behind, crashes)


def test_what_was_seldom_asked_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of operations that follow each other, in as many requests. Scenes, the reads of whole views
    and what follows a write or a snapshot at once are not led, and left out. Both counts are in the
    message.
    """
    monkeypatch.setattr(swarm, "steps", lambda choose, scene: [])
    for not_led in ("END_ONE_IN", "ANEW_ONE_IN"):
        monkeypatch.setattr(writer, not_led, 1 << 30)

    def triples(led: bool, seed: int) -> float:
        asked, seen, requests = Asked(), set(), 0
        for number in range(25):
            program = generate.program(
                random.Random(f"{seed} {number}"),
                {**HELLO, "capabilities": swarm.CAPABILITIES},
                30,
                asked=asked if led else Counter(),
            )
            whole = program[0]["blocks"]
            ops = [request["op"] for request in program if request.get("count") != whole]
            seen |= set(zip(ops, ops[1:], ops[2:], strict=False))
            requests += len(ops)
        return len(seen) / requests

    plain, led = (sum(triples(kind, seed) for seed in range(1, 11)) for kind in (False, True))
    assert led > 1.05 * plain, (plain, led)


def test_a_device_fails_after_another_was_rebuilt_and_snapshots_are_read_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a rebuild left out shows only if nothing reads, and so repairs, it in between: luck
    alone seldom does that.
    """

    def timed(program: list[Request]) -> bool:
        rebuilt, taken = False, set()
        for before, request in pairwise(program):
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

    monkeypatch.setattr(full, "FULL_ONE_IN", 1 << 30)  # they settle after writes, too
    played = sum(map(timed, programs(1600, capabilities=swarm.CAPABILITIES)))
    monkeypatch.setattr(swarm, "DEVICE_THEMES", swarm.DEVICE_THEMES[:2])
    lucky = sum(map(timed, programs(1600, capabilities=swarm.CAPABILITIES)))
    assert played > 1.5 * lucky, (played, lucky)


def test_others_fail_after_a_device_has_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it still lacks shows while others are away."""

    def times(program: list[Request]) -> int:
        found, back, settled = 0, None, False
        for request in program:
            match request["op"]:
                case "return" | "replace":
                    back, settled = request["device"], False
                case "settle":
                    settled = back is not None
                case "fail":
                    found += settled and request["device"] != back
                    settled = False
                case op if op not in ("read", "crash", "restart"):
                    settled = False
        return found

    played = sum(map(times, programs(600, capabilities=swarm.CAPABILITIES)))
    monkeypatch.setattr(Writer, "_survive", lambda writer: None)
    monkeypatch.setattr(DevicesWriter, "_catch_up_once", lambda writer: None)
    lucky = sum(map(times, programs(600, capabilities=swarm.CAPABILITIES)))
    assert played > 1.5 * lucky, (played, lucky)


def test_disks_are_filled_in_pieces_from_either_end() -> None:
    """So what maps a disk grows at its left end, too, with a checkpoint in between."""
    ways = set()
    for program in programs(300):
        first, second = ([*program[1:], {}])[:2]
        if first["op"] == second.get("op") == "write" and len(first["tags"]) > 3:
            ways.add(first["lba"] < second["lba"])
    assert ways == {True, False}


def test_the_power_fails_behind_many_durable_changes_in_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log is full to any point then, and nothing else came in between."""
    capabilities = [one for one in swarm.CAPABILITIES if one != "device"]

    def times(program: list[Request]) -> int:
        found, row, durable = 0, 0, False
        for request in program:
            if request["op"] == "crash":
                found += row > 16 and durable
            row = row + 1 if request["op"] in ("write", "flush") else 0
            durable = request["op"] == "flush" or bool(request.get("fua"))
        return found

    piled = sum(map(times, programs(400, capabilities=capabilities)))
    monkeypatch.setattr(Writer, "_pile_up", Writer._promise)
    lucky = sum(map(times, programs(400, capabilities=capabilities)))
    assert piled > 3 * lucky, (piled, lucky)


def test_zeroes_are_made_durable_just_before_the_power_fails() -> None:
    """A target may treat them as an unmap, and forget to make it durable."""
    zeroes = 0
    for program in programs(700, capabilities=swarm.CAPABILITIES):
        for before, request in pairwise([one for one in program if one["op"] != "scrub"]):
            zeroes += (
                request["op"] == "crash" and bool(before.get("fua")) and not any(before["tags"])
            )
    assert zeroes > 20, zeroes


def test_writes_are_durable_at_once_only_for_targets_that_declare_it() -> None:
    def durable(capabilities: list[str]) -> int:
        hello = {**HELLO, "capabilities": capabilities}
        return sum(
            bool(request.get("fua"))
            for program in islice(generate.programs(hello, 30, 7), 100)
            for request in program
        )

    assert durable(CAPABILITIES) > 50
    assert durable([one for one in CAPABILITIES if one != "fua"]) == 0


def test_what_was_deleted_since_a_flush_is_read_behind_a_power_cut() -> None:
    """Where a power cut may take a deletion back, the snapshot is there again, with its data."""
    looked = missed = 0
    for program in programs(200):
        deleted = ""
        for at, request in enumerate(program):
            match request:
                case {"op": "delete", "name": name}:
                    deleted = name
                case {"op": "snapshot", "name": name} if name == deleted:
                    deleted = ""
                case {"op": "flush" | "restart"}:
                    deleted = ""
                case {"op": "crash"} if deleted and "cut" not in request:
                    reads = takewhile(lambda r: r["op"] == "read", program[at + 1 :])
                    found = any(read.get("view") == deleted for read in reads)
                    looked, missed = looked + found, missed + (not found)
    assert looked > 40 and missed < looked / 4, (looked, missed)


@pytest.mark.parametrize("capabilities", [[], *([one] for one in CAPABILITIES)])
@pytest.mark.parametrize("kind", ["usual", "wide", "races"])
def test_only_what_is_declared_is_asked(capabilities: list[str], kind: str) -> None:
    hello = {"crash_profile": "prefix", "capabilities": capabilities}
    for seed in range(40):
        choose = random.Random(seed)
        if kind == "races":
            program = overlap.written(choose, hello, 60, 8)
        else:
            program = generate.program(choose, hello, 30, wide=kind == "wide")
        needed = {swarm.NEEDS[request["op"]] for request in program[1:]}
        assert needed <= {None, *capabilities}


def test_the_power_fails_right_behind_an_opening() -> None:
    behind = sum(
        one["op"] == "restart" and two["op"] == "crash"
        for program in programs(200)
        for one, two in pairwise(program)
    )
    assert behind > 40, behind


def test_some_writes_have_one_block_again_and_again() -> None:
    fills = Counter(
        request["tags"][0]
        for program in programs(200)
        for request in program
        if len(request.get("tags", ())) > 3 and len(set(request["tags"])) == 1
    )
    assert fills[0] > 5 and fills.total() - fills[0] > 20, fills


def test_a_program_ends_before_a_judge_has_too_many_blocks_to_follow() -> None:
    create: Request = {"op": "create", "blocks": 2100}
    reads: list[Request] = [{"op": "read", "lba": 0, "count": 2100}] * 100
    short: list[Request] = [{"op": "flush"}, {"op": "read", "lba": 2099, "count": 1 << 40}]
    sent = generate.followed([create, *short, *reads])
    assert sent[:3] == [create, *short] and 80 < len(sent) < 100
    cuts: list[Request] = [{"op": "crash"}] * 100
    assert 3 < len(generate.followed([create, *cuts])) < 7
    assert generate.followed([create, *short * 20]) == [create, *short * 20]


def test_a_judge_follows_each_block_where_a_power_cut_may_leave_any_of_its_moments() -> None:
    """On 2,100 blocks such a judge took 33 seconds for a program with 6 power cuts."""
    one_step = {"atomic": "request"}
    assert generate.judged_by_block({**one_step, "crash_profile": "block"})
    assert generate.judged_by_block({"atomic": "block", "crash_profile": "ack"})
    assert not generate.judged_by_block({**one_step, "crash_profile": "prefix"})


def test_names_differ_in_what_is_escaped() -> None:
    drawn = [names.some(random.Random(seed), 4) for seed in range(400)]
    escaped = [{name.replace(".", "_") for name in some} for some in drawn]
    assert sum(len(some) < 4 for some in escaped) > 5


def test_names_differ_in_a_mark_at_their_beginning() -> None:
    drawn = [names.some(random.Random(seed), 4) for seed in range(1200)]
    for mark in "._-":
        bare = [{name.removeprefix(mark) for name in some} for some in drawn]
        assert sum(len(some) < 4 for some in bare) > 8, mark


def test_a_name_may_be_another_one_with_what_an_engine_may_append() -> None:
    drawn = [names.some(random.Random(seed), 4) for seed in range(1200)]
    for suffix in names.SUFFIXES:
        assert any(name + suffix in some for some in drawn for name in some), suffix


def test_in_some_programs_all_names_differ_at_their_end_only() -> None:
    """Who cuts names at 32 or 63 characters, or compares so many of them, takes them for one."""
    alike = 0
    for program in programs(200):
        taken = {one["name"] for one in program if one["op"] == "snapshot"}
        taken = {name for name in taken if NAME.fullmatch(name)}
        alike += len(taken) > 1 and len({name[:62] for name in taken}) == 1
        assert all(len(name) <= names.LONGEST for name in taken)
    assert 8 < alike < 60, alike


def test_runs_of_equal_blocks_are_written_over_one_by_one() -> None:
    apart, options = 0, {"deduplication": True}
    for seed in range(150):
        program = generate.program(random.Random(seed), HELLO, 30, options=options)
        for fill, one, two in zip(program, program[1:], program[2:], strict=False):
            if fill["op"] == "write" and len(fill["tags"]) > 2 and len({*fill["tags"]}) == 1:
                inside = range(fill["lba"], fill["lba"] + len(fill["tags"]))
                singles = [
                    other["op"] == "write" and len(other["tags"]) == 1 and other["lba"] in inside
                    for other in (one, two)
                ]
                apart += all(singles) and one["lba"] == fill["lba"] != two["lba"]
    assert apart > 10, apart


def test_a_disk_of_large_blocks_has_few_of_them() -> None:
    """A whole view is read in one request."""
    drawn = programs(60, block_size=65536)
    assert max(program[0]["blocks"] for program in drawn) * 65536 == requests.MOST_BYTES
    tagged = programs(60, block_size=65536, payload="tags")
    assert max(program[0]["blocks"] for program in tagged) == max(requests.SIZES)


def test_one_block_is_read_at_an_end_of_what_was_written() -> None:
    alone = 0
    for program in programs(200):
        for write, read in pairwise(program):
            if write["op"] == "write" and read["op"] == "read" and "view" not in read:
                lba, count = write["lba"], len(write["tags"])
                ends = (lba, lba + count - 1)
                alone += count > 1 == read["count"] and read["lba"] in ends
    assert alone > 20, alone


def test_the_power_fails_behind_the_first_change_after_a_snapshot_or_a_revert() -> None:
    begun = {"write": 0, "unmap": 0}
    for program in programs(600):
        for anew, change, crash in zip(program, program[1:], program[2:], strict=False):
            if anew["op"] in ("snapshot", "revert") and change["op"] in begun:
                begun[change["op"]] += crash["op"] == "crash"
    assert begun["unmap"] > 25 and begun["write"] > 60, begun


def test_views_are_also_read_in_parts_and_ranges_cross_the_borders_of_others() -> None:
    parts = across = ranges = 0
    for program in programs(200):
        blocks = program[0]["blocks"]
        borders: set[int] = set()
        for one, two in pairwise(program):
            if (one["op"], two["op"]) == ("read", "read") and one.get("view") == two.get("view"):
                end = one["lba"] + one["count"]
                parts += end == two["lba"] < blocks and two["lba"] + two["count"] == blocks
            if one["op"] == "write" and blocks >= 16:
                begin, end = one["lba"], one["lba"] + len(one["tags"])
                ranges += 1
                across += end < blocks and any(begin < border < end for border in borders)
                borders |= {begin, end}
    assert parts > 200 and across > 0.1 * ranges, (parts, across, ranges)


def test_two_checkpoints_follow_another_and_the_power_fails_in_the_last() -> None:
    hello = {**HELLO, "cuts": True}
    stored = 0
    for seed in range(300):
        program = generate.program(random.Random(seed), hello, 60, cuts=True)
        some = [one for one in program if one["op"] in ("checkpoint", "crash", "restart")]
        stored += any(
            {one["op"] for one in three} == {"checkpoint"} and "cut" in three[2]
            for three in zip(some, some[1:], some[2:], strict=False)
        )
    assert stored > 5, stored


def test_power_cuts_come_near_the_end_of_operations_that_make_many_device_writes() -> None:
    """What is learned from earlier traces leads there, however many there are."""
    choose, reach = random.Random(1), dict[str, power_cuts.Reach]()
    made, cuts = 94, []
    for _ in range(300):
        cut = power_cuts.PowerCuts(choose, True, reach).at("settle")["after"]
        known = reach.get("settle", power_cuts.Reach())
        reach["settle"] = known.learn(cut, answered=cut > made)
        cuts.append(cut)
    assert sum(made - power_cuts.LAST <= cut <= made for cut in cuts) > 60
    assert sum(cut <= 8 for cut in cuts) > 60
    assert made - 2 < reach["settle"].made <= made < reach["settle"].too_late < made + 3


def test_cuts_that_come_too_late_do_not_hide_that_longer_operations_exist() -> None:
    reach = power_cuts.Reach().learn(5, answered=True)
    assert reach == (2, 5) and reach.learn(9, answered=True) == reach
    assert reach.learn(20, answered=False) == (20, 0)


def test_large_disks_have_unmaps_that_need_more_than_a_byte() -> None:
    large = [one for one in programs(1500) if one[0]["blocks"] > requests.BYTE]
    unmaps = [[r["count"] for r in one if r["op"] == "unmap"] for one in large]
    long = sum(any(count > requests.BYTE for count in counts) for counts in unmaps)
    assert long > 0.25 * len(large), (long, len(large))
