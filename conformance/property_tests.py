"""The tests that the pytest plugin adds: one for each class of properties of the contract.

Each asks the target for nothing but what its class is about. Hypothesis draws the traces and
remembers those that fail; the kit's own shrinker makes them short, because it needs far fewer
traces, and each may start a process. A failing trace is kept in .conformance/pytest, and the
message says how to replay it.
"""

import json
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

from conformance import strategies
from conformance.campaign.attempts import Attempts
from conformance.campaign.driver import Bench
from conformance.campaign.results import Campaign, Failure
from conformance.campaign.saved.kept_failures import FOLDER
from conformance.contract import trace as traces
from conformance.contract.trace import Trace
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.programs import swarm
from conformance.pytest_plugin import chosen
from conformance.reports import evidence
from conformance.targets import Factory
from conformance.targets.base import Unusable

CHOSEN = chosen()
CHANGES = {"flush", "snapshot", "delete", "revert", "unmap"}
# class -> the capabilities that it is about, and those that it also uses if they are declared
CLASSES: dict[str, tuple[set[str], set[str]]] = {
    "data": (set(), {"flush"}),
    "unmap": ({"unmap"}, {"flush"}),
    "snapshots": ({"snapshot"}, {"delete", "revert", "unmap"}),
    "restart": ({"restart"}, CHANGES),
    "background-work": ({"clean"}, CHANGES | {"scrub"}),
    "power-cuts": ({"crash"}, CHANGES | {"restart", "clean"}),
    "devices": ({"device"}, CHANGES | {"restart", "clean", "crash"}),
}


@pytest.mark.parametrize("about", CLASSES)
@settings(
    max_examples=CHOSEN.traces,
    deadline=None,
    phases=set(Phase) - {Phase.shrink, Phase.explain},
    suppress_health_check=list(HealthCheck),
    verbosity=Verbosity.quiet,  # the message of a failure lists the trace
)
@given(data=st.data())
def test_contract(about: str, data: st.DataObject) -> None:
    """Test that the target keeps the contract in traces of this class."""
    needed, _ = CLASSES[about]
    able = _capabilities()
    if isinstance(able, Unusable):
        pytest.fail(f"the target is unusable: {able.message}", pytrace=False)
    missing = needed - able
    if missing:
        pytest.skip(f"the target does not declare {', '.join(sorted(missing))}")
    trace = data.draw(_traces(about))
    try:
        strategies.check(trace)
    except strategies.Broken:
        raise strategies.Broken(_explained(about, json.dumps(trace.program), trace)) from None


@cache
def _capabilities() -> frozenset[str] | Unusable:
    """Return the capabilities of the target, or why it is unusable."""
    bench = Bench(CHOSEN.factory)
    try:
        return frozenset(bench.hello(CHOSEN.factory.first)["capabilities"])
    except Unusable as error:
        return error
    finally:
        bench.clear()


def _traces(about: str) -> st.SearchStrategy[Trace]:
    needed, used = CLASSES[about]
    left_out = frozenset(swarm.CAPABILITIES) - needed - used
    factory: Factory = replace(CHOSEN.factory, without=CHOSEN.factory.without | left_out)
    return strategies.traces(factory, ops=CHOSEN.ops)


_explanations: dict[str, str] = {}  # program -> message: Hypothesis sends what fails once more


def _explained(about: str, program: str, trace: Trace) -> str:
    """Return the failing trace, shortened, what is wrong with it, and the line that replays it."""
    if program not in _explanations:
        failure = _shrunk(trace)
        _keep(about, failure)
        lines = evidence.as_lines(Campaign(CHOSEN.factory.name, 0), [failure])
        _explanations[program] = "\n".join(lines)
    return _explanations[program]


def _shrunk(trace: Trace) -> Failure:
    judges = {"model": named("model")}
    verdict = judge([trace], judges)[0]
    bench = Bench(CHOSEN.factory)
    attempts = Attempts(bench, trace, verdict, lambda again: judge([again], judges)[0])
    try:
        found = attempts.shrunk()
    finally:
        bench.clear()
    times = (found.failed, found.repeats)
    return Failure(found.trace, found.verdict, None, trace.operations, *times, found.unfinished)


def _keep(about: str, failure: Failure) -> None:
    """Write the trace to a file, its `origin`. A folder that cannot be written to is no error."""
    path = FOLDER / "pytest" / f"{about}.jsonl"
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / ".gitignore").write_text("*\n", encoding="utf-8")
        traces.write(failure.trace, path)
        failure.trace.origin = str(path)
