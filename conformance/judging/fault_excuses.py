"""Faults of the media by name, and which failures each excuses: what an honest engine may show, and
when.

Within its redundancy an engine with checksums is excused nothing. Beyond it:

- data that a fault destroyed is answered `data-lost`, at any time;
- the space of what cannot be read cannot be told from space in use, so it may be missing;
- where a flush lies, or a write is lost or damaged on every copy, recovery cannot know that it was
  there: what was acknowledged before a recovery may be gone after it. What was acknowledged since
  the last recovery may not: the engine still knows it, and has to notice.

It is never excused to return garbage as data, or data that belongs elsewhere.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from conformance.contract.model import answer_of
from conformance.contract.trace import Event, Trace
from conformance.judging.explain import Verdict
from conformance.judging.verdict import NO_ORDER
from conformance.targets import Factory

SEEDS = 8  # which device it is, and which of its writes
# Failures that show an earlier state of the disk.
GONE = frozenset(
    [
        "lost-acknowledgement",
        "stale",
        "zeroed",
        "resurrected",
        "snapshot-bleed",
        "half-done",
        "not-a-prefix",
        "unopenable",
        "lost-snapshot",
        "resurrected-snapshot",
        "missing-refusal",
    ]
)
RECOVERIES = frozenset(["crash", "restart"])


class Fault(NamedTuple):
    """A fault of a medium, and the failures of an engine that it excuses.

    They are those within its redundancy and beyond, and whether beyond it acknowledged changes from
    before a recovery may be gone.
    """

    what: str
    within: str
    beyond: str
    forgets: bool = True


FAULTS = {
    "lying-flush": Fault(
        "says that it has flushed, and has not",
        "pass: the other copies are honest",
        "after a power cut or a restart, what was acknowledged before it may be gone",
    ),
    "bit-flip": Fault(
        "changes a bit of a write in six",
        "pass: found by its checksum, repaired, never returned",
        "data-lost; after a recovery, the newest records of the log may be gone",
    ),
    "lost-write": Fault(
        "says that it has written, one time in six, and has not",
        "pass: the other copies are newer",
        "data-lost; after a recovery, what was acknowledged before it may be gone",
    ),
    "misdirected-write": Fault(
        "writes beside where it should, one time in six",
        "pass: what is there says that it belongs elsewhere",
        "data-lost; after a recovery, what was acknowledged before it may be gone",
    ),
    "vanishing-device": Fault(
        "answers nothing any more, in the middle of anything", "pass", "data-lost", forgets=False
    ),
}


class NoSuchFault(Exception):
    """The name is no fault's. The message is one line."""


def parse(text: str) -> tuple[str, ...]:
    """Return the faults of a comma list, each with `@all` behind it if every device has it. Raises
    NoSuchFault.
    """
    from refmodel.core.errors import BadRequest
    from refmodel.media import (
        # not above: it brings numpy, whose state Hypothesis then keeps for every program
        faults as media,
    )

    try:
        return tuple(name + media.EVERYWHERE * everywhere for name, everywhere in media.parse(text))
    except BadRequest as error:
        raise NoSuchFault(str(error)) from None


def excuses(names: tuple[str, ...], trace: Trace, verdict: Verdict) -> bool:
    """Return whether an honest engine may fail like this, at this moment, while its media have
    these faults. Where reads are lost, the judge may not find out which of many disks it has.
    """
    if verdict.verdict == "inconclusive" and verdict.at is None:
        return beyond(names, trace.hello.get("tolerates", 0))
    if verdict.verdict != "fail" or verdict.at is None:
        return False
    if not beyond(names, trace.hello.get("tolerates", 0)):
        return False
    if _is_lost(trace.events[verdict.at]) or verdict.kind == "false-no-space":
        return True
    if not any(FAULTS[_bare(name)].forgets for name in names):
        return False
    if verdict.kind not in GONE and not (
        verdict.kind == NO_ORDER and _was_there(trace.events, verdict.at)
    ):
        return False
    known = _last_change(trace, verdict.at, verdict.lba)
    return any(event["op"] in RECOVERIES for event in trace.events[known : verdict.at + 1])


