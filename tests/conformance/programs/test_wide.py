"""Wide programs: what the usual ones hardly ever have is in them, and honest targets pass."""

import random
import re
from itertools import islice, pairwise

import pytest

from conformance.campaign.driver import drive
from conformance.judging.oracles.model import judge_one
from conformance.programs import generate
from conformance.programs.generate import Request
from conformance.programs.requests import MOST_BYTES, SIZES
from conformance.programs.simpler import sent_beyond_tolerance
from conformance.targets.model import CAPABILITIES, ModelTarget

HELLO = {"crash_profile": "prefix", "capabilities": CAPABILITIES}
CONTROLS = {"revert", "delete", "restart", "unmap", "checkpoint", "clean"}
SHORT = {"snapshot": "s", "write": "w", "revert": "r", "delete": "d", "checkpoint": "k"}
SHORT |= {"restart": "o", "crash": "o"}


def programs(number: int) -> list[list[Request]]:
    return [
        generate.program(random.Random(seed), HELLO, 30, cuts=True, wide=True)
        for seed in range(number)
    ]


def test_the_shapes_are_in_them() -> None:
    some = programs(160)
    most_views = most_openings = around = pieces = 0
    for program in some:
        names: set[str] = set()
        openings = 0
        for request in program:
            if request["op"] == "snapshot":
                names.add(request["name"])
            if request["op"] == "delete":
                names.discard(request["name"])
            openings += request["op"] in ("restart", "crash")
            most_views = max(most_views, len(names))
        most_openings = max(most_openings, openings)
        reads = zip(program, program[1:], program[2:], strict=False)
        around += sum(one == two and middle["op"] in CONTROLS for one, middle, two in reads)
        begins = [request for request in program[1:30] if request["op"] == "write"]
        apart = [abs(two["lba"] - one["lba"]) > 1 for one, two in pairwise(begins)]
        pieces += sum(apart) > 20
    assert most_views >= 65 and most_openings >= 257
    assert around > 30 and pieces > 5


def test_holes_are_cut_up_to_a_border_and_written_in() -> None:
    inside = 0
    for program in programs(150):
        for hole, write in pairwise(program):
            if hole["op"] == "unmap" and hole["count"] >= 4 and write["op"] == "write":
                into = write["lba"] - hole["lba"]
                inside += into >= 0 and into + len(write["tags"]) <= hole["count"]
    assert inside > 20, inside


def test_a_snapshot_goes_as_soon_as_live_is_what_it_was() -> None:
    gone = 0
    for program in programs(300):
        for revert, delete in pairwise(program):
            if (revert["op"], delete["op"]) == ("revert", "delete"):
                gone += revert["name"] == delete["name"]
    assert gone > 8, gone


def test_live_is_written_at_single_places_while_deleted_snapshots_of_a_tree_are_freed() -> None:
    pruned = 0
    for program in programs(120):
        begins = program[1:120]
        branches = sum(one["op"] == "revert" for one in begins)
        single = [
            one["op"] == "delete" and other["op"] == "write" and len(other["tags"]) == 1
            for one, other in pairwise(begins)
        ]
        pruned += branches > 1 and sum(single) > 1
    assert pruned > 3, pruned


def test_a_crowd_of_snapshots_is_more_than_a_byte_counts_and_shares_all() -> None:
    most = 0
    for program in programs(450):
        in_a_row = 0
        for request in program:
            in_a_row = in_a_row + 1 if request["op"] == "snapshot" else 0
            most = max(most, in_a_row)
    assert most >= 257, most


def test_a_snapshot_comes_and_goes_more_often_than_a_byte_counts_while_the_disk_is_open() -> None:
    most = 0
    for program in programs(450):
        in_a_row = 0
        for one, two in pairwise([one for one in program if "name" in one or one["op"] == "crash"]):
            if (one["op"], two["op"]) == ("snapshot", "delete"):
                in_a_row += one["name"] == two["name"]
            elif (one["op"], two["op"]) != ("delete", "snapshot"):
                in_a_row = 0
            most = max(most, in_a_row)
    assert most >= 253, most


def test_a_checkpoint_comes_before_each_of_many_openings() -> None:
    """One in a byte's numbers: whoever compares the numbers of checkpoints in one byte is wrong."""
    most = 0
    for program in programs(700):
        in_a_row = 0
        for one, two in pairwise([one for one in program if one["op"] != "read"]):
            stored = one["op"] == "checkpoint" and two["op"] in ("crash", "restart")
            in_a_row += stored
            if two["op"] in ("crash", "restart") and one["op"] not in ("checkpoint", "scrub"):
                in_a_row = 0
            most = max(most, in_a_row)
    assert most >= 257, most


def test_disks_that_share_blocks_are_more_often_formatted_with_one_block() -> None:
    def formats(shares: bool) -> int:
        options = {"deduplication": shares}
        disks = [
            generate.program(random.Random(seed), HELLO, 30, options=options, wide=True)
            for seed in range(600)
        ]
        writes = [
            [one["tags"] for one in program[:40] if len(one.get("tags", ())) > 1]
            for program in disks
        ]
        return sum(
            sum(len(tags) for tags in some if {*tags} == {*some[0]}) >= 256
            for some in writes
            if some and len({*some[0]}) == 1
        )

    few, many = formats(False), formats(True)
    assert many > 2 * few and many > 60, (few, many)


