"""E: data reduction and tiers (StorageReview's test of VSAN 6.2), as far as there is something here
to measure.
"""

from typing import TypedDict, Unpack

from experiments.chapter import Chapter, Figure, Settings
from experiments.figures.plots import colour, panels, svg
from refmodel.bench import runner
from refmodel.bench.results import Part, Result
from refmodel.bench.workloads.workload import BLOCK, DISK
from refmodel.registry import DEFAULT


class Reductions(TypedDict, total=False):
    """The data reduction of a run."""

    compression: bool
    deduplication: bool


PROFILES = ("4k-read", "4k-write", "8k-70", "32k-read", "32k-write")
CACHE = 0.2  # size of the cache, as a share of the disk
MODES: dict[str, Reductions] = {
    "as it is": {},
    "compression": {"compression": True},
    "deduplication": {"deduplication": True},
    "both": {"compression": True, "deduplication": True},
}
READS = ("4k-read", "32k-read")
COMPARED = ("4k-read", "4k-write", "32k-read")
DATA = (
    "The ratio depends on the data. Here nine of ten blocks come from source files of "
    "Python's library (as many different blocks as a quarter of the disk), and one of ten is "
    "random bytes. Lengths are rounded up to an eighth, a quarter or half of a block."
)


def run(settings: Settings) -> Chapter:
    """Measure data reduction and working sets, as in StorageReview's test."""
    chapter = Chapter(
        "E",
        "Data reduction, and working sets in and out of the cache",
        "StorageReview, VSAN 6.2, HCIBench: five profiles, a working set inside and outside the "
        "cache, hybrid, and with deduplication (4 KB, SHA-1, at destage) and compression (4 KB "
        "to at most 2 KB). Capacity: 3 to 6 times. Throughput: little is lost in the cache, more "
        "outside it.",
        f"Profiles hcibench-* at scale {settings.scale:g} on the log-structured engine behind a "
        "read cache of a fifth of the disk, on a tenth of the disk and on all of it; then with "
        "data reduction.",
    )
    found = {name: _both(name, settings) for name in PROFILES}
    modes = {mode: _outside(options, settings) for mode, options in MODES.items()}
    _reduction(chapter, found, modes, settings)
    for name, published in (
        ("4k-read", "227,342 IOPS to 6,747"),
        ("8k-70", "121,329 to 8,584"),
        ("32k-read", "86,379 to 79,703"),
    ):
        inside, outside = found[name]
        chapter.judge(
            f"{name}: a working set that fits the cache is read from it, a larger one from the "
            f"disk (hybrid: {published})",
            f"{inside.hit_rate:.1%} hits on a tenth of the disk, {outside.hit_rate:.1%} on all of "
            f"it; {inside.foreground:.3f} and {outside.foreground:.3f} device I/Os of the disk "
            "per request",
            inside.hit_rate > 0.9
            and outside.hit_rate < 0.5
            and inside.foreground < outside.foreground,
            "The cache here is a read cache in the host; the published one is the flash tier of "
            "the disk itself. The cost of the slower tier's medium is not measured.",
        )
    for name in ("4k-write", "32k-write"):
        inside, outside = found[name]
        chapter.judge(
            f"{name}: the cache makes no difference for writes, because it is write-through",
            f"{inside.foreground:.3f} device I/Os of the disk per request on a tenth of it, "
            f"{outside.foreground:.3f} on all of it",
            abs(inside.foreground / outside.foreground - 1) <= 0.02,
            "The tier of the published hybrid buffers writes, too: 63,868 IOPS to 14,404. Here "
            "the durable log does that, for a working set of any size.",
        )
    chapter.figures += [_figure(found), _reduced(modes)]
    return chapter


