"""The workload profiles: which operations clients ask for, in which order, and what happens to the
disk meanwhile.

One table, deterministic by seed: the same profile, size and seed give the same operations in the
same order, which `digest` tells in eight letters. docs/workloads.md is `python -m
refmodel.bench.profiles`; refmodel.bench.fio_jobs writes the same table as job files for fio. Sizes
are in blocks of 4 KiB.
"""

import hashlib
import random
import struct
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

BLOCK = 4096
DISK = 16384  # blocks of the disk at scale 1: 64 MiB
PACKED = struct.Struct("<?QI")


class Access(NamedTuple):
    """What one request of a phase is drawn from."""

    reads: float  # share of the requests
    blocks: int  # of a request
    random: float = (
        1.0  # share of the requests that go anywhere; the others go on where the last of them ended
    )
    in_flight: int = 16  # requests together
    span: float = 1.0  # share of the disk that is used, from its beginning
    skew: float = 0.0  # exponent of Zipf's law for what goes anywhere; 0: uniform

    def __str__(self) -> str:
        kind = {1.0: "random", 0.0: "sequential"}.get(self.random, f"{self.random:.0%} random")
        law = f", Zipf {self.skew:g}" if self.skew else ""
        part = f" on {self.span:.0%} of the disk" if self.span < 1 else ""
        return f"{self.blocks * BLOCK >> 10} KiB, {self.reads:.0%} read, {kind}{law}{part}, {self.in_flight} in flight"


class Phase(NamedTuple):
    """A stretch of a run. Its actions are spread evenly over it, the first at its beginning.

    Actions: `snapshot`, `delete-oldest`, `delete-all`; `settle` (what reclaim or consolidation
    there is to do is done); `fail N MODE`, `return N`, `timer` (the repair timer runs out). Several
    at once are joined by `and`.
    """

    name: str
    length: float  # in units of the profile
    actions: tuple[str, ...] = ()
    rate: float = 0.0  # operations arrive at this share of the rate of the first phase, come what may; 0: as fast as they are answered
    access: Access | None = None  # of this phase; else the profile's


@dataclass(frozen=True)
class Profile:
    what: str
    published: str  # the set-up that it is taken from, "" for this project's own
    access: Access
    phases: tuple[Phase, ...] = (Phase("run", 20),)
    unit: int = 1000  # operations of a phase of length 1, at scale 1
    layout: str = "mirror"  # the capacity leg, unless another is asked for

    @property
    def length(self) -> float:
        return sum(phase.length for phase in self.phases)

    @property
    def options(self) -> dict[str, int]:
        """Of the disk: where devices fail there is a spare, and repair is slow, as it is where
        there are clients to be served.
        """
        fails = any(action.startswith("fail") for phase in self.phases for action in phase.actions)
        return {"spares": 1, "repair_share": 10} if fails else {}


class Request(NamedTuple):
    read: bool
    lba: int
    count: int


HPE = "HPE: one VM, two disks, vdbench, 16 threads a disk, 8 KB, 50 % read, vSAN ESA RAID-6"
NET_ONE = "Net One: four hosts, RAID-5, 70 % read, 100k, 200k ... IOPS up to the maximum"
STEADY = "Net One: four hosts, RAID-5, 8 VMs at 5,000 IOPS each; repair timer 3 minutes"
VMWARE = (
    "VMware: fio, libaio, 4 jobs of iodepth 32, 50 GB, 300 s, one run after each of 12 snapshots"
)
STORAGE_REVIEW = "StorageReview: HCIBench, 16 VMs of 10 disks, 1.6 TB (in the cache) or 16 TB"
VFRC = "vFRC: 32 GB disk, cache of 6 GB, 4 KB cache blocks"

