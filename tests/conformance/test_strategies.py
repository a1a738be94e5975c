"""What users' own tests take: strategies that Hypothesis shrinks, and a state machine."""

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.stateful import run_state_machine_as_test

from conformance import strategies, targets
from conformance.contract.model import EMPTY
from conformance.contract.trace import Trace
from conformance.targets import Factory
from conformance.targets.model import ModelTarget

QUICK = settings(
    max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


class Forgetful(ModelTarget):
    """A delete also forgets what live holds."""

    knobs = {"profile": ["ack"]}

    def request(self, message):
        response = super().request(message)
        if message["op"] == "delete" and response["ok"]:
            state = self._states[0]
            self._states = (state._replace(live=EMPTY),)
        return response


def broken(trace: Trace) -> bool:
    try:
        strategies.check(trace)
    except strategies.Broken:
        return True
    return False


@pytest.mark.parametrize("name", ["model", "refmodel"])
def test_an_honest_target_passes(name):
    factory = targets.resolve(name)

    @QUICK
    @given(strategies.traces(factory, ops=15))
    def test(trace):
        strategies.check(trace)

    test()


def test_hypothesis_shrinks_a_trace():
    factory = Factory("forgetful", Forgetful, {}, Forgetful.knobs)
    more = settings(QUICK, max_examples=100)
    trace = find(strategies.traces(factory, ops=10), broken, settings=more)
    assert {"write", "snapshot", "delete"} <= {event["op"] for event in trace.events}
    assert len(trace.events) <= 25, trace.events


def test_a_state_machine_finds_it_too():
    honest = strategies.machine(targets.resolve("model:ack"))
    run_state_machine_as_test(honest, settings=QUICK)
    factory = Factory("forgetful", Forgetful, {}, Forgetful.knobs)
    with pytest.raises(strategies.Broken, match="clause"):
        run_state_machine_as_test(
            strategies.machine(factory),
            settings=settings(QUICK, max_examples=100, phases=[Phase.generate]),
        )
