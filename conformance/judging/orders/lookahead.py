"""Lookahead: orders of earlier requests that later reads rule out are not tried.

An observation is what the disk held at one step: a read of the live disk, or a snapshot that was
read later. If it holds the tag of a write W at a block, and nothing can have brought the tag back
(no revert, no power cut that may undo), then every other change of the block that was answered
before the observation was called takes effect before W. So the search for an order leaves out
what would fail in the end, and finds the same answer: a trace whose prefix up to the last of
these reads has an order, has one that agrees with the observations.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from conformance.contract.model import ZERO, answer_of
from conformance.contract.trace import Event

END = 1 << 62  # later than every position of a trace


class Observation(NamedTuple):
    """The content of the disk at a step between the positions `called` and `answered`."""

    called: int
    answered: int
    tags: dict[int, int]  # LBA -> tag


@dataclass
class Lookahead:
    """`images`: index of a snapshot, or of a power cut -> what reads say that it holds, or leaves.
    `names`: index of a power cut -> snapshot -> whether answers say that it is left.
    `later`: (index of a change, LBA) -> indices of the writes that take effect after it."""

    images: dict[int, dict[int, int]] = field(default_factory=dict)
    names: dict[int, dict[str, bool]] = field(default_factory=dict)
    later: defaultdict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))


def lookahead(events: Sequence[Event], undoes: bool) -> Lookahead:
    """Return what the reads of the trace say. `undoes`: a power cut may undo what was answered."""
    found = Lookahead()
    observations = [
        Observation(event["called"], event["answered"], _tags(event))
        for event in _reads(events)
        if event.get("view") is None
    ]
    for index, event in enumerate(events):
        if event["op"] == "snapshot" and answer_of(event) == "ok":
            image = _image(events, index, undoes)
            if image:
                found.images[index] = image
                observations.append(Observation(event["called"], event["answered"], image))
        elif event["op"] == "crash" and undoes:
            last = _last_of_cuts(events, index)
            if answer_of(events[last]) == "ok":
                found.images[index] = _left(events, last)
                found.names[index] = _names_left(events, last)
    writers = _writers(events)
    breaks = [event for event in events if _breaks(event, undoes)]
    changes = _changes(events)
    for observation in observations:
        for lba, tag in observation.tags.items():
            writer = writers.get((lba, tag))
            if writer is None or _between(breaks, events[writer]["called"], observation.answered):
                continue
            for index in changes.get(lba, ()):
                if (
                    index != writer
                    and events[index]["answered"] < observation.called
                    and events[index]["answered"] > events[writer]["called"]
                ):
                    found.later[index, lba].add(writer)
    return found


def _reads(events: Sequence[Event]) -> Iterator[Event]:
    for event in events:
        if event["op"] == "read" and event["answered"] is not None and answer_of(event) == "ok":
            yield event


def _tags(event: Event) -> dict[int, int]:
    return dict(enumerate(event["result"]["tags"], event["lba"]))


def _image(events: Sequence[Event], index: int, undoes: bool) -> dict[int, int]:
    """Return what reads say that this snapshot holds; of reads that can be of no other snapshot."""
    snapshot = events[index]
    name = snapshot["name"]
    others = [
        event
        for at, event in enumerate(events)
        if at != index
        and event["op"] in ("snapshot", "delete")
        and event["name"] == name
        and answer_of(event) in ("ok", "cut", "unknown-outcome")
    ]
    power_cuts = [event for event in events if undoes and event["op"] == "crash"]
    image: dict[int, int] = {}
    for read in _reads(events):
        if read.get("view") != name or read["called"] < snapshot["answered"]:
            continue
        if any(event["called"] < read["answered"] for event in power_cuts):
            sure = not any(event["called"] < read["answered"] for event in others)
        else:
            sure = not _between(others, snapshot["called"], read["answered"])
        if sure:
            image |= _tags(read)
    return image


def _left(events: Sequence[Event], index: int) -> dict[int, int]:
    """Return what reads say that this power cut left: of blocks that nothing may have changed in
    between to what was read.
    """
    image: dict[int, int] = {}
    later = list(takewhile(lambda event: not _breaks(event, True), events[index + 1 :]))
    end = events[index + 1 + len(later)]["called"] if index + 1 + len(later) < len(events) else END
    writes = [
        (event["called"], _changed(event)) for event in later if event["op"] in ("write", "unmap")
    ]
    for read in _reads(later):
        if read.get("view") is None and read["answered"] < end:
            before = [changed for called, changed in writes if called < read["answered"]]
            for lba, tag in _tags(read).items():
                if all(changed.get(lba) != tag for changed in before):
                    image.setdefault(lba, tag)
    durable = (event for event in events[:index] if event.get("fua"))
    forced = {lba for event in durable for lba in _changed(event)}  # perhaps after the moment
    return {lba: tag for lba, tag in image.items() if lba not in forced}


def _last_of_cuts(events: Sequence[Event], index: int) -> int:
    """Return the index of the recovery after this power cut that is not cut short itself."""
    while (
        answer_of(events[index]) == "cut"
        and index + 1 < len(events)
        and events[index + 1]["op"] == "crash"
    ):
        index += 1
    return index


# What an answer says of whether the snapshot was there before.
_THERE = {
    ("read", "ok"): True,
    ("read", "no-such-snapshot"): False,
    ("revert", "ok"): True,
    ("revert", "no-such-snapshot"): False,
    ("delete", "ok"): True,
    ("delete", "no-such-snapshot"): False,
    ("snapshot", "ok"): False,
    ("snapshot", "snapshot-exists"): True,
}


def _names_left(events: Sequence[Event], index: int) -> dict[str, bool]:
    """Return which snapshots this power cut left, as far as answers say so before anything may have
    changed them.
    """
    names: dict[str, bool] = {}
    later = list(takewhile(lambda event: event["op"] != "crash", events[index + 1 :]))
    changes = [
        event
        for event in later
        if event["op"] in ("snapshot", "delete")
        and answer_of(event) in ("ok", "cut", "unknown-outcome")
    ]
    for event in later:
        name = event.get("view") if event["op"] == "read" else event.get("name")
        if name is None or event["answered"] is None:
            continue
        there = _THERE.get((event["op"], answer_of(event)))
        if there is not None and not any(
            other is not event and other["name"] == name and other["called"] < event["answered"]
            for other in changes
        ):
            names.setdefault(name, there)
    return names


def _changed(event: Event) -> dict[int, int]:
    """LBA -> what a write or an unmap makes of it."""
    tags = event["tags"] if event["op"] == "write" else [ZERO] * event["count"]
    return dict(enumerate(tags, event["lba"]))


def _writers(events: Sequence[Event]) -> dict[tuple[int, int], int]:
    """(LBA, tag) -> the index of the one write that wrote it; none if several may have."""
    writers: dict[tuple[int, int], int] = {}
    several = set()
    for index, event in enumerate(events):
        if event["op"] != "write":
            continue
        for lba, tag in enumerate(event["tags"], event["lba"]):
            if (lba, tag) in writers or not tag:
                several.add((lba, tag))
            writers[lba, tag] = index
    return {key: index for key, index in writers.items() if key not in several}


def _changes(events: Sequence[Event]) -> dict[int, list[int]]:
    """LBA -> the indices of the writes and unmaps of it that were acknowledged."""
    changes: dict[int, list[int]] = {}
    for index, event in enumerate(events):
        if event["op"] in ("write", "unmap") and event["answered"] and answer_of(event) == "ok":
            count = len(event["tags"]) if event["op"] == "write" else event["count"]
            for lba in range(event["lba"], event["lba"] + count):
                changes.setdefault(lba, []).append(index)
    return changes


def _breaks(event: Event, undoes: bool) -> bool:
    """Return whether the event may bring back what was overwritten."""
    if event["op"] == "crash":
        return undoes
    return event["op"] == "revert" and answer_of(event) in ("ok", "cut", "unknown-outcome")


def _between(events: Sequence[Event], start: int, end: int) -> bool:
    """Return whether one of the events may take effect between two positions."""
    return any(event["called"] < end and _last(event) > start for event in events)


def _last(event: Event) -> int:
    """Return the last position at which an event may take effect."""
    if event["answered"] is None or answer_of(event) == "unknown-outcome":
        return END
    answered: int = event["answered"]
    return answered
