"""The certified checker and the Python model agree, event for event, on good traces and on bad ones."""

import re
from itertools import islice
from pathlib import Path

import pytest

from conformance import corrupt, generate
from conformance.explain import CLAUSES
from conformance.oracles import certified, model
from conformance.runner import drive
from conformance.targets.model import ModelTarget
from conformance.trace import Trace

PROFILES = ("ack", "prefix", "block")


def driven(profile: str, seed: int, traces: int, ops: int) -> list[Trace]:
    target = ModelTarget({"profile": profile, "seed": seed})
    programs = generate.drawn(generate.programs(target.hello, ops, True, True), seed)
    return [drive(target, program) for program in islice(programs, traces)]


@pytest.fixture(scope="module")
def good() -> list[Trace]:
    return [trace for profile in PROFILES for trace in driven(profile, 7, 60, 60)]


def disagreements(batch: list[Trace]) -> list[str]:
    """One line a trace on which the two oracles say different things."""
    return [f"trace {i} ({trace.hello['crash_profile']}): certified {ours}, model {theirs}"
            for i, (trace, ours, theirs) in enumerate(zip(batch, certified.judge(batch), model.judge(batch)))
            if ours.at != theirs.at or bool(ours.unsure) != bool(theirs.unsure)]


def test_good_traces(good):
    assert all(opinion.at is None and not opinion.unsure for opinion in certified.judge(good))
    assert disagreements(good) == []


def test_corrupted_traces(good):
    bad = [made.trace for kind in corrupt.KINDS for seed, trace in enumerate(good)
           if (made := corrupt.corrupt(trace, kind, seed)) is not None]
    assert len(bad) >= 500 and sum(trace.operations for trace in bad + good) >= 100_000
    assert any(opinion.at is not None for opinion in certified.judge(bad))
    assert disagreements(bad) == []


def test_scrambled_traces(good):
    """Answers changed without asking whether the contract allows the result: both verdicts occur, and agree."""
    scrambled = [scramble(trace, step) for step in range(3) for trace in good]
    verdicts = {opinion.at is None for opinion in certified.judge(scrambled)}
    assert verdicts == {True, False}
    assert disagreements(scrambled) == []


def scramble(trace: Trace, step: int) -> Trace:
    """The trace with one answer of another kind, or the data of one read from another."""
    events = list(trace.events)
    at = 1 + (7 * step + 13 * len(events)) % (len(events) - 1)
    event = events[at]
    if event["op"] == "read" and event["result"] and event["result"]["ok"]:
        other = [e["result"]["tags"] for e in events if e["op"] == "read" and e["result"] and e["result"]["ok"]
                 and e["count"] == event["count"]]
        events[at] = {**event, "result": {"ok": True, "tags": other[step % len(other)]}}
    elif step == 0:
        events[at] = {**event, "result": {"ok": False, "error": "unknown-outcome"}}
    elif step == 1:
        events[at] = {**event, "result": {"ok": False, "error": "no-space"}}
    else:
        events[at] = {**event, "result": {"ok": False, "error": "data-lost"}}
    return Trace(trace.hello, events, trace.seed, trace.options)


def test_unknown_outcomes():
    """Many answers of unknown outcome: the two follow the same disks."""
    batch = []
    for profile in PROFILES:
        for trace in driven(profile, 19, 20, 40):
            events = [event if i % 5 or event["op"] not in ("write", "unmap", "snapshot", "delete", "revert", "flush")
                      else {**event, "result": {"ok": False, "error": "unknown-outcome"}}
                      for i, event in enumerate(trace.events)]
            batch.append(Trace(trace.hello, events, trace.seed, trace.options))
    assert disagreements(batch) == []


def test_clauses_are_those_of_the_kit():
    source = (Path(__file__).parents[2] / "proofs" / "extraction" / "oracle.ml").read_text()
    clauses = dict(re.findall(r'(\w+)Clause -> "(.*)"', source))
    kit = {"Read": "read", "Snapshot": "snapshot", "Answer": "refusal", "Open": "open"}
    assert {name: clauses[name] for name in kit} == {name: CLAUSES[key] for name, key in kit.items()}
