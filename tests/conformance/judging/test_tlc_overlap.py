"""TLC through specs/TraceOverlappingDisk and the search in Python reject the same traces.

The search names the first answer up to which a trace has no order, or a later one if it gave up on
prefixes. TLC knows at each call what will be answered, so it may stop at an earlier answer, which
later ones contradict; given only what came up to the answer of the search, it rejects that, too.
"Earlier" is said of the positions of answers: requests need not be answered in the order of calls.
"""

import random
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.examples.overlapping_disk import Disk
from conformance.judging.judge import judge
from conformance.judging.oracles import Opinion, model, named, tlc
from conformance.judging.orders import search
from conformance.judging.orders.steps import placed, until
from conformance.programs import overlap
from conformance.selftest import corrupt
from conformance.selftest.corpus.overlapping import WRONG
from conformance.selftest.overlapping_histories import history
from conformance.targets import Build, Factory
from support.buffering_disk import BufferingDisk

PROFILES = ("ack", "prefix", "block")
SIZES = (2, 2, 3, 5, 8)  # blocks: where each block is a step, TLC needs minutes for larger disks


@pytest.fixture(autouse=True)
def small_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of small disks."""
    monkeypatch.setattr(overlap, "SIZES", SIZES)
    monkeypatch.setattr(overlap, "SIZES_OF_ROUNDS", SIZES)


def recorded(count: int, ops: int = 24) -> list[Trace]:
    """So many traces of the honest disk. With more than 4 requests in flight TLC gives up."""
    bench = Bench(Factory("buffering", BufferingDisk))
    found = []
    for seed in range(count):
        atomic = "block" if seed % 2 else "request"
        options = {"profile": PROFILES[seed % 3], "atomic": atomic, "seed": seed}
        choose = random.Random(f"program {seed}")
        program = overlap.written(choose, bench.hello(options), ops, choose.choice([2, 3, 4]))
        found.append(bench.drive(program, seed, options))
    return found


def corrupted(traces: list[Trace], count: int) -> list[Trace]:
    """So many traces with one fault each, of every kind that there is a place for."""
    kinds = corrupt.CONSTRUCTED | corrupt.CHOSEN
    found: list[Trace] = []
    for number, trace in enumerate(traces * len(kinds)):
        kind = [*kinds][(number + number // len(traces)) % len(kinds)]
        choose = random.Random(f"{kind} {number}")
        for at, event in islice(kinds[kind](trace, choose), 1):
            after = [event] if event is not None else []
            events = [*trace.events[:at], *after, *trace.events[at + 1 :]]
            if event is None or event["op"] == trace.events[at]["op"]:
                found.append(Trace(trace.hello, events, trace.seed, trace.options))
    return found[:count]


def agree(traces: list[Trace]) -> Counter[str]:
    """Require that both say the same of each trace; count what they say."""
    said: Counter[str] = Counter()
    prefixes = []
    for number, (trace, opinion) in enumerate(zip(traces, tlc.judge(traces), strict=True)):
        outcome = search.judge(trace)
        if opinion.unsure or outcome.unsure:
            said["given up"] += 1
            continue
        assert (opinion.at is None) == (outcome.at is None), (number, trace.hello)
        if opinion.at is not None and outcome.at is not None:
            end = answered(trace, outcome.at)
            assert answered(trace, opinion.at) <= end, (number, trace.hello)
            prefixes.append(replace(trace, events=until(trace.events, end)))
        said["accepted" if opinion.at is None else "rejected"] += 1
    assert all(opinion.at is not None or opinion.unsure for opinion in tlc.judge(prefixes))
    return said


def answered(trace: Trace, index: int) -> int:
    """The position of the answer to a request; of a crash cut short, that of the call."""
    event = trace.events[index]
    position: int = event["called"] if event["answered"] is None else event["answered"]
    return position


def test_both_agree_on_histories_and_on_what_no_disk_could_answer() -> None:
    said = agree([history(random.Random(seed), 9, 3) for seed in range(240)])
    assert min(said["accepted"], said["rejected"]) > 30 and not said["given up"], said


def test_both_accept_an_honest_disk_and_agree_on_its_traces_corrupted() -> None:
    honest = recorded(36, 12)
    said = agree([*honest, *corrupted(honest, 120)])
    assert said["rejected"] > 70 and said["accepted"] >= 36 and said["given up"] <= 8, said


def opens(disk: type[Disk]) -> Build:
    return lambda options: disk({"seed": options["seed"]})


def test_both_agree_on_the_wrong_disks() -> None:
    found = []
    for name, disk in WRONG.items():
        bench = Bench(Factory(name, opens(disk)))
        for seed in range(8):
            hello = bench.hello({"seed": seed})
            program = overlap.written(random.Random(f"wrong {seed}"), hello, 24, 8)
            found.append(bench.drive(program, seed, {"seed": seed}))
    said = agree(found)
    assert said["rejected"] >= 8 and said["given up"] <= 6, said


def test_the_verdict_is_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    (trace,) = corrupted(recorded(1), 1)
    at = search.judge(trace).at
    oracles = {"model": named("model"), "tlc": tlc.judge}
    [verdict] = judge([trace], oracles)
    assert at is not None and verdict.verdict == "fail"
    assert verdict.at is not None and verdict.at <= at
    [verdict] = judge([trace], oracles | {"tlc": lambda traces: [Opinion(None)] * len(traces)})
    assert verdict.verdict == "inconclusive" and "disagree" in verdict.reason


def test_what_takes_too_many_states_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tlc, "MOST_STATES", 30)
    [opinion] = tlc.judge(recorded(1))
    assert opinion.at is None and "more than 30 states" in opinion.unsure


def test_both_let_a_hint_be_unsupported() -> None:
    no = {"ok": False, "error": "unsupported"}
    create = {"op": "create", "blocks": 1, "result": {"ok": True}}
    hello = {"block_size": 512, "crash_profile": "ack", "capabilities": ["clean", "scrub"]}
    hints = [{"op": op, "result": no} for op in ("clean", "checkpoint", "scrub", "tick", "settle")]
    in_turn = Trace(hello, [create, *hints])
    overlapping = replace(in_turn, events=placed(in_turn.events))
    for trace in (in_turn, overlapping):
        assert tlc.judge([trace])[0] == model.judge([trace])[0] == Opinion(None)


def test_both_let_an_unrefused_request_past_the_end_change_blocks_within_the_disk() -> None:
    """Where blocks are steps, it is requests of one block each. A refusal is of the whole."""
    hello = {"block_size": 512, "crash_profile": "ack", "capabilities": [], "atomic": "block"}
    create = {"op": "create", "blocks": 2, "result": {"ok": True}}
    crash = {"op": "crash", "result": {"ok": True}}

    def at(result: dict[str, object] | None, tag: int) -> list[int | None]:
        write = {"op": "write", "lba": 1, "tags": [1, 2], "result": result}
        read = {"op": "read", "lba": 1, "count": 1, "result": {"ok": True, "tags": [tag]}}
        events = placed([create, write, *([] if result else [crash]), read])
        trace = Trace(hello, events)
        return [tlc.judge([trace])[0].at, model.judge([trace])[0].at]

    unknown = {"ok": False, "error": "unknown-outcome"}
    for answer in (unknown, None):
        assert at(answer, 0) == at(answer, 1) == [None, None]
        assert None not in at(answer, 2)
    assert at({"ok": False, "error": "out-of-range"}, 1) == [2, 2]
    assert at({"ok": False, "error": "out-of-range"}, 0) == [None, None]
    assert at({"ok": True}, 1) == [1, 1]
