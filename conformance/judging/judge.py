"""What several oracles together make of traces."""

from collections.abc import Mapping, Sequence

from conformance.contract.trace import Trace
from conformance.judging import overlapping, promises
from conformance.judging.explain import PASS, Verdict, broken_promise, disallowed_inside, explain
from conformance.judging.explain_overlap import overlapping_verdict
from conformance.judging.oracles import INNER, OVERLAP, Opinion, Oracle


def judge(traces: Sequence[Trace], oracles: Mapping[str, Oracle]) -> list[Verdict]:
    """One verdict a trace, in their order, on the opinions of all `oracles` (name -> oracle).

    Oracles of the contract that disagree make it inconclusive: one of them is wrong. A trace that
    keeps the contract still fails if what happened inside is not as it should be. A trace whose
    requests overlap is judged by the search for an order, and by those oracles that take it.
    """
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


def _overlapping(trace: Trace, opinions: dict[str, Opinion]) -> Verdict:
    """The verdict on requests that overlap. Who is sure is right: one that is sure is enough."""
    outcome = overlapping.judge(trace)
    sure = {
        name: opinion.at
        for name, opinion in opinions.items()
        if not opinion.unsure and not opinion.silent
    }
    if not outcome.unsure:
        sure["search"] = outcome.at
    if len({at is None for at in sure.values()}) > 1:  # where it ends may differ
        return _disagreement(sure)
    if "certified" in sure:  # it names the first answer without an order
        outcome = overlapping.Outcome(sure["certified"])
    return overlapping_verdict(trace, outcome)


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
