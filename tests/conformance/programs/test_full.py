"""Programs on full disks: most of their disks get full, stay so, and nothing else is left out."""

import random
from collections import Counter

import pytest

from conformance.campaign.driver import Bench
from conformance.contract.coverage import outcome_of
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.programs import full, generate
from conformance.targets import resolve

OPTIONS = {"capacity_percent": 100, "segment_blocks": 2, "block_bytes": 512}


def outcomes(seeds: range) -> list[Counter[tuple[str, str]]]:
    """Return what the engine, which keeps the contract, answered to each program."""
    bench = Bench(resolve("refmodel"))
    traces = []
    for seed in seeds:
        hello = bench.hello(OPTIONS)
        program = generate.program(random.Random(seed), hello, 40, options=OPTIONS)
        traces.append(bench.drive(program, seed, OPTIONS))
    bench.clear()
    assert {one.verdict for one in judge(traces, {"model": named("model")})} == {"pass"}
    return [Counter((event["op"], outcome_of(event)) for event in one.events) for one in traces]


def test_full_disks_refuse_writes_and_take_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full, "FULL_ONE_IN", 1)
    seen = outcomes(range(12))
    refused = [one["write", "no-space"] for one in seen]
    assert sum(count >= 5 for count in refused) > 8, refused
    assert sum(one["write", "ok"] for one in seen) > 4 * len(seen)
    monkeypatch.setattr(full, "FULL_ONE_IN", 1 << 30)
    others = [one["write", "no-space"] for one in outcomes(range(12))]
    assert sum(refused) > 3 * sum(others), (refused, others)
