"""Traces on which the engine once failed: it passes them now."""

from pathlib import Path

import pytest

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.contract import trace as traces
from conformance.judging.judge import judge
from conformance.judging.oracles import named

FOUND = sorted((Path(__file__).parent / "found").glob("*.jsonl"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_the_engine_passes_it_now(path: Path) -> None:
    once = traces.read(path)
    assert judge([once], {"model": named("model")})[0].verdict == "fail"
    bench = Bench(targets.resolve("refmodel"))
    try:
        now = bench.drive(once.program, once.seed, once.options)
    finally:
        bench.clear()
    assert judge([now], {"model": named("model")})[0].verdict == "pass"
