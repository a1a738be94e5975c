"""The record of what the target was seen to do. Programs that showed something new are kept, and
later programs continue them.

This is coverage-guided fuzzing (AFL, Zalewski 2013). The coverage is what any target shows: two
outcomes in a row, and the outcome of an operation by the tree of views, by the states of the
devices, and by the inner events, if the target reports them. So a state that chance seldom makes is
the beginning of many programs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.contract.coverage import Outcome, outcome_of
from conformance.contract.source import Source
from conformance.contract.trace import Event, Trace
from conformance.programs.overlap import CHANGES
from conformance.programs.power_cuts import Reach
from conformance.programs.situation import BACK, Situation

Request = dict[str, Any]

LONGEST = 300  # requests at most of a program that others continue
AGAIN = frozenset(["fail", "return", "replace", "settle"])  # if cut short, their effect is unknown
FRESH_ONE_IN = 2  # one program in so many continues no other one


@dataclass
class Begun:
    """The first requests of a program, the options of its target, and the disk they left behind."""

    options: Mapping[str, Any]
    requests: Sequence[Request]
    situation: Situation
    used: int = 0  # times that a program went on from here


class Explored:
    """What the traces of a campaign have shown so far."""

    def __init__(self) -> None:
        self._seen: set[object] = set()
        self._kept: list[Begun] = []
        self.reach: dict[str, Reach] = {}  # of each operation in which the power was to fail

    def beginning(self, choose: Source) -> Begun | None:
        """Return where the next program begins: of two, the one that was used less. None: anew."""
        if not self._kept or choose.randrange(FRESH_ONE_IN) == 0:
            return None
        ways = [self._kept[choose.randrange(len(self._kept))] for _ in range(2)]
        begun = min(ways, key=lambda way: way.used)
        begun.used += 1
        return begun

    def learn(self, trace: Trace) -> None:
        """Keep the trace up to where it showed most that is new, if it showed anything."""
        if any(
            "failure" in event or event.get("overlaps") and event["op"] not in (*CHANGES, "crash")
            for event in trace.events
        ):
            return
        if not trace.overlapping:
            self._reach(trace)
        now = Situation(trace.events[0]["blocks"])
        before: Outcome = ("create", "ok")
        most, best = 0, None
        unsure: set[object] = set()  # devices of which a power cut left open what became of them
        for at, event in enumerate(trace.events[1:LONGEST], 1):
            outcome = (event["op"], outcome_of(event))
            shown = [one for one in _shown(now, before, outcome, event) if one not in self._seen]
            self._seen.update(shown)
            follow(now, event)
            before = outcome
            if event["op"] in AGAIN:
                (unsure.add if event["result"] is None else unsure.discard)(event.get("device"))
            if len(shown) > most and event["result"] is not None and not unsure:
                most, best = len(shown), (at, now.copy())
        if best is not None:
            at, situation = best
            self._kept.append(Begun(trace.options, trace.program[: at + 1], situation))

    def _reach(self, trace: Trace) -> None:
        """Learn where the power was cut, and where that came too late."""
        for event in trace.events:
            if "cut" in event:
                op, answered = event["op"], event["result"] is not None
                known = self.reach.get(op, Reach())
                self.reach[op] = known.learn(event["cut"]["after"], answered)


def _shown(now: Situation, before: Outcome, outcome: Outcome, event: Event) -> list[object]:
    """Return what one event shows."""
    shape = now.shape()
    events = event.get("events")
    inside = frozenset([(one.get("event"), bool(one.get("left"))) for one in events or ()])
    return [
        ("pair", before, outcome),
        ("tree", shape, outcome),
        ("devices", now.devices(), outcome),
        ("inside", inside, outcome[0]),
        ("tree and inside", shape, inside),
    ]


def follow(now: Situation, event: Event) -> None:
    """Change the situation by an operation that took effect. A failure that was cut short may have,
    and one that is refused had taken effect before.
    """
    op, result = event["op"], event["result"]
    if op == "fail":
        now.note(op)
        now.fail(event["device"], event.get("fault") or event["mode"])
        return
    if result is None or not result["ok"]:
        return
    match op:
        case "write":
            count = len(event["tags"])
            now.note(op, lbas=range(event["lba"], event["lba"] + count), written=count)
        case "unmap":
            now.note(op, lbas=range(event["lba"], event["lba"] + event["count"]))
        case "snapshot":
            if event["name"] in now.views:  # it was deleted when the power failed
                now.note("delete", event["name"])
            now.note(op, event["name"])
        case "delete" | "revert":
            if event["name"] in now.views:  # else it was taken when the power failed
                now.note(op, event["name"])
        case "return" | "replace" if event["device"] in now.failed:
            now.note(op)
            now.bring_back(event["device"])
        case "settle":
            now.note(op)
            if len(now.failed) == sum(mode == BACK for mode in now.failed.values()):
                now.settle()
        case _:
            now.note(op)
