"""The oracle of the inside: the events of the reference engine, followed by TLC through the Trace specs below the contract.

It is asked whenever the oracle `tlc` is. A trace without such events it passes over.
"""

import json
from collections.abc import Sequence
from typing import Any

from conformance.oracles import Opinion
from conformance.oracles.tlc import LARGEST_DISK, asked, profile_of
from conformance.trace import Trace
from modelcheck import tlc, traces

Line = dict[str, Any]
Place = tuple[int, int | None]  # index of the operation, and of the event inside it, None for the operation itself

SPECS = {  # spec -> the events that are its own
    "LogStructuredDisk": frozenset((
        "submit", "log_append", "apply", "place", "destage", "clean", "reclaim", "checkpoint_nodes", "checkpoint_commit",
        "truncate", "free", "load", "replay", "recover")),
}
OTHERS = frozenset(("create", "fail", "return", "replace", "rebuild", "resync", "active"))


def judge(batch: Sequence[Trace]) -> list[Opinion]:
    """One opinion a trace, in their order; one run of TLC for each spec and crash profile among them."""
    opinions = [_unfollowable(trace) or Opinion(None) for trace in batch]
    for spec, names in SPECS.items():
        for kept in sorted({profile_of(trace) for trace in batch}):
            some = [i for i, trace in enumerate(batch) if profile_of(trace) == kept and trace.geometry and not opinions[i].unsure]
            followed = [_lines(batch[i], names) for i in some]
            try:
                reached = traces.follow([lines for lines, _ in followed], f"Trace{spec}", f"Trace{spec}-{kept}")
            except (tlc.Unavailable, traces.Inconclusive) as reason:
                reached = []
                for i in some:
                    opinions[i] = Opinion(None, str(reason))
            for i, (lines, places), matched in zip(some, followed, reached):
                if matched < len(places):
                    opinions[i] = _earlier(opinions[i], Opinion(places[matched][0], inside=_words(spec, lines, places, matched)))
    return opinions


def _unfollowable(trace: Trace) -> Opinion | None:
    """Why the events cannot be followed, if they cannot."""
    if trace.geometry is None:
        return None
    known = OTHERS.union(*SPECS.values())
    for index, event in enumerate(trace.events):
        for inside in event.get("events", ()):
            if inside["event"] not in known:
                return Opinion(None, f"operation {index}: no spec knows the event {inside['event']!r}")
    if profile_of(trace) == "block" or trace.events[0]["blocks"] > LARGEST_DISK:
        return Opinion(None, "the inner specs follow small disks of the profiles ack and prefix")
    return None


def _lines(trace: Trace, names: frozenset[str]) -> tuple[list[Line], list[Place]]:
    """What a Trace spec reads: a header, then each operation and behind it its events of these names; and where each is from."""
    lines: list[Line] = [{"trace": 1, "geometry": trace.geometry}]
    places: list[Place] = []
    for index, event in enumerate(trace.events):
        if "failure" in event:
            break
        lines.append(asked(event))
        places.append((index, None))
        for number, inside in enumerate(event.get("events", ())):
            if inside["event"] in names:
                lines.append(inside)
                places.append((index, number))
    return lines, places


def _earlier(one: Opinion, other: Opinion) -> Opinion:
    return other if one.at is None or other.at is not None and other.at < one.at else one


def _words(spec: str, lines: list[Line], places: list[Place], matched: int) -> str:
    """Which line it is that the spec does not allow."""
    number = places[matched][1]
    if number is None:
        return f"specs/{spec}.tla: the operation itself, by what was inside before it"
    return f"specs/{spec}.tla: event {number} of it, {json.dumps(lines[matched + 1])}"
