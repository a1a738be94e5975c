"""Smallest cores: the smallest sets of requests of a trace for which no order exists."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from conformance.contract import model
from conformance.contract.printable import one_word
from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.judging.orders.budget import TooMany
from conformance.judging.orders.steps import (
    CHANGE_NOTHING,
    OF_BLOCKS,
    may_be_whole,
    one_block,
    until,
)
from conformance.judging.orders.walk import Search

CORE_STEPS = 40_000  # steps of the contract, to explain a failure
Events = Mapping[int, Event]  # index in the trace -> event


class Core(NamedTuple):
    """Requests for which no order exists, by index. `smallest`: none of them can be left out.
    `about`: the snapshot or the block that they have no order for, if it is one. `concerned`: all
    events about it.
    """

    needed: list[int]
    smallest: bool
    about: str
    concerned: Events


class _Searches:
    """Searches for an order of requests of one trace, CORE_STEPS together."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._whole = trace, may_be_whole(trace)
        self.left = CORE_STEPS

    def fail(self, events: Events, needed: Iterable[int]) -> bool:
        """Return whether these requests have no order. False if the search takes too many steps."""
        relaxed = Trace(self._trace.hello, list(_relaxed(events, needed)))
        search = Search(relaxed, self.left, self._whole)
        try:
            return search.run() is not None
        except (TooMany, model.Undecided):
            return False
        finally:
            self.left -= search.taken


def core(trace: Trace, at: int) -> Core:
    """Return a smallest set of requests for which no order exists up to the answer of `at`.

    A request that is left out of the set may take effect at any time after its call, or never, and
    may have answered anything. No request can be left out of the set without an order appearing,
    unless the search for the set took more than `CORE_STEPS`. If there is no order of what concerns
    one snapshot's existence, or one block that `at` read, only that is looked at: an order of all
    requests would be one of those, too."""
    searches = _Searches(trace)
    events = dict(enumerate(until(trace.events, trace.events[at]["answered"])))
    for about, alone in _parts(events, trace.events[at]):
        if searches.fail(alone, alone):
            return _smallest(searches, alone, at, about)
    return _smallest(searches, events, at, "")


def _parts(events: Events, last: Event) -> Iterator[tuple[str, Events]]:
    """Yield what concerns the existence of one snapshot, for each; what concerns one block that
    `last` read.
    """
    for name in dict.fromkeys(event["name"] for event in events.values() if "name" in event):
        yield f"snapshot {one_word(name)}", dict(_of_snapshot(events, name))
    if last["op"] == "read" and model.answer_of(last) == "ok":
        for block in range(last["lba"], last["lba"] + last["count"]):
            yield f"block {block}", dict(_of_block(events, block))


def _smallest(searches: _Searches, events: Events, at: int, about: str) -> Core:
    needed = [
        index
        for index, event in events.items()
        if event["op"] in OVERLAPPING and event["answered"] is not None
    ]
    changes = [i for i in needed if i == at or events[i]["op"] != "read"]
    if len(changes) < len(needed) and searches.fail(events, changes):
        needed = changes  # they say more than reads of what they did
    length = len(needed) // 2
    while length and searches.left > 0:
        for start in range(0, len(needed), length):
            rest = needed[:start] + [i for i in needed[start : start + length] if i == at]
            rest += needed[start + length :]
            if len(rest) < len(needed) and searches.fail(events, rest):
                needed = rest
                break
            if searches.left <= 0:
                break
        else:
            length //= 2
    return Core(needed, length == 0, about, events)


def _relaxed(events: Events, needed: Iterable[int]) -> Iterator[Event]:
    kept = set(needed)
    for index, event in events.items():
        if index in kept or event["op"] not in OVERLAPPING:
            yield event
        elif event["op"] not in CHANGE_NOTHING:
            yield {**event, "answered": None, "result": None}  # it may happen, or not


def _of_snapshot(events: Events, name: str) -> Iterator[tuple[int, Event]]:
    """Yield what makes, needs or removes this snapshot, and reads that do not find it."""
    for index, event in events.items():
        answer = model.answer_of(event)
        own = event.get("name") == name and answer != "no-space"
        missing = event.get("view") == name and answer == "no-such-snapshot"
        if own or missing or event["op"] not in OVERLAPPING:
            yield index, event


def _of_block(events: Events, block: int) -> Iterator[tuple[int, Event]]:
    """Yield what the requests do to one block.

    What was refused for lack of room or beyond the end of the disk may be due to other blocks.
    """
    for index, event in events.items():
        if model.answer_of(event) in ("no-space", "out-of-range"):
            continue
        if event["op"] not in OF_BLOCKS:
            yield index, event
            continue
        at = block - event["lba"]
        if 0 <= at < (len(event["tags"]) if event["op"] == "write" else event["count"]):
            yield index, one_block(event, at)