def test_all_blocks_are_written_again_and_again_durably() -> None:
    turned = 0
    for program in programs(240):
        begins = program[1:40]
        whole = [one for one in begins if len(one.get("tags", ())) == program[0]["blocks"]]
        durably = [one for one in begins if one["op"] == "flush" or "fua" in one]
        turned += program[0]["blocks"] > 3 and len(whole) > 5 and len(durably) > 3
    assert turned > 4, turned


def test_a_full_disk_is_written_over_by_chance_for_long() -> None:
    churned = 0
    for program in programs(150):
        full = len(program[1].get("tags", ())) >= 0.75 * program[0]["blocks"] >= 12
        short = [one for one in program[2:150] if len(one.get("tags", ())) in range(1, 9)]
        churned += full and len(short) > 120
    assert churned > 3, churned


def test_much_is_made_durable_at_once_and_the_power_fails() -> None:
    """More than a batch of a log, or a buffer, may hold."""
    held_back = 0
    for program in programs(450):
        waiting = durable = 0
        for request in program[:500]:
            if request["op"] == "write" and "fua" not in request:
                waiting += 1
            elif request["op"] == "flush" or "fua" in request:
                durable, waiting = waiting, 0
            elif request["op"] in ("restart", "crash", "snapshot", "checkpoint"):
                held_back += request["op"] == "crash" and not waiting and durable >= 70
                waiting = durable = 0
    assert held_back > 3, held_back


