"""Programs whose requests overlap: the power fails in the middle of changes of all kinds."""

import random
from collections import Counter
from itertools import islice, pairwise, takewhile

import pytest

from conformance.programs import generate, overlap, woven
from conformance.targets.base import Message

CAPABILITIES = ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"]
HELLO = {"capabilities": CAPABILITIES, "crash_profile": "ack"}


def test_ordinary_programs_send_a_change_with_a_power_cut() -> None:
    cut: Counter[str] = Counter()
    for seed, plain in enumerate(islice(generate.programs(HELLO, 60, 1), 150)):
        sent = woven.woven(random.Random(seed), plain, 8, schedules=True)
        rest = iter(sent)
        assert all(any(same(one, other) for other in rest) for one in plain)
        written = [tag for request in sent for tag in request.get("tags", ())]
        more = len(written) - sum(len(request.get("tags", ())) for request in plain)
        assert len(set(written)) >= len({t for r in plain for t in r.get("tags", ())}) + more
        for before, crash in zip(sent, sent[1:], strict=False):
            if crash["op"] == "crash" and crash.get("overlaps"):
                cut[before["op"]] += 1
    assert all(cut[op] > 5 for op in overlap.CHANGES), cut
    assert sum(cut[op] for op in set(overlap.CHANGES)) > cut.total() / 2, cut


def test_the_power_fails_at_the_end_of_long_requests_that_overlap() -> None:
    """A target may write each block by itself, and then what makes them count."""
    ends = 0
    for seed in range(150):
        program = overlap.written(random.Random(seed), HELLO, 60, 8, cuts=True)
        for request in program:
            blocks = len(request.get("tags", ()))
            ends += blocks > 4 and request.get("cut", {}).get("after", 0) - blocks in (1, 2, 3)
    assert ends > 5, ends


def test_equal_blocks_are_written_together_where_the_target_stores_them_once() -> None:
    """One request may rely on a block that another one in flight has not written yet."""

    def together(shares: bool) -> int:
        pairs = 0
        for seed in range(60):
            program = overlap.written(random.Random(seed), HELLO, 60, 8, shares=shares)
            pairs += sum(
                bool({*one.get("tags", ())} & {*two.get("tags", ())}) and two.get("overlaps", 0) > 0
                for one, two in pairwise(program)
            )
        return pairs

    usual, shared = together(False), together(True)
    assert shared > 15 and not usual, (usual, shared)


def beside(sent: list[Message], at: int) -> list[Message]:
    """The requests that pass the one that stays behind, or none if none does: its schedule says a
    few steps, theirs that the newest goes on."""
    if f"{sent[at].get('schedule', 0):o}" not in [f"{'7' * 20}{steps}" for steps in (1, 2, 3)]:
        return []
    passing = takewhile(lambda one: f"{one.get('schedule', 0):o}" == "7" * 21, sent[at + 1 :])
    return [one for far, one in enumerate(passing, 1) if one.get("overlaps", 0) >= far]


def test_some_requests_stay_in_flight_while_their_blocks_are_written_over() -> None:
    slow: Counter[str] = Counter()
    times: list[int] = []
    flushed = 0
    for seed, plain in enumerate(islice(generate.programs(HELLO, 60, 1), 50)):
        sent = woven.woven(random.Random(seed), plain, 8, schedules=True)
        for at, request in enumerate(sent):
            over = beside(sent, at)
            slow[request["op"]] += bool(over)
            flushed += any(one["op"] == "flush" for one in over)
            writes = [one for one in over if one["op"] == "write"]
            if request["op"] == "read":
                first, last = request["lba"], request["lba"] + request["count"]
                times.append(sum(first <= one["lba"] < last for one in writes))
    assert sum(bool(count) for count in times) > 20 and max(times) >= max(woven.BESIDE), times
    assert all(slow[op] for op in ("write", "snapshot", "revert", "delete")), slow
    assert flushed > 10, "between the writes what they freed is made durable"


def test_a_snapshot_is_taken_while_a_write_stays_in_flight() -> None:
    """What the write found out before, such as what has to be copied, does not hold any more."""
    taken: Counter[str] = Counter()
    for seed, plain in enumerate(islice(generate.programs(HELLO, 60, 1), 50)):
        sent = woven.woven(random.Random(seed), plain, 8, schedules=True)
        for at, request in enumerate(sent):
            over = beside(sent, at)
            if over and over[-1].get("name") == woven.SEEN_FROM and "lba" in request:
                view = sent[at + len(over) + 1]
                taken[request["op"]] += view.get("view") == woven.SEEN_FROM
                assert not view.get("overlaps"), "the write has ended by then"
    assert taken["write"] > 10, taken


def test_some_races_have_a_slow_request_that_others_pass_one_after_another() -> None:
    slow: Counter[str] = Counter()
    for seed in range(200):
        sent = overlap.written(random.Random(seed), HELLO, 60, 8, schedules=True)
        for at, request in enumerate(sent):
            slow[request["op"]] += len(beside(sent, at)) > 1
    assert all(slow[op] > 5 for op in set(overlap.WEIGHTS) - {"view"}), slow


