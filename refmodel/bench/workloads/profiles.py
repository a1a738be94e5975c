"""The workload profiles: this project's own, and those of published measurements.

docs/workloads.md describes them; `fio_jobs` beside this file writes them as job files for fio.
"""

from collections.abc import Iterator

from refmodel.bench.workloads.workload import Access, Phase, Profile

HPE = "HPE: one VM, two disks, vdbench, 16 threads per disk, 8 KB, 50 % read, vSAN ESA RAID-6"
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
QUEUED_READ = Access(1, 1, 1, 32, span=0.1)
CRYSTAL = (
    Phase("first read", 1, access=Access(1, 64, 0, 1, span=0.1)),
    Phase("sequential read", 1, access=Access(1, 64, 0, 1, span=0.1)),
    Phase("4K queued read", 8, access=QUEUED_READ),
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
            Profile(f"{what}, uniformly random", "", Access(reads, 1)),
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
        "10 snapshots in 2 minutes, held for 10, deleted at once",
        HPE,
        Access(0.5, 2, in_flight=32),
        HPE_PHASES,
        layout="raid6-4+2",
    ),
    **dict(_load_steps()),
    "netone-steady": Profile(
        "8 clients at a constant rate; snapshots, a path that fails for a moment, a device that is "
        "absent until the repair timer runs out, a dead device",
        STEADY,
        Access(0.7, 1, in_flight=8),
        FAULTS,
        layout="raid5-4+1",
    ),
    "vmware-4k-random": Profile(
        "4 KiB, half reads and half writes, random", VMWARE, Access(0.5, 1, in_flight=128)
    ),
    "vmware-4k-sequential": Profile(
        "4 KiB, half reads and half writes, sequential", VMWARE, Access(0.5, 1, 0, in_flight=128)
    ),
    "vmware-16k-mix": Profile(
        "16 KiB, half random and half sequential; 1 to 12 snapshots, a phase after each, "
        "then they are deleted one by one",
        VMWARE,
        Access(0.5, 4, 0.5, in_flight=128),
        LADDER,
    ),
    **dict(_hcibench()),
    "vfrc-crystal": Profile(
        "the four tests of CrystalDiskMark on a tenth of the disk, after it was read once",
        VFRC,
        QUEUED_READ,
        CRYSTAL,
        500,
    ),
    "vfrc-sizing": Profile(
        "4 KiB, half reads and half writes, some blocks far more often than others",
        VFRC,
        Access(0.5, 1, skew=0.9),
        (Phase("warm", 20), Phase("run", 20)),
    ),
}