def test_a_range_is_unmapped_from_where_nothing_ever_was_to_where_something_is() -> None:
    """As to a map of 8 blocks a leaf: the first leaf is not there, and the range does not begin
    with it."""
    from_holes = 0
    for program in programs(600):
        blocks, written = program[0]["blocks"], set[int]()
        for request in program:
            if request["op"] == "write":
                written |= {(request["lba"] + at) // 8 for at in range(len(request["tags"]))}
            elif request["op"] == "unmap" and request["lba"] + request["count"] <= blocks:
                leaf, last = request["lba"] // 8, (request["lba"] + request["count"] - 1) // 8
                hole = request["lba"] % 8 > 0 and leaf not in written
                from_holes += hole and last > leaf and leaf + 1 in written
    assert from_holes > 5, from_holes


def test_every_third_program_of_a_campaign_is_wide() -> None:
    usual, mixed = (
        [
            program
            for _, program in islice(
                generate.cases(lambda choose: {}, lambda _: HELLO, 30, 1, lives=lives), 8
            )
        ]
        for lives in (False, True)
    )
    assert mixed[:2] == usual[:2] and mixed[2] != usual[2] and mixed[5] != usual[5]


@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
def test_an_honest_target_passes_and_the_judge_decides(profile: str) -> None:
    hello = {**HELLO, "crash_profile": profile}
    for seed in range(16):
        program = generate.program(random.Random(seed), hello, 30, cuts=True, wide=True)
        opinion = judge_one(drive(ModelTarget({"profile": profile}), program, seed))
        assert (opinion.at, opinion.unsure) == (None, ""), seed


@pytest.mark.parametrize("block_size", [512, 4096])
def test_a_few_disks_are_larger_than_all_others(block_size: int) -> None:
    hello = {**HELLO, "block_size": block_size}
    disks = [
        generate.program(random.Random(seed), hello, 30, cuts=True, wide=True)
        for seed in range(150)
    ]
    large = [program for program in disks if program[0]["blocks"] > max(SIZES)]
    assert 2 <= len(large) < 40
    assert max(program[0]["blocks"] for program in large) * block_size <= MOST_BYTES
    assert max(map(len, large)) < 4000
    for program in large:
        views = [request.get("view") for request in program if request["op"] == "read"]
        assert len(views) < 1000


def test_the_power_fails_before_and_while_devices_are_away() -> None:
    capabilities = [*CAPABILITIES, "device"]
    hello = {**HELLO, "capabilities": capabilities, "devices": 4, "tolerates": 2}
    both = 0
    for seed in range(150):
        whole = away = 0
        failed = 0
        for request in generate.program(random.Random(seed), hello, 30, cuts=True, wide=True):
            failed += request["op"] == "fail"
            failed = 0 if request["op"] == "settle" else failed
            whole += request["op"] == "crash" and not failed
            away += request["op"] == "crash" and failed >= 2
        both += whole > 3 and away > 3
    assert both > 5, both


def test_devices_go_away_again_before_they_have_caught_up_and_are_relied_on_later() -> None:
    """Nothing opens the disk until they have settled. Then another one fails."""
    hello = {**HELLO, "capabilities": [*CAPABILITIES, "device"], "devices": 2, "tolerates": 1}
    letters = {"fail": "f", "return": "r", "replace": "x", "settle": "s", "write": "w"}
    again = 0
    for seed in range(200):
        program = generate.program(random.Random(seed), hello, 30, cuts=True, wide=True)
        steps = "".join(
            letters.get(one["op"], "c" if one["op"] in ("crash", "restart") else ".")
            + str(one.get("device", ""))
            for one in program
            if one["op"] != "read"
        )
        relapse = r"[rx](\d)[w.]*f\1[w.]*r\1[w.]*s[wc.]*f(?!\1)"
        again += re.search(relapse, steps) is not None
    assert again > 4, again


def test_nothing_is_changed_or_closed_while_more_devices_have_failed_than_are_tolerated() -> None:
    """A target could not store what is in its memory."""
    beyond = 0
    for seed in range(300):
        tolerates = 1 + seed % 2
        hello = {**HELLO, "capabilities": [*CAPABILITIES, "device"], "devices": 4}
        hello |= {"tolerates": tolerates}
        program = generate.program(random.Random(seed), hello, 30, cuts=True, wide=seed % 4 > 0)
        assert sent_beyond_tolerance(program, tolerates) == 0, seed
        closed = [one for request in program for one in (request, {"op": "restart"})]
        beyond += sent_beyond_tolerance(closed, tolerates) > 0
    assert beyond > 20, beyond


def test_outages_begin_within_outages() -> None:
    """A device is back and has not caught up: another one leaves, and the power fails; or the same
    one leaves again behind a checkpoint."""
    hello = {**HELLO, "capabilities": [*CAPABILITIES, "device"], "devices": 3, "tolerates": 2}
    letters = {"fail": "f", "return": "r", "settle": "s", "checkpoint": "k", "crash": "c"}
    another = behind = 0
    for seed in range(400):
        program = generate.program(random.Random(seed), hello, 30, cuts=True, wide=True)
        steps = "".join(
            letters.get(one["op"], ".") + str(one.get("device", ""))
            for one in program
            if one["op"] != "read"
        )
        another += re.search(r"r(\d)[^sr]*f(?!\1)\d[^s]*c", steps) is not None
        behind += re.search(r"r(\d)[^sr]*k[^sr]*f\1", steps) is not None
    assert another > 20 and behind > 3, (another, behind)


def test_a_tree_of_views_changes_for_long_and_is_read_at_the_end() -> None:
    """Only a power cut is followed by reads before."""
    wandered = 0
    for program in programs(450):
        ops = "".join(SHORT.get(one["op"], ".") for one in program if one["op"] != "clean")
        wandered += any(
            min(map(walk.count, "srdkw")) > 1 for walk in re.findall("[srdkwo]{20,}", ops)
        )
    assert wandered > 5, wandered


def test_some_deleted_snapshots_are_freed_whole_before_another_one_is_deleted() -> None:
    """Then that one is freed in part while single blocks are written, and the others are gone."""
    freed = 0
    for program in programs(480):
        some = [one for one in program[:150] if one["op"] != "read"]
        ops = ["single" if len(one.get("tags", ())) == 1 else one["op"] for one in some]
        steps = "".join({"delete": "d", "clean": "c", "single": "w"}.get(op, ".") for op in ops)
        freed += re.search(r"dw*(cw*)+dw", steps) is not None
    assert freed > 3, freed


def test_the_names_of_a_shape_may_differ_at_their_end_only() -> None:
    alike = 0
    for program in programs(130):
        taken = {one["name"] for one in program[:60] if one["op"] == "snapshot"}
        alike += len(taken) > 1 and len({name[:60] for name in taken}) == 1
    assert alike > 3, alike


def test_trees_of_views_are_opened_while_they_grow_and_stored_while_they_are_freed() -> None:
    """Behind a deletion checkpoints and writes take turns, so that a view is freed over several
    checkpoints."""
    opened = stored = 0
    for program in programs(4000):
        some = [one for one in program[1:120] if one["op"] != "read"]
        if program[0]["blocks"] >= 24 and any(one["op"] == "revert" for one in some):
            ops = "".join(SHORT.get(one["op"], ".") for one in some)
            opened += re.search("^w[wr]*sr?k?o+r?w+s", ops) is not None
            stored += re.search("d[wk]*kw+kw", ops) is not None
    assert opened > 20 and stored > 5, (opened, stored)


def test_too_many_devices_that_are_away_return_before_the_disk_is_opened_again() -> None:
    hello = {**HELLO, "capabilities": [*CAPABILITIES, "device"], "devices": 3, "tolerates": 1}
    hello["outages_end"] = True
    ended = relapsed = 0
    for seed in range(300):
        program = generate.program(random.Random(seed), hello, 30, cuts=True)
        letters = {"fail": "f", "return": "r", "settle": "s", "read": "", "write": "w"}
        steps = "".join(letters.get(one["op"], ".") + str(one.get("device", "")) for one in program)
        ended += re.search(r"f(\d)w*\.?f\dr\d(f\dr\d)?r\ds", steps) is not None
        relapsed += re.search(r"f(\d)w*\.?f\dr\1f\1r\dr\ds", steps) is not None
    assert ended > 20 and relapsed > 10, (ended, relapsed)
