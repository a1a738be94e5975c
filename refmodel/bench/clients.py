"""Clients: they send the requests of a profile to a disk, and measure the latency of each.

They run in a closed loop (the next requests follow when the last were answered) or at a constant
rate. At a constant rate each request has a moment at which it is due, and its latency counts from
then. A client that waited for one answer before it sends the next request would not measure what a
stall costs (coordinated omission; G. Tene, "How not to measure latency").
"""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from refmodel.array.layout import ArrayGeometry
from refmodel.bench.workloads.workload import BLOCK, Request, Stretch
from refmodel.core.breakdown import Breakdown
from refmodel.core.time_spent import ENGINE, THREAD, TURN
from refmodel.registry import Disk

LONGEST_WRITE = 256  # blocks: size of the random data that writes take theirs from


class Stopwatch:
    """The clock of a run, in seconds.

    It shows wall-clock time, and sleeps through idle time; or CPU time of this thread, and skips
    idle time.
    """

    def __init__(self, *, wall: bool) -> None:
        self.read = time.perf_counter_ns if wall else time.thread_time_ns  # idle time is not in it
        self._wall = wall
        self._skipped = -self.read()

    def nanoseconds(self) -> int:
        """Nanoseconds since it was made."""
        return self.read() + self._skipped

    def now(self) -> float:
        """Return seconds since it was made."""
        return self.nanoseconds() / 1e9

    def wait_until(self, moment: float) -> None:
        """Return when the clock shows a moment, or at once if that has passed."""
        left = moment - self.now()
        if left > 0 and self._wall:
            time.sleep(left)
        elif left > 0:
            self._skipped += round(1e9 * left)


