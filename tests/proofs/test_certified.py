"""The certified checker as an oracle: it judges every run, in the kit's words; and what
`agreement` would catch."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from agreement import PROFILES, disputed, doubtful, driven, scrambled, undeclared
from click.testing import CliRunner

from conformance.cli import main
from conformance.contract.trace import Event, Trace
from conformance.judging.explain import CLAUSES
from conformance.judging.judge import judge
from conformance.judging.oracles import Opinion, Oracle, certified, model, tlc
from conformance.judging.orders import search
from conformance.selftest.overlapping_histories import history
from support.overlap import admitted, answered_meanwhile


def judges(**others: Oracle) -> dict[str, Oracle]:
    return {"certified": certified.judge, "model": model.judge, **others}


def test_it_agrees_with_the_model() -> None:
    """A small part of what agreement.py, which `make proofs` runs, asks of TLC as well."""
    good = [trace for profile in PROFILES for trace in driven(profile, 11, 8, 40)]
    batch = good + [scrambled(trace, step) for step in range(3) for trace in good]
    batch += [doubtful(trace) for trace in good] + [
        undeclared(trace, i) for i, trace in enumerate(good)
    ]
    found, said = disputed(batch, judges())
    assert found == {} and {each["certified"].at is None for each in said} == {True, False}


def test_a_dispute_is_found() -> None:
    batch = driven("ack", 3, 4, 20)
    found, _ = disputed(
        batch, judges(liar=lambda some: [Opinion(1 if i == 2 else None) for i in range(len(some))])
    )
    assert list(found) == [2]
    assert (
        found[2] == "certified: all allowed; model: all allowed; liar: operation 1 is not allowed"
    )


def test_what_gives_up_alone_is_in_dispute() -> None:
    found, _ = disputed(
        driven("ack", 3, 2, 20), judges(lazy=lambda some: [Opinion(None, "too hard")] * len(some))
    )
    assert len(found) == 2


def test_it_joins_every_run() -> None:
    result = CliRunner().invoke(main, ["run", "--target", "model", "--traces", "2", "--seed", "1"])
    assert result.exit_code == 0 and "judge: model, certified" in " ".join(result.output.split())


def test_clauses_are_those_of_the_kit() -> None:
    source = (Path(__file__).parents[2] / "proofs" / "extraction" / "oracle.ml").read_text()
    clauses = dict(re.findall(r'(\w+)Clause -> "(.*)"', source))
    kit = {"Read": "read", "Snapshot": "snapshot", "Answer": "refusal", "Open": "open"}
    assert {name: clauses[name] for name in kit} == {
        name: CLAUSES[key] for name, key in kit.items()
    }


OK = {"ok": True}
REFUSED = {"ok": False, "error": "bad-request", "message": ""}
CREATE = {"op": "create", "blocks": 4, "result": OK}
LOST = {
    "op": "read",
    "lba": 0,
    "count": 1,
    "result": {"ok": False, "error": "data-lost", "message": ""},
}
FAILURE = {"op": "flush", "result": None, "failure": {"kind": "exit", "message": "gone"}}


@pytest.mark.parametrize(
    "events,at",
    [
        ([{**CREATE, "result": REFUSED}], 0),
        ([CREATE, {**CREATE, "result": REFUSED}, {"op": "flush", "result": OK}], 1),
        ([CREATE, {"op": "fail", "device": 0, "mode": "absent", "result": REFUSED}, LOST], None),
        ([CREATE, LOST], 1),
        ([CREATE, {"op": "flush", "result": OK}, FAILURE], None),
        ([CREATE, LOST, FAILURE], 1),
        ([{**CREATE, "result": None, "failure": FAILURE["failure"]}], None),
    ],
)
def test_refusals_and_failures_are_judged_as_the_model_does(
    events: list[Event],
    at: int | None,
) -> None:
    """A refused create is no disk; a refused fail may have failed; a failure ends a trace, and is
    not judged."""
    trace = Trace(
        {"crash_profile": "ack", "capabilities": ["device"], "tolerates": 0}, events, 1, {}
    )
    assert [
        opinion.at for name in ("certified", "model") for opinion in judges()[name]([trace])
    ] == [at, at]


def test_what_reads_as_before_is_no_further_world() -> None:
    """Else each power cut in an unmap of zeroes would double the worlds that are followed."""
    events: list[Event] = [{**CREATE, "blocks": 20}]
    for lba in range(20):
        events.append({"op": "unmap", "lba": lba, "count": 1, "result": None})
        events.append({"op": "crash", "result": OK})
    trace = Trace({"crash_profile": "ack", "capabilities": ["unmap"]}, events, 1, {})
    assert [judges()[name]([trace]) for name in judges()] == [[Opinion(None)]] * 2


def of_devices(seed: int) -> Trace:
    """Return a trace of devices that fail and come back, with any answers, and one lost read."""
    choose = random.Random(seed)
    events: list[Event] = [CREATE]
    for _ in range(choose.randint(3, 9)):
        kind = choose.choice(["fail", "fail", "return", "replace", "settle"])
        event: Event = (
            {"op": kind} if kind == "settle" else {"op": kind, "device": choose.randint(0, 2)}
        )
        if kind == "fail":
            event["mode"] = choose.choice(["absent", "degraded"])
        unknown = {"ok": False, "error": "unknown-outcome", "message": ""}
        event["result"] = choose.choice([OK, OK, OK, REFUSED, REFUSED, unknown, None])
        events.append(event)
        if event["result"] is None:
            events.append({"op": "crash", "result": OK})
    hello = {"crash_profile": "ack", "capabilities": ["device", "crash"], "devices": 3}
    return Trace({**hello, "tolerates": choose.randint(0, 2)}, [*events, LOST], seed, {})


def test_it_agrees_on_which_devices_are_good() -> None:
    some = [of_devices(seed) for seed in range(400)]
    said = {name: [each.at for each in judge(some)] for name, judge in judges().items()}
    assert said["certified"] == said["model"] and len({at is None for at in said["model"]}) == 2
    assert [each.at for each in tlc.judge(some[:40])] == said["model"][:40]


def overlapped(seed: int, requests: int, **shape: Any) -> Trace:
    return history(random.Random(seed), requests, **shape)


def test_it_agrees_on_requests_that_overlap() -> None:
    """Small histories of all profiles and both granularities; a quarter of them are wrong."""
    some = [overlapped(seed, 12, blocks=3, in_flight=6, wrong=0.08) for seed in range(300)]
    said = certified.judge(some)
    found = [search.judge(trace) for trace in some]
    assert [opinion.at is None for opinion in said] == [outcome.at is None for outcome in found]
    assert sum(opinion.at is not None for opinion in said) > 30
    assert not any(opinion.unsure for opinion in said)


def test_its_verdict_is_by_definition_on_small_histories() -> None:
    some = [overlapped(seed, 6) for seed in range(200)]
    said = certified.judge(some)
    assert [opinion.at is None for opinion in said] == [admitted(trace) for trace in some]


def test_too_many_orders_are_undecided() -> None:
    """Sixteen writes at once that a power cut may all have let through or not. No order explains
    the read after it."""
    hello = {"crash_profile": "prefix", "capabilities": ["crash"], "in_flight": 16}
    create = {**CREATE, "blocks": 16, "called": 0, "answered": 1}
    writes = [
        {"op": "write", "lba": n, "tags": [n + 1], "result": None, "called": n + 2}
        | {"answered": None}
        for n in range(16)
    ]
    crash = {"op": "crash", "result": OK, "called": 20, "answered": 21}
    read = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [99]}}
    read |= {"called": 22, "answered": 23}
    (opinion,) = certified.judge([Trace(hello, [create, *writes, crash, read])])
    assert opinion.at is None and "too many orders" in opinion.unsure


def test_a_write_that_is_durable_is_not_taken_back() -> None:
    """Both judges know `fua` where requests overlap: after the power cut the tag must be there."""
    hello = {"crash_profile": "prefix", "capabilities": ["crash", "fua"], "in_flight": 2}
    write = {"op": "write", "lba": 0, "tags": [1], "fua": True, "result": OK}
    read = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [0]}}
    trace = Trace(
        hello,
        [
            {**CREATE, "called": 0, "answered": 1},
            {**write, "called": 2, "answered": 4},
            {**read, "called": 3, "answered": 5},
            {"op": "crash", "result": OK, "called": 6, "answered": 7},
            {**read, "called": 8, "answered": 9},
        ],
    )
    assert certified.judge([trace])[0].at == search.judge(trace).at == 4
    (verdict,) = judge([trace], judges())
    assert verdict.verdict == "fail" and verdict.at == 4


def test_a_durable_write_that_was_cut_may_outlive_earlier_ones() -> None:
    """Under `prefix` it is durable before it is answered, or not; what came before need not be."""
    hello = {"crash_profile": "prefix", "capabilities": ["crash", "fua"], "in_flight": 2}
    events = [
        {**CREATE, "blocks": 2, "called": 0, "answered": 1},
        {"op": "write", "lba": 0, "tags": [1], "result": OK, "called": 2, "answered": 3},
        {"op": "write", "lba": 1, "tags": [2], "fua": True, "result": None}
        | {"called": 4, "answered": None},
        {"op": "crash", "result": OK, "called": 5, "answered": 6},
    ]
    for tags, admitted_ in (([0, 2], True), ([1, 2], True), ([0, 0], True), ([2, 0], False)):
        read = {"op": "read", "lba": 0, "count": 2, "result": {"ok": True, "tags": tags}}
        trace = Trace(hello, [*events, {**read, "called": 7, "answered": 8}])
        assert (certified.judge([trace])[0].at is None) is admitted_
        assert (search.judge(trace).at is None) is admitted_


@pytest.mark.parametrize("recovers", [True, False], ids=["recovers", "cut short"])
def test_what_is_answered_after_crash_was_called_is_judged(recovers: bool) -> None:
    some = [answered_meanwhile("ack", tag, recovers) for tag in (1, 2)]
    assert [opinion.at for opinion in certified.judge(some)] == [None, 2]
