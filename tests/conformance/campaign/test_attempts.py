"""Sending a program again: only what may have failed alike is judged."""

import pytest

from conformance.campaign import attempts
from conformance.campaign.attempts import Attempts
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging.explain import PASS, Verdict
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.programs.shrink import Shrunk
from conformance.targets import Factory
from conformance.targets.base import Message, TargetFailure
from conformance.targets.model import ModelTarget


def judged(trace: Trace) -> Verdict:
    return judge([trace], {"model": named("model")})[0]


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


class Ages(ModelTarget):
    """Answers its first requests right, and then reads zeroes only."""

    right = 20

    def request(self, message: Message) -> Message:
        self.right -= 1
        answer = super().request(message)
        if self.right < 0 and "tags" in answer:
            answer["tags"] = [0] * len(answer["tags"])
        return answer


def test_what_fails_only_on_a_target_that_has_run_for_long_stays_long_enough() -> None:
    write, read = {"op": "write", "lba": 0, "tags": [8]}, {"op": "read", "lba": 0, "count": 1}
    bench = Bench(Factory("ages", lambda options: Ages({})))
    trace = bench.drive([PROGRAM[0], *[write, read] * 12], 1, {})
    verdict = judged(trace)
    assert verdict.kind == "stale"
    found = Attempts(bench, trace, verdict, judged).shrunk(5.0)
    assert found.failed == found.repeats and found.trace.operations == Ages.right
    again = Bench(Factory("new", lambda options: Ages({}))).drive(found.trace.program, 1, {})
    assert judged(again).verdict == "fail"


def test_a_failure_that_needs_the_trace_before_says_so() -> None:
    write, read = {"op": "write", "lba": 0, "tags": [8]}, {"op": "read", "lba": 0, "count": 1}
    program = [PROGRAM[0], write, read]
    bench = Bench(Factory("ages", lambda options: Ages({})))
    while (verdict := judged(trace := bench.drive(program, 1, {}))).verdict == "pass":
        pass
    found = Attempts(bench, trace, verdict, judged).shrunk(5.0)
    assert not found.failed and found.unfinished and found.trace.operations == 2
    assert "the trace before may be the cause" in found.verdict.actual


def test_what_is_flaky_stays_short_though_new_targets_did_not_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(Factory("model", lambda options: ModelTarget({})))
    trace, verdict = bench.drive(PROGRAM, 1, {}), Verdict("fail", 1, "stale")
    results = [Shrunk(trace, verdict, 3, 10), Shrunk(trace, verdict, 0, 10)]
    monkeypatch.setattr(attempts, "shrink", lambda *_: results.pop(0))
    found = Attempts(bench, trace, verdict, lambda _: PASS).shrunk()
    assert (found.failed, found.verdict.actual) == (3, "") and not results
