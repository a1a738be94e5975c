"""A: native snapshots do not slow I/O (HPE's test of vSAN ESA)."""

from collections.abc import Iterable

from experiments.chapter import Chapter, Settings
from experiments.measure import twins
from experiments.measure.longest_write import longest_write
from experiments.measure.timeline import timeline
from refmodel.bench import runner
from refmodel.bench.results import Result
from refmodel.bench.workloads.profiles import PROFILES
from refmodel.bench.workloads.workload import BLOCK

PROFILE = "hpe-8k-50"
MANY = (0, 12, 200)  # snapshots
BLOCKS, OPERATIONS = 2048, 4000  # size of the run that counts single operations
OLD = "redo-se"  # the engine that the log-structured disk replaced
REPEATS = 3
NOISE = 0.10  # noise of CPU time on a shared machine


def run(settings: Settings) -> Chapter:
    """Measure load before, during and after ten snapshots, as in HPE's test."""
    chapter = Chapter(
        "A",
        "Native snapshots do not slow I/O",
        "HPE, vSAN ESA, RAID-6 4+2: one VM with two disks, vdbench, 8 KB, half of it read, "
        "random, 16 threads per disk. Ten minutes; 10 snapshots in two minutes; ten minutes with "
        "all of them; all deleted at once; ten minutes more. 62,371 IOPS at 0.51 ms, and no "
        "visible change in any phase.",
        f"Profile {PROFILE} at scale {settings.scale:g} on RAID-6 4+2, and the same operations "
        "once more without snapshots. Every phase is compared with its twin.",
    )
    settings.say(f"{PROFILE}, with snapshots and without")
    runs, controls = [], []
    for _ in range(REPEATS):
        runs.append(runner.run(PROFILE, scale=settings.scale, seed=settings.seed))
        controls.append(runner.run(PROFILE, scale=settings.scale, seed=settings.seed, still=True))
    result, control = runs[-1], controls[-1]
    _phases(chapter, runs, controls)
    _bytes(chapter, result, control)
    _stripes(chapter, result)
    _counts(chapter, settings)
    _chain(chapter, settings)
    chapter.figures.append(longest_write(settings))
    return chapter


def _phases(chapter: Chapter, runs: list[Result], controls: list[Result]) -> None:
    """Run the phases and their control run several times.

    Counts are the same every time; the best time is the least disturbed one.
    """
    result, control = runs[-1], controls[-1]
    chapter.judge(
        "No visible change in any phase: device I/Os that an operation waits for",
        f"ratios of with to without snapshots, in the five phases: {twins.ratios(result, control)}",
        all(twins.alike(part, control.part(part.name)) for part in result.phases),
        "Exact: the same bytes are written, and only what clients asked for is read. Which "
        "blocks are in the bank, and are read from there, depends on what a snapshot holds.",
    )
    operations = result.part("10 snapshots").operations
    background = (
        "After the deletion, reclaim takes a step before each write, in the clients' "
        "thread. In the published set-up it has cores of its own."
    )
    copies = (
        f"Ten snapshots are taken within {operations:,} operations here. After each, every "
        "leaf of the map that is written to is copied once. The published set-up spreads "
        "that work over millions of operations."
    )
    for names, when, why in (
        (
            ("before", "hold", "after"),
            "before, while the snapshots are held, and after they were deleted",
            background,
        ),
        (("10 snapshots", "delete all"), "while they are taken and deleted", copies),
    ):
        rates = {
            name: max(run.part(name).iops for run in runs)
            / max(twin.part(name).iops for twin in controls)
            for name in names
        }
        chapter.judge(
            f"No visible change {when}: operations per CPU second",
            f"{_listed(rates.values())} times the rate without snapshots ({', '.join(names)}), "
            f"each the best of {len(runs)} runs",
            all(ratio >= 1 - NOISE for ratio in rates.values()),
            f"A difference up to {NOISE:.0%} counts as noise. {why}",
            must=False,
        )
    deletion = next(done for done in result.actions if done.action == "delete-all")
    chapter.judge(
        "All snapshots are deleted at once, in 3 s",
        f"ten deletions took {deletion.devices.ios['foreground']} device writes of "
        f"{deletion.devices.bytes_written['foreground'] // deletion.devices.ios['foreground']} "
        "bytes in the foreground",
        deletion.devices.ios["foreground"] == 10 * 3,
        "A deletion is one record in the durable log, on each of three mirrors. Times of "
        "different machines cannot be compared.",
    )
    chapter.figures.append(
        timeline(
            result,
            control,
            name="snapshots-over-time",
            title="Ten snapshots are taken, held and deleted",
            caption=(
                "HPE's test on the log-structured engine. In every phase an operation waits for "
                "the same device I/Os (foreground) as without snapshots; the records of the "
                "snapshots themselves come on top. Time is CPU time, which the background shares "
                f"here: after the deletion the rate is {_after(result, control):.2f} times that of "
                "the same operations without snapshots."
            ),
        )
    )


def _after(result: Result, control: Result) -> float:
    """Return the rate behind the deletion, as the figure shows it, per rate of the control run."""
    return result.part("after").iops / control.part("after").iops


