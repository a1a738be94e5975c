"""The oracle that is the contract in Python: conformance.contract.model."""

from collections.abc import Sequence

from conformance.contract import model
from conformance.contract.trace import Trace
from conformance.judging.oracles import Opinion
from conformance.judging.orders import search


def judge(traces: Sequence[Trace]) -> list[Opinion]:
    """Return one opinion per trace, in their order."""
    return [judge_one(trace) for trace in traces]


def judge_one(trace: Trace, most_steps: int = search.MOST_STEPS) -> Opinion:
    """Return the opinion of the model: where the trace leaves the contract, if it does.

    A failure of the target is no event of the contract, and ends the trace. Requests that overlap
    are judged by the search for an order, in at most `most_steps`.
    """
    if trace.overlapping:
        outcome = search.judge(trace, most_steps)
        return Opinion(outcome.at, outcome.unsure, held=outcome.held)
    states = model.init(trace.hello)
    for index, event in enumerate(trace.events):
        if "failure" in event:
            return Opinion(None)
        try:
            states = model.step(states, event)
        except model.Undecided as reason:
            return Opinion(None, f"operation {index}: {reason}")
        if not states:
            return Opinion(index)
    return Opinion(None)
