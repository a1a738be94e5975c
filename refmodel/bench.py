"""The bench: a workload profile on a new disk of some engine; how fast, and what an operation costs in device I/Os and bytes, by cause.

Deterministic by seed. Seconds are noise on a shared machine; the counts are not.
"""

import inspect
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from refmodel.cache.disk import CachedDisk
from refmodel.cache.flash import CAUSE as CACHE
from refmodel.cache.settings import SMALLEST, Settings
from refmodel.clients import Clients, Done, RepairClock, Stopwatch, Tally, Window
from refmodel.control import Listener, Turn
from refmodel.counters import reduction
from refmodel.dataset import Files
from refmodel.engines import DEFAULT, ENGINES, Disk, create, open_disk, plan
from refmodel.geometry import with_reserve
from refmodel.label import Shape
from refmodel.peers import PEERS
from refmodel.profiles import BLOCK, DISK, PROFILES, Profile, Request, Stretch, digest, stretches

SEGMENT = 128  # blocks, as plan has it
FILL = 64  # blocks of a write that fills the disk
COPIES = 4  # of a block of files, on average, on the whole disk
GENERATION = 256  # blocks that are written between two snapshots taken before the run
WINDOWS = 100  # of a run,
BATCHES = 8  # of requests at least in each


@dataclass(frozen=True)
class Result:
    profile: str
    engine: str
    layout: str  # of the devices; "" where the engine has none to choose from
    scale: float  # 1: 64 MiB, and as many operations as the profile says
    blocks: int
    snapshots: int  # held from the beginning on
    cache_bytes: int  # of a read cache in front of the disk; 0: none
    seed: int
    digest: str  # of the operations, in their order
    wall: bool  # seconds are the wall's; else those of the processor
    windows: list[Window]
    actions: list[Done]
    requests: dict[str, list[Request]] = field(repr=False)  # by phase
    peers: dict[str, float] = field(default_factory=dict)  # name -> seconds for the same operations
    reduction: float | None = None  # of the data, at the end, if it is reduced: blocks to the space that they take

    @property
    def operations(self) -> int:
        return sum(window.operations for window in self.windows)

    @property
    def seconds(self) -> float:
        return sum(window.seconds for window in self.windows)

    @property
    def iops(self) -> float:
        return self.operations / self.seconds

    @property
    def devices(self) -> Tally:
        return total(window.devices for window in self.windows)

    @property
    def user_bytes(self) -> int:
        return sum(request.count * BLOCK for request in chain(*self.requests.values()))

    @property
    def phases(self) -> list["Part"]:
        return [self.part(name) for name in self.requests]

    def part(self, phase: str) -> "Part":
        """One phase of the run. Its actions are not in its device I/Os. Raises KeyError if there is none of that name."""
        requests = self.requests[phase]
        windows = [window for window in self.windows if window.phase == phase]
        actions = [done for done in self.actions if done.phase == phase]
        devices = total(window.devices for window in windows) - total(done.devices for done in actions)
        return Part(phase, windows, actions, requests, devices)

    def as_dict(self) -> dict:
        """What `--json` writes."""
        return {
            "profile": self.profile,
            "engine": self.engine,
            "layout": self.layout,
            "snapshots": self.snapshots,
            "cache_bytes": self.cache_bytes,
            "scale": self.scale,
            "blocks": self.blocks,
            "seed": self.seed,
            "digest": self.digest,
            "clock": "wall" if self.wall else "processor",
            "operations": self.operations,
            "seconds": self.seconds,
            "iops": self.iops,
            "latency_us": _percentiles(self.windows),
            "foreground_device_ios": self.devices.ios["foreground"],
            "device_ios_by_cause": dict(self.devices.ios),
            "device_bytes_by_cause": dict(self.devices.bytes),
            "device_bytes_written_by_cause": dict(self.devices.written),
            "user_bytes": self.user_bytes,
            "phases": [part.as_dict() for part in self.phases],
            "actions": [
                {
                    "action": done.action,
                    "phase": done.phase,
                    "at": done.at,
                    "seconds": done.seconds,
                    "device_ios_by_cause": dict(done.devices.ios),
                }
                for done in self.actions
            ],
            "reduction_ratio": self.reduction,
            "ratio_to_peers": {name: seconds / self.seconds for name, seconds in self.peers.items()},
        }


