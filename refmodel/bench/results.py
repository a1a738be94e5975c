"""What a run of the bench came to: of all of it and of its phases, as figures, as JSON, as a table."""

from dataclasses import dataclass, field
from itertools import chain

from refmodel.bench.clients import Done, Tally, Window
from refmodel.bench.profiles import BLOCK, PROFILES, Request
from refmodel.cache.flash import CAUSE as CACHE


class Measured:
    """Windows of a run, with what devices did for it."""

    windows: list[Window]
    devices: Tally
    user_bytes: int

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
    def foreground(self) -> float:
        """Device I/Os of an operation's own, without the background's."""
        return self.devices.ios["foreground"] / self.operations

    def latency(self, percent: float) -> float:
        """Microseconds that so many percent of the operations do not exceed."""
        return percentile(self.windows, percent)

    def summary(self) -> dict:
        """What `--json` says of a run and of each of its phases."""
        return {
            "operations": self.operations,
            "seconds": self.seconds,
            "iops": self.iops,
            "latency_us": {f"p{percent}": self.latency(percent) for percent in (50, 99)},
            "device_ios_by_cause": dict(self.devices.ios),
            "device_bytes_by_cause": dict(self.devices.bytes),
            "user_bytes": self.user_bytes,
        }


@dataclass(frozen=True)
class Result(Measured):
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
    reduction: float | None = (
        None  # of the data, at the end, if it is reduced: blocks to the space that they take
    )

    @property
    def devices(self) -> Tally:
        return Tally.of(window.devices for window in self.windows)

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
        devices = Tally.of(window.devices for window in windows) - Tally.of(
            done.devices for done in actions
        )
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
    """What one phase of a run came to."""

    name: str
    windows: list[Window]
    actions: list[Done]
    requests: list[Request] = field(repr=False)
    devices: Tally  # without what the actions did

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
        return self.devices.bytes_read[CACHE] / read if read else 0.0

    def as_dict(self) -> dict:
        return {
            "phase": self.name,
            **self.summary(),
        }


def percentile(windows: list[Window], percent: float) -> float:
    """Latency in microseconds that so many percent of the operations do not exceed."""
    found = sorted(chain.from_iterable(window.latencies for window in windows))
    return 1e6 * found[min(len(found) - 1, int(len(found) * percent / 100))]


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
