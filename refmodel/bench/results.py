"""The results of a bench run and of its phases: figures, JSON, and a table."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from refmodel.bench.clients import ActionDone, Tally, Window
from refmodel.bench.workloads.profiles import PROFILES
from refmodel.bench.workloads.workload import BLOCK, Request
from refmodel.cache.flash import CAUSE as CACHE
from refmodel.core.breakdown import Breakdown
from refmodel.core.time_spent import PARTS
from refmodel.observe.describe import counted

PERCENTILES = (50, 90, 99, 99.9)


class Measured(ABC):
    """The measurements that a run and a phase have in common: windows and their device I/Os."""

    windows: list[Window]

    @property
    @abstractmethod
    def devices(self) -> Tally:
        """Device I/Os and bytes, by cause."""

    @property
    @abstractmethod
    def user_bytes(self) -> int:
        """Bytes that clients read and wrote."""

    @property
    def operations(self) -> int:
        """Number of operations that clients did."""
        return sum(window.operations for window in self.windows)

    @property
    def seconds(self) -> float:
        """Seconds by the run's clock: wall-clock time or CPU time."""
        return sum(window.seconds for window in self.windows)

    @property
    def processor(self) -> float:
        """CPU seconds per operation."""
        return sum(window.processor for window in self.windows) / self.operations

    @property
    def iops(self) -> float:
        """Operations per second."""
        return self.operations / self.seconds

    @property
    def foreground(self) -> float:
        """Foreground device I/Os per operation: those that the operation waits for."""
        return self.devices.ios["foreground"] / self.operations

    def latency(self, percent: float) -> float:
        """Return a percentile of the latency, in microseconds."""
        return percentile(self.windows, percent)

    def summary(self) -> dict[str, Any]:
        """Return the fields that `--json` has for a run and for each of its phases."""
        return {
            "operations": self.operations,
            "seconds": self.seconds,
            "iops": self.iops,
            "bw_bytes": self.user_bytes / self.seconds,
            "cpu_ns_per_io": round(1e9 * self.processor),
            "clat_ns": {
                "percentile": {
                    f"{percent:.6f}": round(1e3 * self.latency(percent)) for percent in PERCENTILES
                }
            },
            "device_ios_by_cause": dict(self.devices.ios),
            "device_bytes_by_cause": dict(self.devices.bytes),
            "user_bytes": self.user_bytes,
        }


@dataclass(frozen=True)
class Result(Measured):
    """The result of one run."""

    profile: str
    engine: str
    layout: str  # layout of the devices; "" if the engine has no layouts
    scale: float  # 1: a disk of 64 MiB, and as many operations as the profile says
    blocks: int  # size of the disk
    snapshots: int  # number of snapshots when the run began
    cache_bytes: int  # size of the read cache in front of the disk; 0: none
    seed: int
    digest: str  # digest of the operations, in their order
    wall: bool  # seconds are wall-clock time; else CPU time
    windows: list[Window]
    actions: list[ActionDone]
    requests: dict[str, list[Request]] = field(repr=False)  # by phase
    peers: dict[str, float] = field(default_factory=dict)  # name -> seconds for the same operations
    reduction: float | None = None  # with data reduction: blocks per block of space, at the end
    waits: dict[str, Breakdown] = field(default_factory=dict, repr=False)  # by phase

    @property
    def devices(self) -> Tally:
        """Device I/Os and bytes of all phases, by cause."""
        return Tally.of(window.devices for window in self.windows)

    @property
    def user_bytes(self) -> int:
        """Bytes that clients read and wrote."""
        return sum(request.blocks * BLOCK for request in chain(*self.requests.values()))

    @property
    def phases(self) -> list["Part"]:
        """The result of each phase, in order."""
        return [self.part(name) for name in self.requests]

    def part(self, phase: str) -> "Part":
        """Return the result of one phase.

        Raises KeyError if there is no phase of that name.
        """
        requests = self.requests[phase]
        windows = [window for window in self.windows if window.phase == phase]
        actions = [done for done in self.actions if done.phase == phase]
        return Part(phase, windows, actions, requests, self.waits.get(phase, Breakdown()))

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes for a run."""
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
            **self.summary(),
            "foreground_device_ios": self.devices.ios["foreground"],
            "device_bytes_written_by_cause": dict(self.devices.bytes_written),
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
            "ratio_to_peers": {
                name: seconds / self.seconds for name, seconds in self.peers.items()
            },
        }


@dataclass(frozen=True)
class Part(Measured):
    """The result of one phase of a run."""

    name: str
    windows: list[Window]
    actions: list[ActionDone]
    requests: list[Request] = field(repr=False)
    waits: Breakdown = field(repr=False)  # parts of the latency

    @property
    def devices(self) -> Tally:
        """Device I/Os and bytes of the phase, by cause, without its actions."""
        whole = Tally.of(window.devices for window in self.windows)
        return whole - Tally.of(done.devices for done in self.actions)

    @property
    def user_bytes(self) -> int:
        """Bytes that clients read and wrote."""
        return sum(request.blocks * BLOCK for request in self.requests)

    @property
    def user_bytes_written(self) -> int:
        """Bytes that clients wrote."""
        return sum(request.blocks * BLOCK for request in self.requests if not request.read)

    @property
    def hit_rate(self) -> float:
        """Share of the bytes read that a cache answered; 0 without a cache or without reads."""
        read = self.user_bytes - self.user_bytes_written
        return self.devices.bytes_read[CACHE] / read if read else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes for a phase."""
        return {
            "phase": self.name,
            **self.summary(),
            "clat_parts_ns": {
                f"{percent:.6f}": {
                    "latency": round(share.latency),
                    "parts": {name: round(spent, 1) for name, spent in share.parts.items()},
                    "in_flight": share.in_flight,
                    "group": share.group,
                }
                for percent in PERCENTILES
                if (share := self.waits.at(percent)) is not None
            },
        }