def _reduction(
    chapter: Chapter,
    found: dict[str, tuple[Part, Part]],
    modes: dict[str, dict[str, Result]],
    settings: Settings,
) -> None:
    ratios = {
        mode: results["4k-read"].reduction or 1.0
        for mode, results in modes.items()
        if mode != "as it is"
    }
    chapter.judge(
        "Deduplication and compression give 3 to 6 times the capacity",
        ", ".join(f"{mode} {ratio:.2f} to 1" for mode, ratio in ratios.items()),
        3 <= ratios["both"] <= 6,
        DATA,
        must=False,  # the files are those of whatever Python runs this
    )
    reduced = {name: _both(name, settings, **MODES["both"]) for name in COMPARED}
    ios = {
        name: [(found[name][place].foreground, reduced[name][place].foreground) for place in (0, 1)]
        for name in COMPARED
    }
    rates = {
        name: [reduced[name][place].iops / found[name][place].iops for place in (0, 1)]
        for name in COMPARED
    }
    chapter.judge(
        "Reduction costs little inside the cache, and throughput outside it",
        "device I/Os of the disk per request, without and with both, on a tenth of the disk and "
        "on all of it: "
        + "; ".join(
            f"{name} {inside[0]:.3f} to {inside[1]:.3f} and {outside[0]:.3f} to {outside[1]:.3f}"
            for name, (inside, outside) in ios.items()
        )
        + "; operations per CPU second, ratio of with both to without: "
        + ", ".join(
            f"{name} {inside:.2f} and {outside:.2f}" for name, (inside, outside) in rates.items()
        ),
        all(with_ <= 1.02 * without for (without, with_), _ in ios.values())
        and ios["32k-read"][1][1] > ios["32k-read"][1][0],
        "Judged by device I/Os. The published 4 KiB reads gain, because they come from flash in "
        "place of disks. Here neighbouring blocks that have different lengths, or are shared, "
        "are no longer neighbours on the devices: sequential reads need more I/Os. Writes need "
        "more CPU time, inside the cache and outside (published: 0.64 of the rate inside).",
    )


def _outside(options: Reductions, settings: Settings) -> dict[str, Result]:
    """Return reads on all of the disk, by profile."""
    settings.say(f"reads on all of the disk, {' and '.join(options) or 'data as it is'}")
    return {name: _run(f"hcibench-{name}", settings, **options) for name in READS}


def _both(name: str, settings: Settings, **options: Unpack[Reductions]) -> tuple[Part, Part]:
    settings.say(
        f"hcibench-{name}, on a tenth of the disk and on all of it{', reduced' if options else ''}"
    )
    inside, outside = (
        _run(f"hcibench-{name}{where}", settings, **options).part("run")
        for where in ("-in-cache", "")
    )
    return inside, outside


def _run(profile: str, settings: Settings, **options: Unpack[Reductions]) -> Result:
    size = round(CACHE * DISK * settings.scale) * BLOCK
    return runner.run(
        profile, scale=settings.scale, seed=settings.seed, cache_bytes=size, **options
    )


def _reduced(modes: dict[str, dict[str, Result]]) -> Figure:
    drawing, (ratio, ios) = panels(1, 2, width=9.5, height=3.0)
    places = range(len(modes))
    ratio.bar(
        places,
        [results["4k-read"].reduction or 1 for results in modes.values()],
        0.5,
        color=colour(DEFAULT),
    )
    for number, (name, shade) in enumerate(zip(READS, ("#8fbcdb", colour(DEFAULT)), strict=True)):
        at = [place + 0.4 * number - 0.2 for place in places]
        cost = [results[name].part("run").foreground for results in modes.values()]
        ios.bar(at, cost, 0.38, color=shade, label=name)
    for axis in (ratio, ios):
        axis.set_xticks(list(places), list(modes))
    ratio.set_ylabel("blocks per block of space")
    ios.set_ylabel("device I/Os of the disk\nthat an operation waits for")
    ios.legend(fontsize=8.5)
    caption = (
        "What data reduction gains, and what it costs for reads outside the cache: "
        "sequential reads need more device I/Os."
    )
    return Figure("reduction", "Reduction and its cost", caption, svg(drawing, "reduction"))


def _figure(found: dict[str, tuple[Part, Part]]) -> Figure:
    drawing, (rate, ios) = panels(1, 2, width=9.5, height=3.0)
    places = range(len(found))
    for number, (label, shade) in enumerate(
        (("a tenth of the disk", "#8fbcdb"), ("all of it", colour(DEFAULT)))
    ):
        at = [place + 0.4 * number - 0.2 for place in places]
        rate.bar(
            at,
            [parts[number].iops / 1000 for parts in found.values()],
            0.38,
            color=shade,
            label=label,
        )
        ios.bar(at, [parts[number].foreground for parts in found.values()], 0.38, color=shade)
    for axis in (rate, ios):
        axis.set_xticks(list(places), list(found))
    rate.set_ylabel("thousand IOPS")
    ios.set_ylabel("device I/Os of the disk\nthat an operation waits for")
    rate.legend(fontsize=8.5)
    caption = (
        "HCIBench's five profiles behind a read cache of a fifth of the disk: a working "
        "set that fits the cache is not read from the disk."
    )
    return Figure("hcibench", "The five profiles", caption, svg(drawing, "hcibench"))
