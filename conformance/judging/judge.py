"""What several oracles together make of traces."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance.contract.trace import Trace
from conformance.judging import overlapping, promises
from conformance.judging.explain import PASS, Verdict, broken_promise, disallowed_inside, explain
from conformance.judging.explain_overlap import overlapping_verdict
from conformance.judging.oracles import INNER, OVERLAP, Opinion, Oracle


def judge(traces: Sequence[Trace], oracles: Mapping[str, Oracle]) -> list[Verdict]:
    """One verdict a trace, in their order, on the opinions of all `oracles` (name -> oracle).

    Oracles of the contract that disagree make it inconclusive: one of them is wrong. A trace that
    keeps the contract still fails if what happened inside is not as it should be. A trace whose
    requests overlap is judged by the search for an order, and by those oracles that take it. If
    none does overlap after all, it is judged as a sequence.
    """
    traces = [_in_turn(trace) for trace in traces]
    given = {
        name: dict(zip(map(id, taken), oracle(taken), strict=True))
        for name, oracle in oracles.items()
        for taken in [[trace for trace in traces if name in OVERLAP or not trace.overlapping]]
    }
    return [
        (_overlapping if trace.overlapping else _together)(
            trace, {name: said[id(trace)] for name, said in given.items() if id(trace) in said}
        )
        for trace in traces
    ]


def _in_turn(trace: Trace) -> Trace:
    """The trace without positions if no requests overlap, so that they add nothing to its order."""
    if not trace.overlapping or trace.hello.get("atomic") == "block" or not trace.in_turn:
        return trace
    events = [
        {key: value for key, value in event.items() if key not in ("called", "answered")}
        for event in trace.events
    ]
    return replace(trace, events=events)


def _overlapping(trace: Trace, opinions: dict[str, Opinion]) -> Verdict:
    outcome = overlapping.judge(trace)
    sure = {name: opinion.at for name, opinion in opinions.items() if not opinion.unsure}
    if not outcome.unsure and any(_differ(outcome.at, at) for at in sure.values()):
        return _disagreement({"search": outcome.at, **sure})
    if outcome.at is not None:
        outcome.at = min(at for at in (outcome.at, *sure.values()) if at is not None)
    return overlapping_verdict(trace, outcome)


def _differ(searched: int | None, at: int | None) -> bool:
    """Whether an exact opinion is another one. The search may find that there is no order at a
    later answer than the first.
    """
    return searched != at if searched is None or at is None else searched < at


def _together(trace: Trace, opinions: dict[str, Opinion]) -> Verdict:
    within = opinions.pop(INNER, Opinion(None))
    verdict = _of_contract(trace, opinions)
    if verdict != PASS:
        return verdict
    if within.unsure:
        return Verdict("inconclusive", reason=f"{INNER}: {within.unsure}")
    return PASS if within.at is None else disallowed_inside(within.at, within.inside)


def _of_contract(trace: Trace, opinions: dict[str, Opinion]) -> Verdict:
    opinions = {name: opinion for name, opinion in opinions.items() if not opinion.silent}
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
    unsure = [f"{name}: {opinion.unsure}" for name, opinion in opinions.items() if opinion.unsure]
    return Verdict("inconclusive", reason="; ".join(unsure)) if unsure else PASS


def _disagreement(sure: Mapping[str, int | None]) -> Verdict:
    said = "; ".join(
        f"{name}: {'all allowed' if at is None else f'not allowed: operation {at}'}"
        for name, at in sure.items()
    )
    return Verdict(
        "inconclusive",
        reason=f"the oracles disagree ({said}): a bug of this kit, please report it",
    )
