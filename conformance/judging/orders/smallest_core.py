"""Why a trace has no order: a smallest set of requests for which none exists."""

from collections.abc import Iterable, Iterator, Sequence

from conformance.contract import model
from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging.orders.budget import TooMany
from conformance.judging.orders.steps import CHANGE_NOTHING, may_be_whole, until
from conformance.judging.orders.walk import Search

CORE_STEPS = 40_000  # steps of the contract, to explain a failure


def core(trace: Trace, at: int) -> list[int]:
    """A smallest set of requests, by index, for which no order exists up to the answer of `at`.

    A request that is left out of the set may take effect at any time after its call, or never, and
    may have answered anything. No request can be left out of the set without an order appearing,
    unless the search for the set took more than `CORE_STEPS`."""
    events = until(trace.events, trace.events[at]["answered"])
    needed = [
        index
        for index, event in enumerate(events)
        if event["op"] in OVERLAPPING and event["answered"] is not None
    ]
    budget, whole = CORE_STEPS, may_be_whole(trace)
    length = len(needed) // 2
    while length and budget > 0:
        for start in range(0, len(needed), length):
            rest = needed[:start] + [i for i in needed[start : start + length] if i == at]
            rest += needed[start + length :]
            search = Search(Trace(trace.hello, list(_relaxed(events, rest))), budget, whole)
            try:
                fails = len(rest) < len(needed) and search.run() is not None
            except (TooMany, model.Undecided):
                fails = False
            budget -= search.taken
            if fails:
                needed = rest
                break
            if budget <= 0:
                break
        else:
            length //= 2
    return needed


def _relaxed(events: Sequence[Event], needed: Iterable[int]) -> Iterator[Event]:
    kept = set(needed)
    for index, event in enumerate(events):
        if index in kept or event["op"] not in OVERLAPPING:
            yield event
        elif event["op"] not in CHANGE_NOTHING:
            yield {**event, "answered": None, "result": None}  # it may happen, or not