@dataclass(frozen=True)
class Part:
    """What one phase of a run came to."""

    name: str
    windows: list[Window]
    actions: list[Done]
    requests: list[Request] = field(repr=False)
    devices: Tally  # without what the actions did

    @property
    def operations(self) -> int:
        return len(self.requests)

    @property
    def seconds(self) -> float:
        return sum(window.seconds for window in self.windows)

    @property
    def iops(self) -> float:
        return self.operations / self.seconds

    @property
    def user_bytes(self) -> int:
        return sum(request.count * BLOCK for request in self.requests)

    @property
    def user_bytes_written(self) -> int:
        return sum(request.count * BLOCK for request in self.requests if not request.read)

    @property
    def hit_rate(self) -> float:
        """Share of the bytes that were read that a read cache had; 0 where there is none, or nothing was read."""
        read = self.user_bytes - self.user_bytes_written
        return self.devices.read[CACHE] / read if read else 0.0

    @property
    def foreground(self) -> float:
        """Device I/Os of an operation's own, without the background's."""
        return self.devices.ios["foreground"] / self.operations

    def latency(self, percent: float) -> float:
        """Microseconds that so many percent of the operations do not exceed."""
        return percentile(self.windows, percent)

    def as_dict(self) -> dict:
        return {
            "phase": self.name,
            "operations": self.operations,
            "seconds": self.seconds,
            "iops": self.iops,
            "latency_us": _percentiles(self.windows),
            "device_ios_by_cause": dict(self.devices.ios),
            "device_bytes_by_cause": dict(self.devices.bytes),
            "user_bytes": self.user_bytes,
        }


Watch = Callable[[Window, int, int], None]  # is told of each window, and how many of how many operations are done


