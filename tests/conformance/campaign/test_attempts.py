"""Sending a program again: only what may have failed alike is judged."""

import pytest

from conformance.campaign.attempts import Attempts
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging.explain import PASS, Verdict
from conformance.targets import Factory
from conformance.targets.base import Message, TargetFailure
from conformance.targets.model import ModelTarget

PROGRAM: list[Message] = [{"op": "create", "blocks": 4}, {"op": "flush"}]


class Ends(ModelTarget):
    """Ends instead of flushing."""

    def request(self, message: Message) -> Message:
        if message["op"] == "flush":
            raise TargetFailure("exit", "it ended")
        return super().request(message)


@pytest.mark.parametrize(("kind", "judged"), [("exit", 1), ("hang", 0), ("scrub", 0), ("stale", 1)])
def test_a_trace_without_such_a_failure_is_not_judged(kind: str, judged: int) -> None:
    seen: list[Trace] = []

    def judge(trace: Trace) -> Verdict:
        seen.append(trace)
        return Verdict("fail", 1, "exit")

    bench = Bench(Factory("ends", lambda options: Ends({})))
    trace = bench.drive(PROGRAM, 1, {})
    outcome = Attempts(bench, trace, Verdict("fail", 1, kind), judge).send(PROGRAM)
    assert len(seen) == judged and (outcome is not None) == (kind == "exit")


def test_what_passes_does_not_fail_alike() -> None:
    bench = Bench(Factory("model", lambda options: ModelTarget({})))
    trace = bench.drive(PROGRAM, 1, {})
    assert Attempts(bench, trace, Verdict("fail", 1, "stale"), lambda _: PASS).send(PROGRAM) is None
