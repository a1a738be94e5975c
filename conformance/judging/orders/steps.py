"""The steps of requests that overlap: their times, their parts, and which of them commute."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from conformance.contract import model
from conformance.contract.trace import OVERLAPPING, Event, Trace

CHANGE_NOTHING = frozenset(["read", "flush"])
SNAPSHOTS = frozenset(["snapshot", "delete", "revert"])
OF_BLOCKS = frozenset(["read", "write", "unmap"])  # the requests that name blocks
UNDOING = frozenset(["prefix", "block"])  # a power cut may undo what was answered
WHOLE = 1 << 63  # more blocks than any disk has


class Step(NamedTuple):
    """One step of the order: a request, or one block of a request if blocks are atomic."""

    number: int
    event: Event
    request: int  # its index in the trace
    blocks: Sequence[int] = ()  # blocks judged apart that it changes or reads

    @property
    def local(self) -> bool:
        """True if the step is of one block, which is judged apart."""
        return len(self.blocks) == 1 and self.event["op"] in OF_BLOCKS


def placed(events: Sequence[Event]) -> list[Event]:
    """Return the events with positions: those that have none follow one another."""
    if all("called" in event for event in events):
        return list(events)
    return [
        {**event, "called": 2 * index, "answered": 2 * index + 1 if _is_answered(event) else None}
        for index, event in enumerate(events)
    ]


def _is_answered(event: Event) -> bool:
    return event["result"] is not None or "failure" in event


def until(events: Sequence[Event], end: int) -> list[Event]:
    """Return the calls and answers up to the position `end`; a power cut happens at its answer."""
    return [
        event if (event["answered"] or 0) <= end else {**event, "answered": None, "result": None}
        for event in events
        if event["called"] <= end
        and (event["op"] in OVERLAPPING or (event["answered"] or 0) <= end)
    ]


def timeline(events: Sequence[Event]) -> list[tuple[int, bool, int]]:
    """(position, whether it is an answer, index) of events with positions, in their order."""
    line: list[tuple[int, bool, int]] = []
    last = 0
    for index, event in enumerate(events):
        last = max(last, event["called"], event["answered"] or 0)
        line.append((event["called"], False, index))
        if event["answered"] is not None:
            line.append((event["answered"], True, index))
        elif event["op"] not in OVERLAPPING:  # a crash cut short: after all that was answered
            line.append((last, True, index))
    return sorted(line)


def parts_of(event: Event, by_block: bool) -> list[Event]:
    """Return the steps of a request, as events.

    One without an answer takes effect as if acknowledged, but nobody was `told`: a write with `fua`
    may then be durable or not.
    """
    answer = model.answer_of(event)
    if answer in ("cut", "unknown-outcome"):
        if event["op"] in CHANGE_NOTHING:
            return []
        event = {**event, "result": {"ok": True}, "told": False}
    elif answer != "ok":
        return [event]
    if not by_block or event["op"] not in ("read", "write", "unmap"):
        return [event]
    count = len(event["tags"]) if event["op"] == "write" else event["count"]
    return [one_block(event, offset) for offset in range(count)]


def one_block(event: Event, offset: int) -> Event:
    """Return what a read, a write or an unmap does to its block number `offset`."""
    part = {**event, "lba": event["lba"] + offset}
    if event["op"] == "write":
        return {**part, "tags": [event["tags"][offset]]}
    if event["op"] == "read" and model.answer_of(event) == "ok":
        result: dict[str, Any] = {**event["result"], "tags": [event["result"]["tags"][offset]]}
        return {**part, "count": 1, "result": result}
    return {**part, "count": 1}


def cut_profile(trace: Trace) -> str | None:
    """Return the crash profile; None if the trace has no power cut, since it has no effect then."""
    crashes = any(event["op"] == "crash" for event in trace.events)
    return trace.hello.get("crash_profile") if crashes else None


def by_block(trace: Trace) -> bool:
    """Return whether each block of a request is a step of its own."""
    return trace.hello.get("atomic") == "block"


def may_be_whole(trace: Trace) -> bool:
    """Return whether a power cut leaves the disk as it is: then it is one configuration without
    blocks.
    """
    return cut_profile(trace) not in UNDOING


class Rules(NamedTuple):
    """The rules by which a step needs others before it.

    `profile` is the `cut_profile` of the trace.
    """

    profile: str | None

    def needs(self, one: Event, other: Event) -> bool:
        """Return whether `one` may have to come after `other`.

        It need not if an order of `other` and then `one` allows no more than the order of `one` and
        then `other`: no answer differs, and a power cut may leave as much. A flush comes first: the
        sooner it takes effect, the more a power cut may leave. So does a delete, under `block`.
        Under `prefix` what a power cut leaves is a step of its own (`orders.worlds`)."""
        first, second = changing(one), changing(other)
        if not first and not second:
            return False
        hastens = one["op"] not in ("snapshot", "revert") and other["op"] not in SNAPSHOTS
        if self.profile == "block" and first and second and not hastens:
            return True
        ops = (one["op"] if first else "", other["op"] if second else "")
        if "snapshot" in ops or "delete" in ops:
            name = _name(one)
            if name is not None and name == _name(other):
                return True
        if "write" in ops or "unmap" in ops or "revert" in ops:
            mine, others = live(one), live(other)
            return mine.start < others.stop and others.start < mine.stop
        return False


def changing(event: Event) -> bool:
    """Return whether the event changes the disk."""
    return event["op"] not in CHANGE_NOTHING and event["result"]["ok"]


def _name(event: Event) -> str | None:
    """Return the snapshot that the event speaks of."""
    return event.get("view") if event["op"] == "read" else event.get("name")


def live(event: Event) -> range:
    """Return the blocks of the live disk that the event reads or changes."""
    if not event["result"]["ok"] or event.get("view") is not None:
        return range(0)
    if event["op"] in ("snapshot", "revert"):
        return range(WHOLE)
    if "lba" not in event:
        return range(0)
    count = len(event["tags"]) if event["op"] == "write" else event["count"]
    return range(event["lba"], event["lba"] + count)