def run(
    profile: str,
    *,
    engine: str = DEFAULT,
    layout: str | None = None,
    cache_bytes: int = 0,
    cache_block_bytes: int = SMALLEST,
    compression: bool = False,
    deduplication: bool = False,
    files: bool = False,
    scale: float = 1.0,
    blocks: int | None = None,
    operations: int | None = None,
    depth: int | None = None,
    snapshots: int = 0,
    room: int = 0,
    still: bool = False,
    compare: bool = False,
    sync: bool = False,
    seed: int = 1,
    path: Path | None = None,
    watch: Watch = lambda window, done, of: None,
) -> Result:
    """Run a profile on a fresh disk, filled once, with so many snapshots, and room for `room` where that is more.

    `blocks`, `operations` and `depth` override what the profile and `scale` say. With `cache_bytes` there is a read cache in front of
    the disk. What is written is random bytes, always the same, or with `files`, and where data is reduced, what refmodel.dataset has. With `still` the same operations are done and none of the actions: what the actions are measured against. `compare` runs
    the same operations on peers too. The disk is made at `path` and stays, or is a temporary one. Raises KeyError for a profile or
    engine that does not exist, NotADisk if the folder is in use, BadRequest for what the engine cannot be made with.
    """
    chosen = PROFILES[profile]
    blocks = blocks or max(FILL, round(DISK * scale))
    unit = operations / chosen.length if operations else chosen.unit * scale
    parts = list(stretches(chosen, blocks, unit, seed))
    if still:
        parts = [part._replace(actions={}) for part in parts]
    if depth:
        parts = [part._replace(access=part.access._replace(in_flight=depth)) for part in parts]
    stopwatch, repair_clock, turn = Stopwatch(wall=sync), RepairClock(), Turn()
    with tempfile.TemporaryDirectory(dir=_memory(sync)) as folder:
        path = path or Path(folder) / "disk"
        shape = _plan(engine, chosen, parts, blocks, max(snapshots, room), layout, {"compression": compression, "deduplication": deduplication})
        create(
            path, shape, sync=sync, cache=Settings.of(shape, cache_bytes, cache_block_bytes) if cache_bytes else None
        )
        with closing(open_disk(path, sync=sync, now=repair_clock)) as disk, closing(Listener(path, disk, turn)):
            reduced = compression or deduplication
            data = Files(blocks // COPIES, BLOCK, seed).take if files or reduced else None
            clients = Clients(disk, turn, stopwatch, repair_clock, data)
            with turn:
                prepare(clients, disk, blocks, snapshots, seed)
            windows = _measure(clients, parts, watch)
            ratio = reduction(disk.disk if isinstance(disk, CachedDisk) else disk) if reduced else None
        peers = {}
        if compare:
            batches = [
                part.requests[at : at + part.access.in_flight]
                for part in parts
                for at in range(0, len(part.requests), part.access.in_flight)
            ]
            peers = {name: peer(Path(folder), blocks, batches, stopwatch) for name, peer in PEERS.items()}
    requests = {part.phase.name: part.requests for part in parts}
    return Result(
        profile, engine, getattr(shape, "layout", ""), scale, blocks, snapshots, cache_bytes, seed, digest(parts), sync, windows, clients.done, requests, peers, ratio
    )  # fmt: skip


def prepare(clients: Clients, disk: Disk, blocks: int, snapshots: int, seed: int) -> None:
    """Fill the disk, take snapshots with random writes between them, and let the disk come to rest."""
    choose = random.Random(f"history {seed}")
    for lba in range(0, blocks, FILL):
        clients.perform([Request(False, lba, min(FILL, blocks - lba))])
    for number in range(snapshots):
        disk.snapshot(f"before{number}")
        clients.perform([Request(False, choose.randrange(blocks), 1) for _ in range(GENERATION)])
    disk.settle()
    disk.checkpoint()


def _measure(clients: Clients, parts: list[Stretch], watch: Watch) -> list[Window]:
    operations, length = sum(len(part.requests) for part in parts), sum(part.phase.length for part in parts)
    windows: list[Window] = []
    done, fastest = 0, 0.0
    for part in parts:
        most = len(part.requests) // (BATCHES * part.access.in_flight)
        for window in clients.run(
            part, part.phase.rate * fastest, max(1, min(most, round(WINDOWS * part.phase.length / length)))
        ):
            windows.append(window)
            done += window.operations
            watch(window, done, operations)
        fastest = fastest or done / sum(window.seconds for window in windows)
    return windows


def _plan(
    engine: str, profile: Profile, parts: list[Stretch], blocks: int, snapshots: int, layout: str | None, reductions: dict[str, bool]
) -> Shape:
    """The engine's shape for a run: of what the profile wishes, what the engine knows. Raises BadRequest for a layout that it does not have."""
    wished = {"segments": _segments(parts, blocks, snapshots), **profile.options}
    known = inspect.signature(ENGINES[engine].plan).parameters
    options = {name: value for name, value in wished.items() if name in known}
    if layout or engine == DEFAULT:
        options["layout"] = layout or profile.layout
    options |= {name: True for name, wanted in reductions.items() if wanted}
    return plan(engine, blocks, **options)


def _segments(parts: list[Stretch], blocks: int, snapshots: int) -> int:
    """Room for whatever the snapshots may pin, and half as much again, so that cleaning does not hide what they cost."""
    written = sum(request.count for part in parts for request in part.requests if not request.read)
    taken = sum(action == "snapshot" for part in parts for action in part.phase.actions)
    pinned = blocks + snapshots * min(GENERATION, blocks) + min(written, taken * blocks)
    return with_reserve(-(-(3 * pinned // 2 + blocks // 2) // SEGMENT) + 1)


def total(tallies: Iterable[Tally]) -> Tally:
    found = Tally(Counter(), Counter(), Counter())
    for one in tallies:
        for sums, counts in zip(found, one):
            sums.update(counts)
    return found


def percentile(windows: list[Window], percent: float) -> float:
    """Latency in microseconds that so many percent of the operations do not exceed."""
    found = sorted(chain.from_iterable(window.latencies for window in windows))
    return 1e6 * found[min(len(found) - 1, int(len(found) * percent / 100))]


def _percentiles(windows: list[Window]) -> dict[str, float]:
    return {f"p{percent}": percentile(windows, percent) for percent in (50, 99)}


def _memory(sync: bool) -> str | None:
    """Where a temporary disk is made: in memory, unless the medium is to be measured."""
    return "/dev/shm" if not sync and Path("/dev/shm").is_dir() else None


def describe(result: Result) -> str:
    """A table for a person."""
    profile = PROFILES[result.profile]
    published = f"; published: {profile.published}" if profile.published else ""
    clock = "wall" if result.wall else "processor"
    cache = (
        f"; a read cache of {result.cache_bytes / 2**20:g} MiB, hit rate {result.phases[-1].hit_rate:.1%} in the "
        "last phase"
        if result.cache_bytes
        else ""
    )
    reduced = "" if result.reduction is None else f"; data reduced {result.reduction:.2f} to 1"
    lines = [
        f"{result.profile}: {profile.what}",
        f"  {', '.join(filter(None, (result.engine, result.layout)))}; {result.snapshots} snapshots at the "
        f"beginning{cache}{reduced}; seed {result.seed}, operations {result.digest}",
        f"  scale {result.scale:g}: {result.blocks * BLOCK / 2**20:g} MiB, {result.operations:,} operations{published}",
        f"  {'phase':<16} {'operations':>10} {'a second':>9} {'p50 us':>8} {'p99 us':>8} {'foreground':>11} "
        f"{'background':>11}"
        f"   seconds are the {clock}'s; device I/Os an operation",
    ]
    for part in result.phases:
        background = (part.devices.ios.total() - part.devices.ios["foreground"]) / part.operations
        lines.append(
            f"  {part.name:<16} {part.operations:>10,} {part.iops:>9,.0f} {part.latency(50):>8.0f} "
            f"{part.latency(99):>8.0f}"
            f" {part.foreground:>11.4f} {background:>11.4f}"
        )
    for name, seconds in result.peers.items():
        lines.append(f"  {seconds / result.seconds:.2f} times the rate of {name} in the same run")
    devices = result.devices
    for cause, count in sorted(devices.ios.items()):
        moved = devices.bytes[cause] / result.user_bytes
        lines.append(
            f"  {cause:<12} {count:>9,} device I/Os, {count / result.operations:.3f} an operation; {moved:.3f} "
            "bytes a user byte"
        )
    return "\n".join(lines)