def _last_change(trace: Trace, at: int, lba: int | None) -> int:
    """Return the index of the last event before `at` that was acknowledged and says what `at`
    should have shown; of a read with a wrong block, what the block should have shown.
    """
    asked = trace.events[at]
    if lba is None:
        return _last(trace.events[:at], asked, shown=False)
    asked = {**asked, "lba": lba, "count": 1}
    known = _last(trace.events[:at], asked, shown=False)
    if trace.events[known]["op"] != "snapshot":
        return known
    # It holds what live showed. That may have been gone by then.
    live = {"op": "read", "lba": lba, "count": 1}
    before, behind = trace.events[:known], trace.events[known + 1 : at]
    later = [index for index, event in enumerate(behind, known + 1) if _shows(event, asked)]
    return max(later, default=_last(before, live, shown=True))


def _last(events: list[Event], asked: Event, *, shown: bool) -> int:
    """Return the index of the last event that says what `asked` shows: a change, or, if what was
    `shown` counts, a read."""
    return max(
        (
            index
            for index, event in enumerate(events)
            if answer_of(event) == "ok" and _says(event, asked) or shown and _shows(event, asked)
        ),
        default=0,
    )


def _shows(event: Event, asked: Event) -> bool:
    """Return whether a read that was answered shows the block of another read."""
    return (
        event["op"] == "read"
        and answer_of(event) == "ok"
        and event.get("view") == asked.get("view")
        and 0 <= asked["lba"] - event["lba"] < event["count"]
    )


def _says(event: Event, asked: Event) -> bool:
    """Return whether a change that was granted says what `asked` shows."""
    name = asked.get("name", asked.get("view"))
    if name is not None:
        return event["op"] in ("snapshot", "delete") and event["name"] == name
    if asked["op"] != "read" or event["op"] not in ("write", "unmap"):
        return event["op"] in ("create", "revert")
    count = len(event["tags"]) if event["op"] == "write" else event["count"]
    before, behind = asked["lba"] - event["lba"], event["lba"] - asked["lba"]
    return bool(before < count and behind < asked["count"])


def _was_there(events: list[Event], at: int) -> bool:
    """Return whether what the request returned, if it is a read, was in its place before."""
    asked = events[at]
    if asked["op"] != "read" or answer_of(asked) != "ok":
        return True
    return all(
        tag == 0
        or any(
            event["op"] == "write"
            and 0 <= lba - event["lba"] < len(event["tags"])
            and event["tags"][lba - event["lba"]] == tag
            for event in events[:at]
        )
        for lba, tag in enumerate(asked["result"]["tags"], asked["lba"])
    )


def without_lost_reads(names: tuple[str, ...], trace: Trace) -> list[Event]:
    """Return the events without reads that were answered `data-lost`, where that is excused: what
    follows is still judged.
    """
    if not beyond(names, trace.hello.get("tolerates", 0)):
        return trace.events
    return [event for event in trace.events if event["op"] != "read" or not _is_lost(event)]


def on_media(factory: Factory, names: tuple[str, ...]) -> Factory:
    """Return targets whose media have these faults.

    Raises NoSuchFault for those whose media are not the kit's.

    Devices fail by the faults then and not by request.
    """
    if factory.name.partition(":")[0] != "refmodel":
        raise NoSuchFault(
            f"{factory.name}: faults need media that the kit owns, which only refmodel has"
        )
    there = factory({**factory.first, "faults": "on-request"})
    unknown = {_bare(name) for name in names}.difference(there.hello["faults"])
    there.close()
    if unknown:
        known = ", ".join(there.hello["faults"])
        only = f", only with {known}" if known else " or any other fault"
        raise NoSuchFault(f"{factory.name} cannot be tested with {min(unknown)}{only}")
    mediated: dict[str, list[Any]] = {"faults": ["+".join(names)], "fault_seed": list(range(SEEDS))}
    if beyond(names, 1):
        mediated["deduplication"] = [False]  # its index does not stand what is lost on every copy
    family = factory.families[0] if factory.families else {}  # the only engine with checksums
    return replace(
        factory,
        knobs={**factory.knobs, **family, **mediated},
        families=(),
        without=factory.without | {"device", "scrub"},  # a scrub repairs, and says so
    )


def beyond(names: tuple[str, ...], tolerates: int) -> bool:
    """Return whether the faults exceed the redundancy."""
    if not names:
        return False
    from refmodel.media.faults import EVERYWHERE  # see parse

    return tolerates < 1 or any(name.endswith(EVERYWHERE) for name in names)


def _bare(name: str) -> str:
    return name.partition("@")[0]


def _is_lost(event: Event) -> bool:
    return "failure" not in event and answer_of(event) == "data-lost"
