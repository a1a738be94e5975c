"""The oracle of inner events: the events of the reference engine, followed by TLC through the Trace
specs below the contract.

It is asked whenever the oracle `tlc` is. A trace without such events it passes over.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from conformance.contract.trace import Trace, check_inside
from conformance.judging.oracles import Opinion, inside_order, journal, legs, trees
from conformance.judging.oracles.legs import Line, Place
from conformance.judging.oracles.spec_lines import asked
from conformance.judging.oracles.tlc import LARGEST_DISK, profile_of
from modelcheck.checkers import tlc
from modelcheck.runs import traces

DISK = frozenset(
    (  # the events of LogStructuredDisk
        "submit",
        "log_append",
        "apply",
        "place",
        "destage",
        "clean",
        "reclaim",
        "freeze",
        "checkpoint_nodes",
        "checkpoint_commit",
        "truncate",
        "free",
        "load",
        "replay",
        "recover",
    )
)
LONGEST = 5000  # lines of a trace: TLC takes a quarter of an hour for 30,000
LONG = frozenset(("nodes", "views", "others", "left", "held"))  # left out of a verdict
KNOWN = DISK | legs.EVENTS | trees.EVENTS | journal.EVENTS | {"create"}
# Where two specs reject the same operation, the first one's words are shown.
ORDER = ("LogStructuredDisk", "Redundancy", "SharedTree", "MirroredLog")
CLAUSES = {"MirroredLog": journal.CLAUSES, "Redundancy": legs.CLAUSES}


def judge(batch: Sequence[Trace]) -> list[Opinion]:
    """Return one opinion per trace, in their order; one run of TLC for each spec and config among
    what is to be followed.
    """
    opinions = [_unfollowable(trace) or Opinion(None) for trace in batch]
    followed = defaultdict(list)
    for index, trace in enumerate(batch):
        if trace.geometry and not opinions[index].unsure:
            ways = list(followings(trace))
            if (longest := max(len(lines) for _, _, lines, _ in ways)) > LONGEST:
                opinions[index] = Opinion(None, f"{longest} lines are too many for TLC")
                continue
            for spec, config, lines, places in ways:
                shape = journal.shape(lines[0]) if spec == "MirroredLog" else ()
                followed[spec, config, shape].append((index, lines, places))
    for (spec, config, _), some in sorted(
        followed.items(), key=lambda item: ORDER.index(item[0][0])
    ):
        try:
            reached = traces.follow([lines for _, lines, _ in some], f"Trace{spec}", config)
        except (tlc.Unavailable, traces.Inconclusive) as reason:
            for index, _, _ in some:
                opinions[index] = Opinion(None, str(reason))
            continue
        for (index, lines, places), matched in zip(some, reached, strict=False):
            if matched < len(places) and not opinions[index].unsure:
                opinions[index] = _earlier(
                    opinions[index],
                    Opinion(places[matched][0], inside=_words(spec, lines, places, matched)),
                )
    return opinions


def followings(trace: Trace) -> Iterator[tuple[str, str, list[Line], list[Place]]]:
    """Yield what is followed of a trace: through which spec, with which config, the lines, and
    where each is from.
    """
    yield "LogStructuredDisk", f"TraceLogStructuredDisk-{profile_of(trace)}", *_disk_lines(trace)
    trace, at = _in_turn(trace)
    for spec, of in (("Redundancy", legs), ("SharedTree", trees), ("MirroredLog", journal)):
        for lines, places in of.lines(trace):
            yield spec, f"Trace{spec}", lines, [(at[index], number) for index, number in places]


def _in_turn(trace: Trace) -> tuple[Trace, Sequence[int]]:
    """Return the trace with all that happened inside in its events, and which event each of them is
    of.
    """
    if trace.overlapping:
        return inside_order.in_turn(trace)
    return trace, range(len(trace.events))


def _unfollowable(trace: Trace) -> Opinion | None:
    """Return why the events cannot be followed, if they cannot."""
    if trace.geometry is None:
        return None
    events, at = _in_turn(trace)
    for index, event in zip(at, events.events, strict=True):
        for inside in event.get("events", ()):
            if wrong := check_inside(inside):
                return Opinion(None, f"operation {index}: an invalid event inside: {wrong}")
            if inside["event"] not in KNOWN:
                return Opinion(
                    None, f"operation {index}: no spec knows the event {inside['event']!r}"
                )
    if profile_of(trace) == "block" or trace.events[0]["blocks"] > LARGEST_DISK:
        return Opinion(None, "the inner specs follow small disks of the profiles ack and prefix")
    return None


def _disk_lines(trace: Trace) -> tuple[list[Line], list[Place]]:
    """Return what TraceLogStructuredDisk reads: a header, then each operation and behind it its
    events, or each call and each answer and the events between; and where each is from.
    """
    header = {"trace": 2 if trace.overlapping else 1, "geometry": trace.geometry}
    lines = inside_order.disk_lines(trace, DISK) if trace.overlapping else _one_by_one(trace)
    followed = list(lines)
    return [header, *(line for line, _ in followed)], [place for _, place in followed]


def _one_by_one(trace: Trace) -> Iterator[tuple[Line, Place]]:
    for index, event in enumerate(trace.events):
        if "failure" in event:
            return
        yield asked(event), (index, None)
        for number, inside in enumerate(event.get("events", ())):
            if inside["event"] in DISK:
                yield inside, (index, number)


def _earlier(one: Opinion, other: Opinion) -> Opinion:
    return other if one.at is None or other.at is not None and other.at < one.at else one


def _words(spec: str, lines: list[Line], places: list[Place], matched: int) -> str:
    """Return which line it is that the spec does not allow, and which clause it breaks where that
    is known.
    """
    number, line = places[matched][1], lines[matched + 1]
    clause = CLAUSES.get(spec, {}).get(line.get("event", ""), "")
    if spec == "SharedTree":
        clause = trees.CLAUSES.get(line.get("action", ""), "")
    if number is None:
        operation = "the operation itself, by what was inside before it"
        return f"specs/{spec}.tla: {operation}{'; ' if clause else ''}{clause}"
    told = json.dumps({key: line[key] for key in line if key not in LONG})
    return f"specs/{spec}.tla: event {number} of it, {told}{'; ' if clause else ''}{clause}"
