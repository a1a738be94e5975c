"""What users' own tests take: strategies that Hypothesis draws from, and a state machine."""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from conformance import strategies, targets
from conformance.contract.model import EMPTY
from conformance.contract.trace import Trace
from conformance.targets import Factory
from conformance.targets.base import Message
from conformance.targets.model import ModelTarget

QUICK = settings(
    max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


class Forgetful(ModelTarget):
    """A delete also forgets what live holds."""

    knobs = {"profile": ["ack"]}

    def request(self, message: Message) -> Message:
        response = super().request(message)
        if message["op"] == "delete" and response["ok"]:
            state = self._states[0]
            self._states = (state._replace(live=EMPTY),)
        return response


@pytest.mark.parametrize("name", ["model", "refmodel"])
def test_an_honest_target_passes(name: str) -> None:
    factory = targets.resolve(name)

    @QUICK
    @given(strategies.traces(factory, ops=15))
    def test(trace: Trace) -> None:
        strategies.check(trace)

    test()


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # a trace is large
def test_hypothesis_draws_a_trace_that_fails() -> None:
    factory = Factory("forgetful", Forgetful, {}, Forgetful.knobs)
    short = settings(QUICK, max_examples=100, phases=[Phase.generate])

    @short
    @given(strategies.traces(factory, ops=15))
    def test(trace: Trace) -> None:
        strategies.check(trace)

    with pytest.raises(strategies.Broken, match="clause"):
        test()


def test_hypothesis_itself_shrinks_the_trace_and_replays_it_from_its_database() -> None:
    factory = Factory("forgetful", Forgetful, {}, Forgetful.knobs)
    remembered, seen = InMemoryExampleDatabase(), []

    def failing(*phases: Phase) -> None:
        @settings(QUICK, max_examples=300, derandomize=False, database=remembered, phases=phases)
        @seed(15)  # below the settings: it leaves the database out
        @given(strategies.traces(factory, ops=30))
        def test(trace: Trace) -> None:
            seen.append(trace)
            strategies.check(trace)

        with pytest.raises(strategies.Broken, match="clause"):
            test()

    failing(Phase.reuse, Phase.generate, Phase.shrink)
    shrunk = seen[-1]
    ops = {event["op"] for event in shrunk.events}
    assert shrunk.operations <= 5 and {"write", "snapshot", "delete"} <= ops, shrunk.program
    seen.clear()
    failing(Phase.reuse)
    assert [trace.program for trace in seen] == [shrunk.program] * len(seen)


def test_some_programs_have_requests_in_flight_together() -> None:
    factory = targets.resolve("refmodel:log-structured")
    kinds = set()

    @settings(QUICK, max_examples=60, phases=[Phase.generate])
    @given(strategies.traces(factory, ops=15))
    def drawn(trace: Trace) -> None:
        kinds.add(trace.overlapping)

    drawn()
    assert kinds == {True, False}


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # a trace is large
def test_a_planted_bug_of_overlapping_requests_is_found() -> None:
    factory = targets.resolve("refmodel:plant=write-happens-in-halves")

    @seed(1)
    @settings(QUICK, max_examples=2000, phases=[Phase.generate])
    @given(strategies.traces(factory))
    def test(trace: Trace) -> None:
        strategies.check(trace)

    with pytest.raises(strategies.Broken, match="clause"):
        test()


@pytest.mark.parametrize("crashes", [True, False])
def test_traces_have_power_cuts_unless_they_are_left_out(crashes: bool) -> None:
    found: set[str] = set()

    @settings(QUICK, max_examples=60, phases=[Phase.generate])
    @given(strategies.traces(targets.resolve("model:ack"), ops=15, crashes=crashes))
    def drawn(trace: Trace) -> None:
        found.update(event["op"] for event in trace.events)
        found.update("cut" for event in trace.events if "cut" in event)

    drawn()
    assert (found >= {"crash", "cut"}) if crashes else not found & {"crash", "cut"}


def test_the_disk_of_a_state_machine_is_as_large_as_asked() -> None:
    sizes = set()

    class Measured(ModelTarget):
        def request(self, message: Message) -> Message:
            if message["op"] == "create":
                sizes.add(message["blocks"])
            return super().request(message)

    machine = strategies.machine(Factory("measured", Measured), blocks=3)
    run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=2))
    assert sizes == {3}


def test_an_honest_array_passes_the_state_machine() -> None:
    machine = strategies.machine(targets.resolve("refmodel:layout=raid6-4+2"))
    run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=5))


def test_a_state_machine_finds_it_too() -> None:
    honest = strategies.machine(targets.resolve("model:ack"))
    run_state_machine_as_test(honest, settings=QUICK)
    factory = Factory("forgetful", Forgetful, {}, Forgetful.knobs)
    with pytest.raises(strategies.Broken, match="clause"):
        run_state_machine_as_test(
            strategies.machine(factory),
            settings=settings(QUICK, max_examples=300, phases=[Phase.generate]),
        )