LADDER = (
    Phase("0 snapshots", 1),
    *(Phase(f"{count} snapshots", 1, ("snapshot",)) for count in range(1, 13)),
    *(Phase(f"{count} left", 1, ("delete-oldest and settle",)) for count in reversed(range(12))),
)
HPE_PHASES = (
    Phase("before", 10),
    Phase("10 snapshots", 2, ("snapshot",) * 10),
    Phase("hold", 10),
    Phase("delete all", 1, ("delete-all",)),
    Phase("after", 10),
)
LOAD_STEPS = (
    Phase("maximum", 4),
    *(Phase(f"{percent} %", 3, rate=percent / 100) for percent in (20, 40, 60, 80)),
)
FAULTS = (
    Phase("maximum", 2),
    Phase("steady", 3, rate=0.25),
    Phase("4 snapshots", 3, ("snapshot",) * 4, rate=0.25),
    Phase("hold", 3, rate=0.25),
    Phase("delete all", 3, ("delete-all",), rate=0.25),
    Phase("path down", 1, ("fail 1 absent",), rate=0.25),
    Phase("path back", 3, ("return 1",), rate=0.25),
    Phase("absent", 3, ("fail 2 absent",), rate=0.25),
    Phase("timer: rebuild", 7, ("timer",), rate=0.25),
    Phase("disk back", 2, ("return 2",), rate=0.25),
    Phase("dead: rebuild", 7, ("fail 3 degraded",), rate=0.25),
)
CRYSTAL = (
    Phase("first read", 1, access=Access(1, 64, 0, 1, span=0.1)),
    Phase("sequential read", 1, access=Access(1, 64, 0, 1, span=0.1)),
    Phase("4K queued read", 8, access=Access(1, 1, 1, 32, span=0.1)),
    Phase("sequential write", 1, access=Access(0, 64, 0, 1, span=0.1)),
    Phase("4K queued write", 8, access=Access(0, 1, 1, 32, span=0.1)),
)


def _own() -> Iterator[tuple[str, Profile]]:
    for name, what, reads in (
        ("4k-random-write", "4 KiB writes", 0.0),
        ("4k-random-read", "4 KiB reads", 1.0),
        ("4k-random-50-50", "4 KiB, half reads and half writes", 0.5),
    ):
        yield (
            name,
            Profile(
                f"{what}, uniformly random, on a disk that was written once", "", Access(reads, 1)
            ),
        )