class RepairClock:
    """The clock of the repair timer. Only a profile moves it, so that runs are reproducible."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Tally(NamedTuple):
    """Device I/Os and bytes, by cause."""

    reads: Counter[str]
    writes: Counter[str]
    bytes_read: Counter[str]
    bytes_written: Counter[str]
    from_memory: Counter[str]  # bytes that were read without device I/O

    @classmethod
    def of(cls, tallies: Iterable["Tally"]) -> "Tally":
        """Return the sum of tallies."""
        found = cls(*(Counter() for _ in cls._fields))
        for one in tallies:
            for sums, counts in zip(found, one, strict=True):
                sums.update(counts)
        return found

    @property
    def ios(self) -> Counter[str]:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> Counter[str]:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    def __sub__(self, before: "Tally") -> "Tally":
        return Tally(*(after - then for after, then in zip(self, before, strict=True)))


def tally(disk: Disk) -> Tally:
    """Return the device I/Os since the disk was opened.

    Flushes are not counted: they move no data.
    """
    meters = (
        Tally(
            Counter(meter.of("reads")),
            Counter(meter.of("writes")),
            Counter(meter.of("bytes_read")),
            Counter(meter.of("bytes_written")),
            Counter(),
        )
        for meter in disk.meters.values()
    )
    memory = Counter({cause: blocks * BLOCK for cause, blocks in disk.from_memory.items()})
    return Tally.of(meters)._replace(from_memory=memory)


class Window(NamedTuple):
    """The measurements of one window of a phase."""

    phase: str
    began: float  # seconds since the run began
    seconds: float  # in a closed loop: without the actions
    processor: float  # CPU seconds, of the operations alone
    operations: int
    batch: int  # operations that were in flight together; the last batch may have fewer
    latencies: list[float]  # seconds, per batch: all its operations are answered together
    devices: Tally


class ActionDone(NamedTuple):
    """The measurements of one action of a phase, until the disk had answered it."""

    action: str
    phase: str
    at: float  # seconds since the run began
    seconds: float
    devices: Tally


class Clients:
    """Run the stretches of a profile on a disk.

    `between` is called between two batches: others may use the disk then. `data` returns what is
    written, for a number of blocks; without it the same random bytes are written again and again.
    """

    def __init__(
        self,
        disk: Disk,
        between: Callable[[], object],
        watch: Stopwatch,
        repair_clock: RepairClock,
        data: Callable[[int], bytes] | None = None,
    ) -> None:
        self._disk = disk
        self._between = between
        self._watch = watch
        self._repair_clock = repair_clock
        noise = memoryview(os.urandom(LONGEST_WRITE * BLOCK))
        self._data = data or (lambda count: noise[: count * BLOCK].tobytes())
        self._processor = 0.0  # CPU seconds that operations took
        self._taken = 0
        self._names: list[str] = []
        self.done: list[ActionDone] = []
        self.waits: defaultdict[str, Breakdown] = defaultdict(Breakdown)  # by phase

    def run(self, stretch: Stretch, rate: float, windows: int) -> Iterator[Window]:
        """Run a stretch, and yield the given number of windows.

        `rate` is in operations per second; 0: a closed loop.
        """
        THREAD.measure(self._watch.read)
        count = len(stretch.requests)
        batch = 1 if rate else stretch.access.in_flight
        first = self._watch.now()
        ends = {
            min(count, -(-count * number // windows // batch) * batch or count)
            for number in range(1, windows + 1)
        } | {count}
        began, at, before, latencies = first, 0, tally(self._disk), []
        processor = self._processor
        for start in range(0, count, batch):
            arrives = first + start / rate if rate else None
            latencies.append(self._together(stretch, start, batch, arrives))
            end = min(count, start + batch)
            if end in ends:
                after, seconds = (
                    tally(self._disk),
                    self._watch.now() - began if rate else sum(latencies),
                )
                spent, processor = self._processor - processor, self._processor
                yield Window(
                    stretch.phase.name,
                    began,
                    seconds,
                    spent,
                    end - at,
                    batch,
                    latencies,
                    after - before,
                )
                began, at, before, latencies = self._watch.now(), end, after, []
        THREAD.measure(None)

    def _together(self, stretch: Stretch, start: int, batch: int, arrives: float | None) -> float:
        """Do a batch of requests, which are in flight together. Return their latency in seconds.

        An action is done before its request. In a closed loop it is not part of the latency; at a
        constant rate the request waits for it. The clients' own preparation is never part of it.
        """
        self._between()
        requests = stretch.requests[start : start + batch]
        prepared = self._prepared(requests)
        if arrives is not None:
            self._idle_until(arrives)
        for number in range(start, start + len(requests)):
            for action in stretch.actions.get(number, ()):
                self.act(action, stretch.phase.name)
        spent = list(THREAD.until_now())
        if arrives is not None:
            spent[TURN] -= max(0, self._watch.nanoseconds() - round(1e9 * arrives))
        THREAD.switch(ENGINE)
        processor = time.thread_time()
        self._ask(*prepared)
        self._processor += time.thread_time() - processor
        THREAD.switch(TURN)
        answered, count = THREAD.until_now(), len(requests)
        self.waits[stretch.phase.name].add(spent, answered, count, count, count)
        return (sum(answered) - sum(spent)) / 1e9

    def perform(self, requests: list[Request]) -> None:
        """Do requests together."""
        self._ask(*self._prepared(requests))

    def _prepared(
        self, requests: list[Request]
    ) -> tuple[list[tuple[int, bytes]], list[tuple[int, int]]]:
        """Return the writes with their data, and the reads."""
        writes = [(lba, self._data(count)) for read, lba, count in requests if not read]
        return writes, [(lba, count) for read, lba, count in requests if read]

    def _ask(self, writes: list[tuple[int, bytes]], reads: list[tuple[int, int]]) -> None:
        if len(writes) == 1:
            self._disk.write(*writes[0])
        elif writes:
            self._disk.write_many(writes)
        if len(reads) > 1:
            self._disk.read_many(reads)
        else:
            for lba, count in reads:
                self._disk.read(lba, count)

    def act(self, action: str, phase: str) -> None:
        """Do an action of a phase, and measure it. Raises ValueError if there is no such action."""
        before, started = tally(self._disk), self._watch.now()
        for one in action.split(" and "):
            self._act(one)
        self.done.append(
            ActionDone(
                action, phase, started, self._watch.now() - started, tally(self._disk) - before
            )
        )

    def _act(self, action: str) -> None:
        match action.split():
            case ["snapshot"]:
                self._taken += 1
                self._names.append(f"s{self._taken}")
                self._disk.snapshot(self._names[-1])
            case ["delete-oldest"]:
                self._disk.delete(self._names.pop(0))
            case ["delete-all"]:
                while self._names:
                    self._disk.delete(self._names.pop(0))
            case ["fail", device, mode]:
                self._disk.fail(int(device), mode)
            case ["return", device]:
                self._disk.return_(int(device))
            case ["timer"]:
                shape = self._disk.geometry
                assert isinstance(shape, ArrayGeometry)  # the runner has checked the capabilities
                self._repair_clock.seconds += shape.repair_timer
                self._disk.tick()
            case ["settle"]:
                self._disk.settle()
            case _:
                raise ValueError(f"no such action: {action}")

    def _idle_until(self, moment: float) -> None:
        """Let the background use the time until a moment. A step that has begun is finished."""
        while self._watch.now() < moment and self._disk.background():
            pass
        self._watch.wait_until(moment)
