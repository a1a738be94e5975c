"""Every crash state of every short workload, on the reference engine: bounded black-box crash
testing.

The idea, and the bound, are those of ACE and CrashMonkey (Mohan et al., "Finding crash-consistency
bugs with bounded black-box crash testing", OSDI 2018): most crash bugs need few operations, so all
workloads of up to three are run. A workload is crashed in its last operation only, and after it:
where it is crashed before, that is a shorter workload.

The engine runs on an overlay of its devices. At every flush, and when the operation is answered,
the writes that no flush has covered are known: what a power cut can leave of them is
`media.subsets`. Each such state is opened, all views are read back, and the dialogue is judged as
any trace is. What recovery wrote by then may be lost as well: a power cut in recovery is one more
crash.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from conformance.campaign.driver import ask
from conformance.contract.trace import Event, Trace
from conformance.media.overlay import Content, Overlay, Point
from conformance.media.subsets import Masks, subsets
from conformance.targets.base import Message
from conformance.targets.reference import ReferenceTarget

LONGEST = 3  # operations of a workload
BLOCKS = 4
# Small enough for three operations to reach what is rare: a log of four records, nodes that split,
# a two-block write that fills a segment.
SIZES = {
    "block_bytes": 512,
    "segment_blocks": 2,
    "fanout": 3,
    "capacity_percent": 200,
    "log_bytes": 4096,
    "pages": 128,
}
ENGINES: tuple[dict[str, Any], ...] = (
    {"layout": "mirror"},
    {"layout": "mirror", "write_back": True},
    {"layout": "raid5-2+1"},
)
BASELINES: dict[
    str, dict[str, Any]
] = {  # options of the other engines; what one of them lacks it refuses, which is allowed
    **dict.fromkeys(("redo-vmfs", "redo-se", "redo-vsan"), {"block_bytes": 512, "layers": 5}),
    **dict.fromkeys(
        ("in-place-raid5", "in-place-raid6"),
        {"block_bytes": 512, "strip_blocks": 1, "log_bytes": 8192},
    ),
}
OPERATIONS: tuple[Message, ...] = (  # tags are put in when they are known
    {"op": "write", "lba": 0, "count": 1},
    {"op": "write", "lba": 1, "count": 2},
    {"op": "unmap", "lba": 0, "count": 1},
    {"op": "flush"},
    {"op": "snapshot", "name": "t"},
    {"op": "delete", "name": "s"},
    {"op": "revert", "name": "s"},
    {"op": "clean"},
    {"op": "checkpoint"},
)
STARTS: dict[str, list[Message]] = {  # durable operations before the workload
    "new": [],
    "used": [
        {"op": "write", "lba": 0, "tags": [1, 2, 3]},
        {"op": "snapshot", "name": "s"},
        {"op": "write", "lba": 0, "tags": [4]},
        {"op": "checkpoint"},
        {"op": "write", "lba": 3, "tags": [5]},
    ],
}
VIEWS: tuple[str | None, ...] = (None, "s", "t")


@dataclass(frozen=True)
class Workload:
    """A workload: the engine, what it has seen before, and the operations."""

    options: tuple[tuple[str, Any], ...]
    start: str
    operations: tuple[int, ...]  # indices into OPERATIONS

    @property
    def name(self) -> str:
        """The name of the workload in a progress file."""
        engine = ",".join(f"{key}={value}" for key, value in self.options)
        return f"{engine} {self.start} {'-'.join(map(str, self.operations))}"


def workloads(fixed: Mapping[str, Any], longest: int = LONGEST) -> Iterator[Workload]:
    """Yield all workloads, short ones first.

    `fixed` are options of the engine that replace those of ENGINES in every workload.
    """
    baseline = BASELINES.get(fixed.get("engine", ""))
    shapes = [{**SIZES, **engine} for engine in ENGINES] if baseline is None else [baseline]
    engines = list(dict.fromkeys(tuple(sorted({**shape, **fixed}.items())) for shape in shapes))
    for length in range(1, longest + 1):
        for options, start in product(engines, STARTS):
            for operations in product(range(len(OPERATIONS)), repeat=length):
                yield Workload(options, start, operations)


@dataclass
class Explored:
    """The result of one workload."""

    states: int = 0  # different contents of the media that were opened
    traces: dict[str, Trace] = field(default_factory=dict)  # the different dialogues


class Explorer:
    """Runs workloads on engines that it keeps. Close it."""

    def __init__(self, again: int = 1) -> None:
        self._again = again  # crash states tried within each recovery that writes
        self._benches: dict[tuple[Any, ...], _Bench] = {}

    def explore(self, workload: Workload) -> Explored:
        """Open every crash state of the workload."""
        key = workload.options, workload.start
        if key not in self._benches:
            self.close()  # one engine at a time
            self._benches[key] = _Bench(dict(workload.options), STARTS[workload.start])
        return self._benches[key].explore(workload, self._again)

    def close(self) -> None:
        """Close the engines that are open."""
        while self._benches:
            self._benches.popitem()[1].target.close()


class _Bench:
    """An engine that has seen the start, on an overlay of its devices."""

    def __init__(self, options: dict[str, Any], start: list[Message]) -> None:
        self.target = ReferenceTarget(options)
        self._options = options
        self._hello = {key: value for key, value in self.target.hello.items() if key != "ok"}
        self._begun: list[Event] = []
        for request in ({"op": "create", "blocks": BLOCKS}, *start, {"op": "flush"}):
            self._ask(self._begun, request)
        self._media = Overlay(self.target.event_count)
        self.target.replace_power(self._media)

    def explore(self, workload: Workload, again: int) -> Explored:
        explored, choose = Explored(), random.Random(workload.name)
        events = self._run(workload)
        if events is None:
            return explored
        if "failure" in events[-1]:
            self._note(explored, events)
            return explored
        ended = self._media.point()
        points = [(point, True) for point in self._media.points] + [(ended, False)]
        seen: set[tuple[bool, frozenset[Any]]] = set()
        for point, cut in points:
            before = [*events[:-1], _cut(events[-1], point)] if cut else events
            for masks in subsets([write.sectors for write in point.pending], choose):
                content = point.left(masks)
                key = cut, frozenset(content.items())
                if key not in seen:
                    seen.add(key)
                    self._open(explored, before, content, masks, again, choose)
        return explored

    def _run(self, workload: Workload) -> list[Event] | None:
        """Return the events until the last operation has been answered; None if one failed before
        the last.
        """
        events = list(self._begun)
        self._media.lay({})
        self._ask(events, {"op": "crash", "kept": []})
        for place, number in enumerate(workload.operations):
            self._media.begin()
            self._ask(events, _request(OPERATIONS[number], 10 * (place + 1)))
            if "failure" in events[-1]:
                return events if place + 1 == len(workload.operations) else None
        return events

    def _open(
        self,
        explored: Explored,
        before: list[Event],
        content: Content,
        masks: Masks,
        again: int,
        choose: random.Random,
    ) -> None:
        """Recover what the media hold, and read everything back; then let the power fail in the
        recovery, a few times.
        """
        explored.states += 1
        events = list(before)
        self._media.lay(content)
        self._ask(events, {"op": "crash", "kept": list(masks)})
        points = self._media.points
        self._read_back(explored, events)
        if not points:
            return
        for _ in range(again):
            explored.states += 1
            point = choose.choice(points)
            kept = choose.choice(list(subsets([write.sectors for write in point.pending], choose)))
            short = [*events[: len(before)], _cut(events[len(before)], point)]
            self._media.lay(point.left(kept))
            self._ask(short, {"op": "crash", "kept": list(kept)})
            self._read_back(explored, short)

    def _read_back(self, explored: Explored, events: list[Event]) -> None:
        for view in VIEWS:
            if "failure" not in events[-1]:
                self._ask(
                    events,
                    {"op": "read", "lba": 0, "count": BLOCKS, **({"view": view} if view else {})},
                )
        self._note(explored, events)

    def _note(self, explored: Explored, events: list[Event]) -> None:
        """Keep the dialogue if it is a new one."""
        said = str(
            [
                (event["op"], event["result"], event.get("failure"))
                for event in events[len(self._begun) + 1 :]
            ]
        )
        explored.traces.setdefault(said, Trace(self._hello, events, 0, self._options))

    def _ask(self, events: list[Event], request: Message) -> None:
        events.append(ask(self.target, request, self._hello, len(events), 0))


def _request(operation: Message, tag: int) -> Message:
    if operation["op"] != "write":
        return operation
    return {
        "op": "write",
        "lba": operation["lba"],
        "tags": list(range(tag, tag + operation["count"])),
    }


def _cut(event: Event, point: Point) -> Event:
    """Return the operation, or the crash, cut short at the point."""
    short = {key: value for key, value in event.items() if key != "events"}
    inside = event.get("events", [])[: point.happened]
    return (
        short
        | {"cut": {"after": point.writes, "seed": 0}, "result": None}
        | ({"events": inside} if inside else {})
    )
