"""Faults of the media by name, and what they excuse: which failures an honest engine may show under each.

Within its redundancy an engine with checksums is excused nothing. Beyond it, data may be gone, and where a flush lies or a write is lost
on every copy nobody can know that it was there: what was acknowledged may be lost. It is never excused to return as data what is none,
or what belongs elsewhere.
"""

from dataclasses import replace
from typing import NamedTuple

from conformance.contract.model import answer_of
from conformance.contract.trace import Event, Trace
from conformance.judging.explain import Verdict
from conformance.targets import Factory

SEEDS = 8  # which device it is, and which of its writes
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


class Fault(NamedTuple):
    """What a medium does, and why an engine is excused what it is, within its redundancy and beyond."""

    what: str
    within: str
    beyond: str


FAULTS = {
    "lying-flush": Fault(
        "says that it has flushed, and has not",
        "pass: the other copies are honest",
        "fail, under power cuts: what was acknowledged may be lost",
    ),
    "bit-flip": Fault(
        "changes a bit of a write in six",
        "pass: found by its checksum, repaired, never returned",
        "data-lost; the newest record of a log cannot be told from one that was cut short",
    ),
    "lost-write": Fault(
        "says that it has written, one time in six, and has not",
        "pass: the other copies are newer",
        "data-lost, or older data: nothing says that there was newer",
    ),
    "misdirected-write": Fault(
        "writes beside where it should, one time in six",
        "pass: what is there says that it belongs elsewhere",
        "data-lost, or older data",
    ),
    "vanishing-device": Fault(
        "answers nothing any more, in the middle of anything", "pass", "data-lost"
    ),
}


class NoSuchFault(Exception):
    """The name is no fault's. One line."""


def parse(text: str) -> tuple[str, ...]:
    """The faults of a comma list, each with `@all` behind it if every device has it. Raises NoSuchFault."""
    from refmodel.core.errors import BadRequest
    from refmodel.media import (
        faults as media,  # not above: it brings numpy, whose state Hypothesis then keeps for every program
    )

    try:
        return tuple(name + media.EVERYWHERE * everywhere for name, everywhere in media.parse(text))
    except BadRequest as error:
        raise NoSuchFault(str(error)) from None


def excuses(names: tuple[str, ...], trace: Trace, verdict: Verdict) -> bool:
    """Whether an honest engine may fail like this while its media have these faults."""
    if verdict.verdict != "fail" or not beyond(names, trace.hello.get("tolerates", 0)):
        return False
    return verdict.kind in GONE or verdict.at is not None and _is_lost(trace.events[verdict.at])


def without_lost_reads(names: tuple[str, ...], trace: Trace) -> list[Event]:
    """The events without reads that were answered `data-lost`, where that is excused: what follows is still judged."""
    if not beyond(names, trace.hello.get("tolerates", 0)):
        return trace.events
    return [event for event in trace.events if event["op"] != "read" or not _is_lost(event)]


def on_media(factory: Factory, names: tuple[str, ...]) -> Factory:
    """Targets whose media have these faults. Raises NoSuchFault for those whose media are not the kit's.

    Devices fail by the faults then and not by request."""
    if factory.name.partition(":")[0] != "refmodel":
        raise NoSuchFault(
            f"{factory.name}: faults need media that the kit owns, which only refmodel has"
        )
    knobs = {**factory.knobs, "faults": ["+".join(names)], "fault_seed": list(range(SEEDS))}
    return replace(
        factory,
        knobs=knobs,
        families=factory.families[:1],  # the log-structured engine: the others keep no checksums
        without=factory.without | {"device"},
    )


def beyond(names: tuple[str, ...], tolerates: int) -> bool:
    """Whether the faults are more than the redundancy is for."""
    if not names:
        return False
    from refmodel.media.faults import EVERYWHERE  # see parse

    return tolerates < 1 or any(name.endswith(EVERYWHERE) for name in names)


def _is_lost(event: Event) -> bool:
    return "failure" not in event and answer_of(event) == "data-lost"