def _bytes(chapter: Chapter, result: Result, control: Result) -> None:
    """Measure the bytes written to devices in all, and explain why they differ."""
    user = sum(part.user_bytes_written for part in result.phases)
    written, twin = result.devices.bytes_written, control.devices.bytes_written
    ratio = written.total() / twin.total()
    differences = {cause: (written[cause] - twin[cause]) / user for cause in sorted(written | twin)}
    by_cause = ", ".join(
        f"{cause} {change:+.3f}" for cause, change in differences.items() if abs(change) >= 0.0005
    )
    chapter.judge(
        "Snapshots add no writes: all bytes to devices per byte that users wrote, within 5 %",
        f"{written.total() / user:.3f} with ten snapshots, {twin.total() / user:.3f} without: "
        f"{ratio:.3f} times. The difference: {by_cause or 'none'}",
        abs(ratio - 1) <= 0.05,
        "The difference comes from what snapshots hold: blocks that are overwritten in the bank "
        "are destaged if a snapshot holds them, and nodes that a snapshot shares are copied once.",
    )


def _stripes(chapter: Chapter, result: Result) -> None:
    """Check that destage writes full stripes only."""
    devices = result.devices
    pieces = devices.bytes_written["destage"] / devices.ios["destage"]
    stripe = runner.SEGMENT * BLOCK
    chapter.judge(
        "Small I/O is acknowledged from the performance leg and written to the capacity leg in "
        "512 KB full stripes with parity",
        f"{devices.ios['destage']} writes by destage of {pieces / 1024:g} KiB each, 6 to a stripe "
        f"of {stripe >> 10} KiB; reads by destage: {devices.bytes_read['destage']} bytes",
        pieces == stripe / 4
        and devices.ios["destage"] % 6 == 0
        and devices.bytes_read["destage"] == 0,
    )


def _counts(chapter: Chapter, settings: Settings) -> None:
    """Count the I/Os of reads and writes one by one, with more and more snapshots."""
    for profile, name in (("4k-random-write", "write"), ("4k-random-read", "read")):
        settings.say(f"{profile} with {', '.join(map(str, MANY))} snapshots")
        runs = [
            runner.run(
                profile,
                layout=PROFILES[PROFILE].layout,
                blocks=BLOCKS,
                operations=OPERATIONS,
                depth=1,
                snapshots=count,
                room=max(MANY),
                seed=settings.seed,
            )
            for count in MANY
        ]
        found = [one.foreground for one in runs]
        moved = [one.devices.bytes["foreground"] for one in runs]
        chapter.judge(
            f"No added I/O per {name}, however many snapshots there are",
            f"{', '.join(f'{per:.3f}' for per in found)} foreground device I/Os per 4 KiB {name} "
            f"with {', '.join(map(str, MANY))} snapshots: ratio {max(found) / found[0]:.3f}, and "
            f"{max(moved) / moved[0]:.3f} of the bytes",
            all(twins.same(one, runs[0]) for one in runs)
            and all(f"{per / found[0]:.3f}" == "1.000" for per in found),
            "Exact, apart from one more write per mirror if a record wraps around the end of the "
            "log's ring.",
        )
        if name == "write":
            written = [one.devices.bytes_written.total() / one.user_bytes for one in runs]
            chapter.judge(
                "Bytes written to devices per byte that users wrote do not depend on the number "
                "of snapshots, within 5 %",
                f"{', '.join(f'{per:.3f}' for per in written)} with {', '.join(map(str, MANY))} "
                "snapshots",
                all(abs(per / written[0] - 1) <= 0.05 for per in written),
            )


def _chain(chapter: Chapter, settings: Settings) -> None:
    """Run the same test on the earlier format, redo-log chains."""
    settings.say(f"{PROFILE} on {OLD}, with snapshots and without")
    result, control = (
        runner.run(PROFILE, engine=OLD, scale=settings.scale, seed=settings.seed, still=still)
        for still in (False, True)
    )
    total = {
        part.name: part.devices.ios.total() / control.part(part.name).devices.ios.total()
        for part in result.phases
    }
    measured = (
        f"{OLD}: {_listed(total.values())} times the device I/Os without snapshots, in the "
        "five phases"
    )
    chapter.judge(
        "Older delta-disk snapshots: throughput falls when they are taken, and stays low while "
        "they exist",
        measured,
        abs(total["before"] - 1) <= 0.001 and min(total["10 snapshots"], total["hold"]) > 1.5,
        "All device I/Os count, also those of consolidation, which shares the devices with the "
        "clients.",
    )
    chapter.judge(
        "Older delta-disk snapshots: throughput is lowest while they are deleted",
        measured,
        total["delete all"] > total["hold"],
        "Consolidation here takes a small step before each change. On so small a disk the "
        "topmost layer soon has most blocks, so reads look into fewer layers.",
        must=False,
    )
    chapter.figures.append(
        timeline(
            result,
            control,
            name="chain-over-time",
            title="The same test on a chain of redo logs",
            caption=(
                f"The engine {OLD}, modelled on SEsparse. Each snapshot adds a layer that reads "
                "look into. After the deletion the layers are merged while clients go on."
            ),
        )
    )


def _listed(ratios: Iterable[float]) -> str:
    return ", ".join(f"{ratio:.3f}" for ratio in ratios)
