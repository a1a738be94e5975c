"""The verdict on a trace from the opinions of several oracles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from conformance.contract.model import answer_of
from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging import promises
from conformance.judging.explain import PASS, Verdict, broken_promise, disallowed_inside, explain
from conformance.judging.explain_overlap import overlapping_verdict
from conformance.judging.oracles import INNER, OF_ORDERS, Opinion, Oracle, model
from conformance.judging.orders.steps import CHANGE_NOTHING, by_block, placed, until


def judge(traces: Sequence[Trace], oracles: Mapping[str, Oracle]) -> list[Verdict]:
    """Return one verdict per trace, in their order, on the opinions of all `oracles` (name ->
    oracle).

    Oracles of the contract that disagree make it inconclusive: one of them is wrong. One that gives
    up where another one decides is named in the verdict, which is what was decided. A trace that
    keeps the contract still fails if what happened inside is not as it should be. A trace whose
    requests overlap is judged by those of the oracles that search for an order, or by the model if
    none of them does. So is one in which a step may come apart from its request. If nothing does
    either after all, the trace is judged as a sequence.
    """
    if any(promises.impossible(trace) for trace in traces):
        return _with_impossible(traces, oracles)
    traces = [_as_judged(trace) for trace in traces]
    overlapping = {name: oracle for name, oracle in oracles.items() if name in OF_ORDERS}
    alone = _opinions([trace for trace in traces if not trace.overlapping], oracles)
    others = _opinions(
        [trace for trace in traces if trace.overlapping], overlapping or {"model": model.judge}
    )
    return [
        _of_orders(trace, next(others)) if trace.overlapping else _together(trace, next(alone))
        for trace in traces
    ]


def _with_impossible(traces: Sequence[Trace], oracles: Mapping[str, Oracle]) -> list[Verdict]:
    """Judge traces; a disk that cannot exist only has to be refused."""
    others = iter(judge([one for one in traces if not promises.impossible(one)], oracles))
    return [_refused(one) if promises.impossible(one) else next(others) for one in traces]


def _refused(trace: Trace) -> Verdict:
    wrong = promises.accepted(trace)
    return PASS if wrong is None else broken_promise(wrong)


def _as_judged(trace: Trace) -> Trace:
    """Return the trace with positions if it needs an order, and without them if it needs none."""
    if any(_comes_apart(event, trace) for event in trace.events):
        return replace(trace, events=placed(trace.events))
    if not trace.overlapping or not trace.in_turn:
        return trace
    events = [
        {key: value for key, value in event.items() if key not in ("called", "answered")}
        for event in trace.events
    ]
    return replace(trace, events=events)


def _comes_apart(event: Event, trace: Trace) -> bool:
    """Return whether a part of the request may take effect elsewhere than its answer says.

    In version 2 a request of unknown outcome may take effect after its answer. Where one step is a
    block, a power cut may keep some blocks of a request, and not others."""
    if event["op"] not in OVERLAPPING or "failure" in event:
        return False
    answer = answer_of(event)
    if by_block(trace) and event["op"] in ("write", "unmap"):
        return answer in ("cut", "unknown-outcome") or trace.hello["crash_profile"] == "prefix"
    if answer != "unknown-outcome" or event["op"] in CHANGE_NOTHING:
        return False
    return trace.hello.get("protocol", 1) >= 2 or trace.overlapping


def _opinions(
    traces: Sequence[Trace], oracles: Mapping[str, Oracle]
) -> Iterator[dict[str, Opinion]]:
    """Yield what each oracle says of each trace, by name."""
    given = {name: oracle(traces) for name, oracle in oracles.items()} if traces else {}
    for index in range(len(traces)):
        yield {name: opinions[index] for name, opinions in given.items()}


def _of_orders(trace: Trace, opinions: dict[str, Opinion]) -> Verdict:
    """Return the verdict on requests that overlap.

    Each oracle is exact or undecided: one is enough.

    They may differ in the answer at which they see that there is no order."""
    sure = {name: opinion.at for name, opinion in opinions.items() if not opinion.unsure}
    failed = [at for at in sure.values() if at is not None]
    if failed and len(failed) < len(sure):
        return _disagreement(sure)
    first = min(failed, default=None)
    promise = promises.broken(trace, _held(trace, opinions.get("model"), first))
    if promise is not None and (first is None or _ends(trace, promise.at) < _ends(trace, first)):
        return broken_promise(promise)
    unsure = {name: opinion.unsure for name, opinion in opinions.items() if opinion.unsure}
    reason = "; ".join(f"{name}: {why}" for name, why in unsure.items())
    if not sure:
        return overlapping_verdict(trace, Opinion(None, reason))
    verdict = overlapping_verdict(trace, Opinion(first))
    if verdict == PASS and unsure:
        return replace(PASS, reason=reason, undecided=tuple(unsure))
    return verdict


def _held(trace: Trace, opinion: Opinion | None, first: int | None) -> Mapping[int, int]:
    """Return what the search counted; of a trace without an order, before its answer `first`."""
    if not promises.refuses_space(trace):
        return promises.EMPTY
    if first is None:
        return (opinion or model.judge_one(trace)).held
    before = replace(trace, events=until(trace.events, _ends(trace, first) - 1))
    return model.judge_one(before).held if before.events else promises.EMPTY


def _ends(trace: Trace, index: int) -> int:
    """Return the position of the answer to a request; of its call if it has none."""
    event = trace.events[index]
    position: int = event["called"] if event["answered"] is None else event["answered"]
    return position


def _together(trace: Trace, opinions: dict[str, Opinion]) -> Verdict:
    within = opinions.pop(INNER, Opinion(None))
    verdict = _of_contract(trace, opinions)
    if verdict.verdict != "pass":
        return verdict
    if within.unsure:
        return Verdict("inconclusive", reason=f"{INNER}: {within.unsure}")
    return verdict if within.at is None else disallowed_inside(within.at, within.inside)


def _of_contract(trace: Trace, opinions: dict[str, Opinion]) -> Verdict:
    sure = {name: opinion.at for name, opinion in opinions.items() if not opinion.unsure}
    if len(set(sure.values())) > 1:
        return _disagreement(sure)
    at = next(iter(sure.values()), None)
    if at is None and "failure" in trace.events[-1]:
        at = len(trace.events) - 1
    promise = promises.broken(trace)
    if promise is not None and (at is None or promise.at < at):
        return broken_promise(promise)
    if at is not None:
        return explain(trace, at)
    unsure = {name: opinion.unsure for name, opinion in opinions.items() if opinion.unsure}
    reason = "; ".join(f"{name}: {why}" for name, why in unsure.items())
    if sure and unsure:
        return replace(PASS, reason=reason, undecided=tuple(unsure))
    return Verdict("inconclusive", reason=reason) if unsure else PASS


def _disagreement(sure: Mapping[str, int | None]) -> Verdict:
    said = "; ".join(
        f"{name}: {'all allowed' if at is None else f'not allowed: operation {at}'}"
        for name, at in sure.items()
    )
    return Verdict(
        "inconclusive",
        reason=f"the oracles disagree ({said}): a bug of this kit, please report it",
    )
