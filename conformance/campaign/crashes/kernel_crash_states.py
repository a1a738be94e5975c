"""Every crash state of every short workload, on a kernel driver: as campaign.crash_states.

The power fails before each flush of the last operation, and after it. What a cut can leave of the
writes that no flush has covered is `media.subsets`. Each such state is opened by the driver, all
views are read back, and the dialogue is judged as any trace is."""

import random
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from conformance.campaign.crashes.crash_states import BLOCKS, VIEWS, Explored, Workload
from conformance.campaign.crashes.crash_states import OPERATIONS as ALL
from conformance.campaign.driver import ask
from conformance.contract.trace import Event, Trace
from conformance.media.subsets import subsets
from conformance.targets import Factory
from conformance.targets.base import Message
from conformance.targets.engines.kernel.disk import KernelDisk

FEW, SAMPLED = 4, 8  # arguments of media.subsets; a state costs some 50 ms of CPU time
OPERATIONS = tuple(request for request in ALL if request["op"] not in ("clean", "checkpoint"))
STARTS: dict[str, list[Message]] = {
    "new": [],
    "used": [
        {"op": "write", "lba": 0, "tags": [1, 2, 3]},
        {"op": "snapshot", "name": "s"},
        {"op": "write", "lba": 0, "tags": [4]},
        {"op": "flush"},
    ],
}


def workloads(fixed: Mapping[str, Any], longest: int) -> Iterator[Workload]:
    """Yield all workloads, short ones first."""
    options = tuple(sorted({"spread": 2, **fixed}.items()))
    for length in range(1, longest + 1):
        for start in STARTS:
            for operations in product(range(len(OPERATIONS)), repeat=length):
                yield Workload(options, start, operations)


class Explorer:
    """Runs workloads on a driver that it keeps. Close it."""

    def __init__(self, factory: Factory) -> None:
        self._factory = factory
        self._disk: KernelDisk | None = None
        self._hello: Message = {}

    def explore(self, workload: Workload) -> Explored:
        """Open every crash state of the workload."""
        explored, choose = Explored(), random.Random(workload.name)
        disk = self._opened(dict(workload.options))
        events: list[Event] = []
        requests = [
            {"op": "create", "blocks": BLOCKS},
            *STARTS[workload.start],
            {"op": "flush"},
            *(_request(number, place) for place, number in enumerate(workload.operations[:-1])),
        ]
        for request in requests:
            self._ask(events, request)
        last = _request(workload.operations[-1], len(workload.operations) - 1)
        recorder = _Recorder(disk)
        events.append(ask(recorder, last, self._hello, len(events), 0))  # type: ignore[arg-type]
        for place, point in enumerate(recorder.points):
            ended = place == len(recorder.points) - 1
            short = {**events[-1], "result": None, "cut": {"after": point.writes, "seed": 0}}
            before = events if ended else [*events[:-1], short]
            for masks in subsets(point.sizes, choose, FEW, SAMPLED):
                explored.states += 1
                op = None if ended else last["op"]
                disk.cut_at(point.left(masks), recorder.after, op, recorder.before)
                self._read_back(explored, list(before), masks)
        return explored

    def _opened(self, options: dict[str, Any]) -> KernelDisk:
        if self._disk is None:
            disk = self._factory(options)
            assert isinstance(disk, KernelDisk)
            self._disk = disk
            self._hello = {key: value for key, value in disk.hello.items() if key != "ok"}
        return self._disk

    def _read_back(self, explored: Explored, events: list[Event], masks: tuple[int, ...]) -> None:
        begun = len(events)
        self._ask(events, {"op": "crash", "kept": list(masks)})
        for view in VIEWS:
            named = {"view": view} if view else {}
            if "failure" not in events[-1]:
                self._ask(events, {"op": "read", "lba": 0, "count": BLOCKS, **named})
        said = str(
            [(event["op"], event["result"], event.get("failure")) for event in events[begun:]]
        )
        explored.traces.setdefault(said, Trace(self._hello, events, 0, dict(self._factory.fixed)))

    def _ask(self, events: list[Event], request: Message) -> None:
        assert self._disk is not None
        events.append(ask(self._disk, request, self._hello, len(events), 0))

    def close(self) -> None:
        """Give the guest back."""
        if self._disk is not None:
            self._disk.close()
            self._disk = None


class _Recorder:
    """Stands before the disk for one request, and notes where its power may be cut."""

    def __init__(self, disk: KernelDisk) -> None:
        self._disk, self.hello = disk, disk.hello
        self.before: Any = None
        self.after: Any = None
        self.points: list[Any] = []

    def request(self, message: Message) -> Message:
        answer, self.before, self.after, self.points = self._disk.explored(message)
        return answer


def _request(number: int, place: int) -> Message:
    operation, tag = OPERATIONS[number], 10 * (place + 1)
    if operation["op"] != "write":
        return operation
    tags = list(range(tag, tag + operation["count"]))
    return {"op": "write", "lba": operation["lba"], "tags": tags}