def test_changes_of_a_snapshot_are_passed_by_others_of_it() -> None:
    """What a slow request has found out may no longer be so when it goes on."""
    passed: Counter[tuple[str, str]] = Counter()
    for seed in range(400):
        sent = overlap.written(random.Random(seed), HELLO, 60, 8, schedules=True)
        for at, request in enumerate(sent):
            name = request.get("name", request.get("view"))
            if name is not None:
                over = {one["op"] for one in beside(sent, at) if one.get("name") == name}
                passed.update((request["op"], op) for op in over)
    pairs = [("revert", "delete"), ("delete", "revert"), ("delete", "snapshot")]
    assert all(passed[pair] > 5 for pair in [*pairs, ("read", "delete")]), passed


def test_a_request_waits_for_no_more_than_may_pass_it() -> None:
    """Otherwise the target waits in vain."""
    waits: Counter[str] = Counter()
    for seed, plain in enumerate(islice(generate.programs(HELLO, 60, 1), 50)):
        for how, sent in (
            ("woven", woven.woven(random.Random(seed), plain, 8, schedules=seed % 2 > 0)),
            ("races", overlap.written(random.Random(seed), HELLO, 60, 8)),
        ):
            for at, request in enumerate(sent):
                later = enumerate(sent[at + 1 :], 1)
                passing = list(takewhile(lambda one: one[1].get("overlaps", 0) >= one[0], later))
                assert request.get("wait", 0) <= len(passing)
                waits[how] += request.get("wait", 0) > 2
    assert min(waits["woven"], waits["races"]) > 10, waits


def test_durable_changes_that_met_are_answered_before_a_power_cut() -> None:
    hello = {**HELLO, "capabilities": [*CAPABILITIES, "fua"], "crash_profile": "prefix"}
    met = 0
    for seed, plain in enumerate(islice(generate.programs(hello, 60, 1), 100)):
        sent = woven.woven(random.Random(seed), plain, 8, in_turn=True)
        for one, other, crash in zip(sent, sent[1:], sent[2:], strict=False):
            durable = [request.get("fua") or request["op"] == "flush" for request in (one, other)]
            if crash["op"] == "crash" and "overlaps" not in crash and other.get("overlaps"):
                met += all(durable)
    assert met > 10, met


def test_a_flush_alone_makes_changes_of_snapshots_durable() -> None:
    hello = {**HELLO, "crash_profile": "prefix"}
    behind: Counter[str] = Counter()
    for seed, plain in enumerate(islice(generate.programs(hello, 60, 1), 200)):
        sent = woven.woven(random.Random(seed), plain, 8, in_turn=True)
        for change, flush, crash in zip(sent, sent[1:], sent[2:], strict=False):
            alone = flush["op"] == "flush" and not flush.get("overlaps")
            behind[change["op"]] += alone and crash["op"] == "crash"
    assert sum(behind[op] for op in ("snapshot", "delete", "revert")) > 30, behind


def test_two_flushes_are_in_flight_when_the_power_fails() -> None:
    """One of them may be answered since the other one has begun, which has made nothing durable."""
    hello = {**HELLO, "crash_profile": "prefix"}
    met = 0
    for seed, plain in enumerate(islice(generate.programs(hello, 60, 1), 200)):
        sent = woven.woven(random.Random(seed), plain, 8)
        for one, other, crash in zip(sent, sent[1:], sent[2:], strict=False):
            flushes = one["op"] == other["op"] == "flush" and other.get("overlaps", 0) > 0
            met += flushes and crash["op"] == "crash" and crash.get("overlaps", 0) > 1
    assert met > 20, met


def test_no_change_is_sent_while_too_many_devices_are_away() -> None:
    """The contract lets only reads be refused as data-lost."""
    hello = {**HELLO, "capabilities": [*CAPABILITIES, "device"], "devices": 3, "tolerates": 1}
    sent: Counter[str] = Counter()
    for seed, plain in enumerate(islice(generate.programs(hello, 60, 1), 300)):
        lacking: set[int] = set()
        for request in woven.woven(random.Random(seed), plain, 8, tolerates=1):
            if request["op"] == "fail":
                lacking.add(request["device"])
            elif request["op"] == "replace" or request["op"] == "return":
                lacking.discard(request["device"])
            elif len(lacking) > 1:
                sent[request["op"]] += 1
    assert sent["crash"] > 20 and not any(sent[op] for op in overlap.CHANGES), sent


