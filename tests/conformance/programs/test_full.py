"""Programs on full disks: most of their disks get full, stay so, and nothing else is left out."""

import random
from collections import Counter
from typing import Any

import pytest

from conformance.campaign.driver import Bench
from conformance.contract.coverage import outcome_of
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.programs import full, generate
from conformance.targets import resolve

OPTIONS: dict[str, Any] = {"capacity_percent": 100, "segment_blocks": 2, "block_bytes": 512}


def outcomes(seeds: range, options: dict[str, Any] = OPTIONS) -> list[Counter[tuple[str, str]]]:
    """Return what the engine, which keeps the contract, answered to each program."""
    bench = Bench(resolve("refmodel"))
    traces = []
    for seed in seeds:
        hello = bench.hello(options)
        program = generate.program(random.Random(seed), hello, 40, options=options)
        traces.append(bench.drive(program, seed, options))
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


def test_snapshots_and_single_blocks_take_the_last_of_what_maps_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then even a snapshot is refused, which takes no block; a deletion may not be."""
    monkeypatch.setattr(full, "FULL_ONE_IN", 1)
    options = {**OPTIONS, "capacity_percent": 400, "pages": 80, "fanout": 3}

    def refused() -> int:
        return sum(one["snapshot", "no-space"] for one in outcomes(range(16), options))

    often = refused()
    monkeypatch.setattr(full, "SMALL", (0,))
    seldom = refused()
    assert often > 10 and often > 3 * seldom, (often, seldom)
