"""Measures what a number of snapshots costs an engine, as they are taken and deleted one by one."""

from typing import NamedTuple

from experiments.chapter import Settings
from refmodel.bench import runner
from refmodel.bench.results import Result

LADDER, RANDOM, SEQUENTIAL = "vmware-16k-mix", "vmware-4k-random", "vmware-4k-sequential"
MOST = 12  # snapshots
COUNTS = (0, 1, 2, 4, 8, 12)  # snapshots
OPERATIONS = 3000  # at scale 1


class Climb(NamedTuple):
    """Snapshots taken one by one and deleted one by one: a value for each number, 0 to 12 to 0."""

    name: str
    result: Result
    rate: list[float]  # operations per CPU second, in proportion to the first value
    cost: list[float]  # foreground device I/Os per operation


class Point(NamedTuple):
    """The measurements of 4 KiB operations with some number of snapshots."""

    foreground: float  # device I/Os per operation
    iops: float  # operations per CPU second


def up_and_down(engine: str, settings: Settings) -> Climb:
    """Run the workload with a phase after each of 12 snapshots, and after each deletion."""
    settings.say(f"{LADDER} on {engine}")
    result = runner.run(LADDER, engine=engine, scale=settings.scale, seed=settings.seed)
    parts = result.phases
    return Climb(
        engine,
        result,
        [part.iops / parts[0].iops for part in parts],
        [part.foreground for part in parts],
    )


def depths(engine: str, settings: Settings) -> dict[str, list[Point]]:
    """Measure single reads and writes with each of COUNTS snapshots."""
    found: dict[str, list[Point]] = {}
    for kind in ("read", "write"):
        settings.say(f"4k-random-{kind} on {engine} with {', '.join(map(str, COUNTS))} snapshots")
        runs = (
            runner.run(
                f"4k-random-{kind}",
                engine=engine,
                scale=settings.scale,
                operations=round(OPERATIONS * settings.scale),
                depth=1,
                snapshots=count,
                seed=settings.seed,
            )
            for count in COUNTS
        )
        found[kind] = [Point(one.foreground, one.iops) for one in runs]
    return found


def relative_rate(profile: str, engine: str, settings: Settings) -> float:
    """Return the rate with MOST snapshots, in proportion to the rate without."""
    settings.say(f"{profile} on {engine} with 0 and {MOST} snapshots")
    none, many = (
        runner.run(
            profile, engine=engine, scale=settings.scale, seed=settings.seed, snapshots=count
        )
        for count in (0, MOST)
    )
    return many.iops / none.iops
