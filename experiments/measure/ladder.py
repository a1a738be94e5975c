"""Measuring what snapshots cost an engine: up a ladder of them and down again; and reads and writes
one by one, with more and more of them.
"""

from typing import NamedTuple

from experiments.chapter import Settings
from refmodel.bench import runner
from refmodel.bench.results import Result

LADDER, RANDOM, SEQUENTIAL = "vmware-16k-mix", "vmware-4k-random", "vmware-4k-sequential"
MOST = 12  # snapshots
COUNTS = (0, 1, 2, 4, 8, 12)
OPERATIONS = 3000  # at scale 1


class Climb(NamedTuple):
    """A ladder of snapshots up and down again: a value a rung, 0 to 12 and back to 0."""

    name: str
    result: Result
    rate: list[float]  # operations a second, in proportion to the first rung
    cost: list[float]  # device I/Os of an operation in the foreground


class Point(NamedTuple):
    """4 KiB operations with so many snapshots."""

    foreground: float  # device I/Os of one
    iops: float


def up_and_down(engine: str, settings: Settings) -> Climb:
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
    """Reads, and writes, for each of COUNTS."""
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
    """The rate with snapshots, in proportion to that without."""
    settings.say(f"{profile} on {engine} with 0 and {MOST} snapshots")
    none, many = (
        runner.run(
            profile, engine=engine, scale=settings.scale, seed=settings.seed, snapshots=count
        )
        for count in (0, MOST)
    )
    return many.iops / none.iops