def _load_steps() -> Iterator[tuple[str, Profile]]:
    for kib in (4, 8, 64, 128):
        access = Access(0.7, kib // 4, in_flight=8)
        unit = max(60, 4000 // kib)
        yield (
            f"netone-steps-{kib}k",
            Profile(f"load in steps, {kib} KiB", NET_ONE, access, LOAD_STEPS, unit, "raid5-4+1"),
        )


def _hcibench() -> Iterator[tuple[str, Profile]]:
    for name, what, access in (
        ("4k-read", "4 KiB random reads", Access(1, 1)),
        ("4k-write", "4 KiB random writes", Access(0, 1)),
        ("8k-70", "8 KiB random, 70 % read", Access(0.7, 2)),
        ("32k-read", "32 KiB sequential reads", Access(1, 8, 0)),
        ("32k-write", "32 KiB sequential writes", Access(0, 8, 0)),
    ):
        phases = (Phase("warm", 10), Phase("run", 10))
        unit = 1000 // access.blocks
        yield (
            f"hcibench-{name}",
            Profile(f"{what}, on all of the disk", STORAGE_REVIEW, access, phases, unit),
        )
        inside = access._replace(span=0.1)
        yield (
            f"hcibench-{name}-in-cache",
            Profile(f"{what}, on a tenth of the disk", STORAGE_REVIEW, inside, phases, unit),
        )


PROFILES: dict[str, Profile] = {
    **dict(_own()),
    "hpe-8k-50": Profile(
        "10 snapshots in 2 minutes, held for 10, deleted at once", HPE, Access(0.5, 2, in_flight=32), HPE_PHASES, layout="raid6-4+2"
    ),
    **dict(_load_steps()),
    "netone-steady": Profile(
        "8 clients at a constant rate through snapshots, a path that flaps, a device absent until the timer runs "
        "out, and a dead one",
        STEADY, Access(0.7, 1, in_flight=8), FAULTS, layout="raid5-4+1",
    ),
    "vmware-4k-random": Profile("4 KiB, half reads and half writes, random", VMWARE, Access(0.5, 1, in_flight=128)),
    "vmware-4k-sequential": Profile("4 KiB, half reads and half writes, sequential", VMWARE, Access(0.5, 1, 0, in_flight=128)),
    "vmware-16k-mix": Profile(
        "16 KiB, half random and half sequential; 1 to 12 snapshots, a run after each, then deleted one by one",
        VMWARE, Access(0.5, 4, 0.5, in_flight=128), LADDER,
    ),
    **dict(_hcibench()),
    "vfrc-crystal": Profile("CrystalDiskMark's four tests on a tenth of the disk, read once before", VFRC, CRYSTAL[2].access, CRYSTAL, 500),
    "vfrc-sizing": Profile(
        "4 KiB, half reads and half writes, some blocks far more often than others", VFRC, Access(0.5, 1, skew=0.9), (Phase("warm", 20), Phase("run", 20))
    ),
}  # fmt: skip


def requests(access: Access, blocks: int, count: int, choose: random.Random) -> Iterator[Request]:
    """So many requests to a disk of so many blocks.

    Whole requests only: a disk must hold at least one.
    """
    places = max(1, int(blocks * access.span) // access.blocks)
    weights = (
        list(accumulate((place + 1) ** -access.skew for place in range(places)))
        if access.skew
        else []
    )
    order = choose.sample(range(places), places) if weights else range(places)
    following = 0
    for _ in range(count):
        read = choose.random() < access.reads
        if access.random < 1 and choose.random() >= access.random:
            place, following = following, (following + 1) % places
        else:
            place = (
                order[bisect(weights, choose.random() * weights[-1])]
                if weights
                else choose.randrange(places)
            )
        yield Request(read, place * access.blocks, access.blocks)


class Stretch(NamedTuple):
    """A phase with the requests that it is made of, and the actions that precede some of them."""

    phase: Phase
    access: Access
    requests: list[Request]
    actions: dict[int, list[str]]  # by the number of the request


def stretches(profile: Profile, blocks: int, unit: float, seed: int) -> Iterator[Stretch]:
    """The phases of a run, one after another; `unit` is the operations of a phase of length 1."""
    choose = random.Random(seed)
    for phase in profile.phases:
        access = phase.access or profile.access
        count = max(1, round(phase.length * unit))
        actions: dict[int, list[str]] = {}
        for number, action in enumerate(phase.actions):
            actions.setdefault(count * number // len(phase.actions), []).append(action)
        yield Stretch(phase, access, list(requests(access, blocks, count, choose)), actions)


def digest(run: list[Stretch]) -> str:
    """Tells runs apart that differ in any operation, or in their order."""
    found = hashlib.blake2b(digest_size=4)
    for stretch in run:
        for number, request in enumerate(stretch.requests):
            for action in stretch.actions.get(number, ()):
                found.update(action.encode())
            found.update(PACKED.pack(*request))
    return found.hexdigest()


def document() -> str:
    """docs/workloads.md."""
    rows = []
    for name, profile in PROFILES.items():
        phases = (
            ", ".join(dict.fromkeys(_shown(phase) for phase in profile.phases))
            if len(profile.phases) > 1
            else ""
        )
        operations = f"{round(profile.length * profile.unit):,}"
        rows.append(
            f"| `{name}` | {profile.what} | {profile.access} | {phases} | {operations} | {profile.layout} | "
            f"{profile.published or 'our own'} |"
        )
    head = "| profile | what | a request | phases | operations | layout | taken from |"
    return "\n".join([HEAD, head, "|---|---|---|---|---|---|---|", *rows, ""])


def _shown(phase: Phase) -> str:
    return f"{phase.name} ({phase.rate:.0%})" if phase.rate else phase.name


HEAD = """# Workloads

This file is what `python -m refmodel.bench.profiles` prints; a test compares them. `refmodel bench --profile NAME` runs one on the reference engine or on a baseline (`--engine`), after the disk was filled; the same
table as job files for fio is in [workloads/](../workloads), for any NBD server: `URI='nbd+unix:///?socket=PATH' fio workloads/NAME.fio`. fio takes no snapshots and pulls no devices: where a
profile does, the job file says so in a comment.

At scale 1 the disk has 64 MiB and a run the operations below; `--scale` multiplies both, and every run prints its scale. What is reproduced is the shape of a published measurement, not its figures: the
set-ups are terabytes and minutes. A run is deterministic by its seed: the digest that it prints is that of all its operations in their order.

Phases without a rate are a closed loop: as many requests as are in flight are asked for together, and the next ones when they are answered. A rate in percent is that share of what the first phase could do,
and requests arrive at that rate whatever happens; latency is counted from the moment at which a request was to arrive, so a disk that stalls is charged for all that waited (no coordinated omission). Time is the
processor time of the engine, so that whatever else the machine does is not measured; `--sync` waits for the medium and measures the wall's.

With `--snapshots N` the run begins with N snapshots, each with writes of its own.

`--json FILE` writes an object a run, a line each: `profile`, `engine`, `layout`, `snapshots`, `cache_bytes`, `scale`, `blocks`, `seed`, `digest`, `clock` ("processor" or "wall"); `operations`, `seconds`, `iops`, `latency_us` (`p50`, `p99`),
`foreground_device_ios` (those that an operation waits for), `device_ios_by_cause`, `device_bytes_by_cause`, `device_bytes_written_by_cause`, `user_bytes`; `phases`, the same for each; `actions`, what each took; `reduction_ratio` if data is
reduced; `ratio_to_peers` with `--compare`. Flushes are not counted: they move nothing. The causes are in [counters.md](counters.md).
"""

if __name__ == "__main__":
    print(document(), end="")