def percentile(windows: list[Window], percent: float) -> float:
    """Return a percentile of the latency over some windows, in microseconds."""
    found = sorted(chain.from_iterable(window.latencies for window in windows))
    return 1e6 * found[min(len(found) - 1, int(len(found) * percent / 100))]


def describe(result: Result) -> str:
    """Return the tables that `refmodel bench` prints for a run."""
    tables = (_setting, _phases, _waits, _peers, _causes)
    return "\n".join(line for part in tables for line in part(result))


def _setting(result: Result) -> list[str]:
    """Return lines that say what was run."""
    profile = PROFILES[result.profile]
    engine = ", ".join(filter(None, (result.engine, result.layout)))
    facts = [engine, f"{counted(result.snapshots, 'snapshot')} before the run"]
    if result.cache_bytes:
        size, rate = round(result.cache_bytes / 2**20, 1), result.phases[-1].hit_rate
        facts.append(f"read cache of {size:g} MiB, hit rate {rate:.1%} in the last phase")
    if result.reduction is not None:
        facts.append(f"data reduction {result.reduction:.2f} to 1")
    facts.append(f"seed {result.seed}, digest of the operations {result.digest}")
    operations = f"{result.operations:,} operation" + "s" * (result.operations != 1)
    scale = f"scale {result.scale:g}: {round(result.blocks * BLOCK / 2**20, 1):g} MiB, {operations}"
    published = f"; published set-up: {profile.published}" if profile.published else ""
    return [f"{result.profile}: {profile.what}", f"  {'; '.join(facts)}", f"  {scale}{published}"]


def _phases(result: Result) -> list[str]:
    """Return a row per phase."""
    clock = "wall" if result.wall else "CPU"
    lines = [
        f"  {'':<16} {'':>10} {'ops per':>11} {'':>7} {'CPU us':>7} "
        f"{f'latency by {clock} time, us':^35} {'foreground':>11} {'background':>11}",
        f"  {'phase':<16} {'operations':>10} {clock + ' second':>11} {'MiB/s':>7} {'per op':>7} "
        + "".join(f"{f'p{percent:g}':>9}" for percent in PERCENTILES)
        + f"{'I/Os per op':>12} {'I/Os per op':>11}",
    ]
    for part in result.phases:
        background = (part.devices.ios.total() - part.devices.ios["foreground"]) / part.operations
        lines.append(
            f"  {part.name:<16} {part.operations:>10,} {part.iops:>11,.0f} "
            f"{part.user_bytes / part.seconds / 2**20:>7,.1f} {1e6 * part.processor:>7.1f} "
            + "".join(f"{part.latency(percent):>9,.0f}" for percent in PERCENTILES)
            + f"{part.foreground:>12.4f} {background:>11.4f}"
        )
    return lines


def _waits(result: Result) -> list[str]:
    """Return a row per phase and percentile: what its requests waited for."""
    rows = [
        (f"{part.name} p{percent:g}", share)
        for part in result.phases
        for percent in (50, 99)
        if (share := part.waits.at(percent)) is not None
    ]
    names = [name for name in PARTS if any(share.parts[name] for _, share in rows)]
    head = "".join(f"{name:>11}" for name in names)
    lines = [
        f"  {'':<24} {'requests':>9} {'latency':>9}",
        f"  {'about a percentile':<24} {'per group':>9} {'us':>9} ={head}",
    ]
    for title, share in rows:
        parts = "".join(f"{share.parts[name] / 1e3:>11,.1f}" for name in names)
        lines.append(f"  {title:<24} {share.group:>9.1f} {share.latency / 1e3:>9,.1f}  {parts}")
    return lines if rows else []


def _peers(result: Result) -> list[str]:
    return [
        f"  rate: {seconds / result.seconds:.2f} times that of {name}"
        for name, seconds in result.peers.items()
    ]


def _causes(result: Result) -> list[str]:
    """Return a row per cause of device I/O, actions included."""
    devices = result.devices
    lines = [
        f"  {'':<14} {'':>12} {'device I/Os':>12} {'device bytes':>14}",
        f"  {'cause':<14} {'device I/Os':>12} {'per op':>12} {'per user byte':>14}",
    ]
    for cause, count in sorted(devices.ios.items()):
        per, moved = count / result.operations, devices.bytes[cause] / result.user_bytes
        lines.append(f"  {cause:<14} {count:>12,} {per:>12.3f} {moved:>14.3f}")
    return lines
