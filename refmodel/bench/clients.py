"""Clients: they ask a disk for the requests of a profile, in a closed loop or at a constant rate, and take down when each was answered.

At a constant rate every request has a moment at which it is to arrive. Latency counts from then, however long the disk let it wait: a client that
waits for one answer before it asks again would leave out just what a stall costs (coordinated omission; G. Tene, "How not to measure latency").
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from refmodel.bench.profiles import BLOCK, Request, Stretch
from refmodel.registry import Disk

BLOCKS_AT_MOST = 256  # of random data that writes are cut from


class Stopwatch:
    """Seconds that the disk's clients see pass: processor time of this thread, with idle time skipped; or the wall's, with idle time slept through."""

    def __init__(self, *, wall: bool = False) -> None:
        self._read = time.perf_counter if wall else time.thread_time
        self._wall = wall
        self._skipped = -self._read()

    def now(self) -> float:
        return self._read() + self._skipped

    def wait_until(self, moment: float) -> None:
        left = moment - self.now()
        if left > 0 and self._wall:
            time.sleep(left)
        elif left > 0:
            self._skipped += left


class RepairClock:
    """The seconds that the disk's repair timer runs by. It moves only when a profile says so, so that runs are alike."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Tally(NamedTuple):
    """What devices did, by cause."""

    reads: Counter[str]
    writes: Counter[str]
    bytes_read: Counter[str]
    bytes_written: Counter[str]
    from_memory: Counter[str]  # bytes that took no device I/O

    @classmethod
    def of(cls, tallies: Iterable["Tally"]) -> "Tally":
        """All of them together."""
        found = cls(*(Counter() for _ in cls._fields))
        for one in tallies:
            for sums, counts in zip(found, one):
                sums.update(counts)
        return found

    @property
    def ios(self) -> Counter[str]:
        return self.reads + self.writes

    @property
    def bytes(self) -> Counter[str]:
        return self.bytes_read + self.bytes_written

    def __sub__(self, before: "Tally") -> "Tally":  # type: ignore[override]
        return Tally(*(after - then for after, then in zip(self, before)))


def tally(disk: Disk) -> Tally:
    """Reads and writes of devices since the disk was opened. Flushes are not counted: they move nothing."""
    meters = (
        Tally(m.reads, m.writes, m.bytes_read, m.bytes_written, Counter())
        for m in disk.meters.values()
    )
    memory = Counter({cause: blocks * BLOCK for cause, blocks in disk.from_memory.items()})
    return Tally.of(meters)._replace(from_memory=memory)


class Window(NamedTuple):
    """A piece of a phase."""

    phase: str
    began: float  # seconds since the run began
    seconds: float  # without actions, in a closed loop
    operations: int
    latencies: list[
        float
    ]  # seconds; of each operation at a constant rate, of each batch in a closed loop
    devices: Tally


class Done(NamedTuple):
    """An action of a phase: what its foreground took, the moment it was asked for until it was answered."""

    action: str
    phase: str
    at: float  # seconds since the run began
    seconds: float
    devices: Tally


class Clients:
    """Runs stretches on a disk. `turn` is held while something is asked of it, and let go between. `data` is what is written; else it is all the same."""

    def __init__(
        self,
        disk: Disk,
        turn: AbstractContextManager,
        watch: Stopwatch,
        repair_clock: RepairClock,
        data: Callable[[int], bytes] | None = None,
    ) -> None:
        self._disk = disk
        self._turn = turn
        self._watch = watch
        self._repair_clock = repair_clock
        noise = memoryview(os.urandom(BLOCKS_AT_MOST * BLOCK))
        self._data = data or (lambda count: noise[: count * BLOCK].tobytes())  # of so many blocks
        self._read_many: Callable | None = getattr(disk, "read_many", None)
        self._taken = 0
        self._names: list[str] = []
        self.done: list[Done] = []

    def run(self, stretch: Stretch, rate: float, windows: int) -> Iterator[Window]:
        """So many windows of a stretch, at a rate in operations a second; at 0 as fast as they are answered."""
        count = len(stretch.requests)
        batch = 1 if rate else stretch.access.in_flight
        first = self._watch.now()
        ends = {
            min(count, -(-count * number // windows // batch) * batch or count)
            for number in range(1, windows + 1)
        } | {count}
        began, at, before, latencies = first, 0, tally(self._disk), []
        for start in range(0, count, batch):
            arrives = first + start / rate if rate else None
            latencies.append(self._together(stretch, start, batch, arrives))
            end = min(count, start + batch)
            if end in ends:
                after, seconds = (
                    tally(self._disk),
                    self._watch.now() - began if rate else sum(latencies),
                )
                yield Window(
                    stretch.phase.name, began, seconds, end - at, latencies, after - before
                )
                began, at, before, latencies = self._watch.now(), end, after, []

    def _together(self, stretch: Stretch, start: int, batch: int, arrives: float | None) -> float:
        """Requests that are in flight together; seconds until they were answered.

        Actions precede the request that they belong to. In a closed loop clients ask when they are done; at a constant rate requests wait for them.
        What clients have to do before they ask is not the disk's time.
        """
        with self._turn:
            requests = stretch.requests[start : start + batch]
            prepared = self._prepared(requests)
            if arrives is not None:
                self._idle_until(arrives)
            for number in range(start, start + len(requests)):
                for action in stretch.actions.get(number, ()):
                    self.act(action, stretch.phase.name)
            asked = self._watch.now() if arrives is None else arrives
            self._ask(*prepared)
            return self._watch.now() - asked

    def perform(self, requests: list[Request]) -> None:
        """Ask for requests together."""
        self._ask(*self._prepared(requests))

    def _prepared(
        self, requests: list[Request]
    ) -> tuple[list[tuple[int, bytes]], list[tuple[int, int]]]:
        """Writes with their data, and reads."""
        writes = [(lba, self._data(count)) for read, lba, count in requests if not read]
        return writes, [(lba, count) for read, lba, count in requests if read]

    def _ask(self, writes: list[tuple[int, bytes]], reads: list[tuple[int, int]]) -> None:
        if len(writes) == 1:
            self._disk.write(*writes[0])
        elif writes:
            self._disk.write_many(writes)
        if self._read_many is not None and len(reads) > 1:
            self._read_many(reads)
        else:
            for lba, count in reads:
                self._disk.read(lba, count)

    def act(self, action: str, phase: str) -> None:
        """Do what a phase says; take down what it cost. Raises ValueError for an action that there is not."""
        before, started = tally(self._disk), self._watch.now()
        for one in action.split(" and "):
            self._act(one)
        self.done.append(
            Done(action, phase, started, self._watch.now() - started, tally(self._disk) - before)
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
                self._repair_clock.seconds += self._disk.geometry.repair_timer
                self._disk.tick()
            case ["settle"]:
                self._disk.settle()
            case _:
                raise ValueError(f"no such action: {action}")

    def _idle_until(self, moment: float) -> None:
        """The disk may use the time that its clients leave it. What it has begun it finishes, though a request arrives meanwhile."""
        while self._watch.now() < moment and self._disk.background():
            pass
        self._watch.wait_until(moment)