def test_requests_overlap_while_a_device_catches_up() -> None:
    """A resync must not overwrite a later write, nor may the device count too early."""
    hello = {**HELLO, "capabilities": [*CAPABILITIES, "device"], "devices": 3, "tolerates": 1}
    met: Counter[str] = Counter()
    for seed in range(400):
        back, for_good = False, False
        for request in overlap.written(random.Random(seed), hello, 60, 8):
            if request["op"] in ("return", "replace"):
                met[request["op"]] += 1
                assert not (for_good and request["op"] == "return"), "it will not come back"
                back, for_good = True, False
            elif request["op"] in ("settle", "fail"):
                met["again"] += back and request["op"] == "fail"
                back = False
                for_good |= request.get("mode") == "degraded"
            elif back:
                met["opened"] += request["op"] in ("crash", "restart")
                met[request["op"]] += request.get("overlaps", 0) > 0
    assert min(met["return"], met["replace"], met["opened"]) > 5 and met["again"], met
    assert min(met["write"], met["read"]) > 20, met


def same(one: generate.Request, other: generate.Request) -> bool:
    """Return whether both programs ask for the same."""
    return one == {key: other[key] for key in other if key not in woven.HOW}


@pytest.mark.parametrize("schedules", [False, True])
def test_what_a_change_in_flight_changes_is_read(schedules: bool) -> None:
    seen: Counter[str] = Counter()
    for seed in range(300):
        program = overlap.written(random.Random(seed), HELLO, 60, 8, schedules=schedules)
        for change, read, crash in zip(program, program[1:], program[2:], strict=False):
            if crash["op"] == "crash" and crash.get("overlaps") and read["op"] == "read":
                seen[change["op"]] += change["op"] not in ("snapshot", "delete") or (
                    read.get("view") == change["name"]
                )
    assert all(seen[op] > 5 for op in overlap.CHANGES), seen


def test_the_power_fails_in_a_change_that_is_read() -> None:
    """A crash that is sent behind the answer of the read comes when the change is durable."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        program = overlap.written(random.Random(seed), HELLO, 60, 8, cuts=True)
        for change, read, crash in zip(program, program[1:], program[2:], strict=False):
            if "cut" in change and read["op"] == "read" and crash["op"] == "crash":
                meets = read.get("overlaps", 0) > 0 and "overlaps" not in crash
                seen[change["op"]] += meets and read["lba"] == change.get("lba", 0)
    assert all(seen[op] > 5 for op in overlap.CHANGES), seen


def test_in_some_programs_the_same_requests_meet_again_and_again() -> None:
    """All of a round are in flight together; then all views are read, or the power is cut."""
    met: Counter[tuple[str, ...]] = Counter()
    cut = whole = 0
    for seed in range(90):
        sent = overlap.written(random.Random(seed), HELLO, 120, 8, schedules=True)
        blocks = sent[0]["blocks"]
        for at, first in enumerate(sent):
            if first.get("overlaps", 0):
                continue
            others = takewhile(lambda one: one.get("overlaps", 0) >= 7, sent[at + 1 :])
            row = [first, *(one for one in others if one["op"] != "crash")]
            if 2 <= len(row) <= 8:
                met[tuple(sorted({one["op"] for one in row}))] += 1
                behind = sent[at + len(row)]
                cut += behind["op"] == "crash" and behind.get("overlaps") == len(row)
                reach = [one.get("count", len(one.get("tags", ()))) for one in row]
                whole += blocks > 16 and reach.count(blocks) > 1
    assert cut > 20 and whole > 3, (cut, whole)
    rare = [("snapshot",), ("delete", "revert"), ("read", "unmap"), ("flush", "write")]
    assert all(met[kinds] > 3 for kinds in rare), met


def test_rounds_show_half_of_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads are in flight with changes of many blocks, and ranges meet in their last block."""
    monkeypatch.setattr(overlap, "IN_ROUNDS_ONE_IN", 1)
    reads = edges = large = 0
    for seed in range(60):
        sent = overlap.written(random.Random(seed), HELLO, 120, 8, schedules=True)
        for one, other in zip(sent, sent[1:], strict=False):
            if not other.get("overlaps") or one["op"] != "write":
                continue
            end = one["lba"] + len(one["tags"])
            many = len(one["tags"]) >= 8 and other.get("lba") == one["lba"]
            reads += many and other["op"] == "read"
            edges += other.get("lba") == end - 1 and end - one["lba"] > 1
        large += sent[0]["blocks"] > overlap.LARGE
    assert reads > 50 and edges > 10 and large > 16, (reads, edges, large)


def test_after_many_changes_of_views_in_flight_all_is_read() -> None:
    """A judge follows each order in which they may have happened."""
    longest = 0
    for seed in range(60):
        sent = overlap.written(random.Random(seed), HELLO, 240, 8)
        unseen = 0
        for request in sent:
            named = request["op"] in overlap.NAMED and request.get("overlaps", 0) > 0
            whole = request["op"] == "read" and not request.get("overlaps") and request["lba"] == 0
            unseen = 0 if whole else unseen + named
            longest = max(longest, unseen)
    assert 10 < longest <= 24, longest
