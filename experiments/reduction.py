"""E: data reduction and tiers (StorageReview's test of VSAN 6.2), as far as there is something here to measure."""

from experiments.chapter import Chapter, Figure, Settings
from experiments.plots import colour, panels, svg
from refmodel import bench
from refmodel.bench import Part
from refmodel.engines import DEFAULT
from refmodel.profiles import BLOCK, DISK

PROFILES = ("4k-read", "4k-write", "8k-70", "32k-read", "32k-write")
CACHE = 0.2  # of the disk
MISSING = "the engine has no data reduction yet"


def run(settings: Settings) -> Chapter:
    chapter = Chapter(
        "E", "Data reduction, and working sets in and out of the cache",
        "StorageReview, VSAN 6.2, HCIBench: five profiles, a working set inside and outside the cache, hybrid "
        "and with deduplication (4 KB, SHA-1, at destage) and compression (4 KB to at most 2 KB): 3 to 6 times "
        "the capacity, "
        "little lost in the cache, throughput lost outside it.",
        f"Profiles hcibench-* at scale {settings.scale:g} on the log-structured engine behind a read cache of a "
        "fifth of the disk, on a tenth of the disk and on all of it.",
    )  # fmt: skip
    chapter.not_run("Deduplication and compression give 3 to 6 times the capacity", MISSING)
    chapter.not_run("Reduction costs little inside the cache, and throughput outside it", MISSING)
    found = {name: _both(name, settings) for name in PROFILES}
    for name, published in (
        ("4k-read", "227,342 IOPS to 6,747"),
        ("8k-70", "121,329 to 8,584"),
        ("32k-read", "86,379 to 79,703"),
    ):
        inside, outside = found[name]
        chapter.judge(
            f"{name}: what fits the cache is read from it, what does not is read from the disk (hybrid: {published})",
            f"{inside.hit_rate:.1%} hits on a tenth of the disk, {outside.hit_rate:.1%} on all of it; "
            f"{inside.foreground:.3f} and {outside.foreground:.3f} device I/Os of the disk for a request",
            inside.hit_rate > 0.9 and outside.hit_rate < 0.5 and inside.foreground < outside.foreground,
            "The cache here is a read cache in the host; the published one is the flash tier of the disk itself. "
            "What the slower tier's medium costs is not measured.",
        )
    for name in ("4k-write", "32k-write"):
        inside, outside = found[name]
        chapter.judge(
            f"{name}: for writes the cache makes no difference, since it is write-through",
            f"{inside.foreground:.3f} device I/Os of the disk for a request on a tenth of it, "
            f"{outside.foreground:.3f} on all of it",
            abs(inside.foreground / outside.foreground - 1) <= 0.02,
            "The published hybrid's tier buffers writes, too: 63,868 IOPS to 14,404. Here the durable log does, "
            "at any size.",
        )
    chapter.figures.append(_figure(found))
    return chapter


def _both(name: str, settings: Settings) -> tuple[Part, Part]:
    settings.say(f"hcibench-{name}, on a tenth of the disk and on all of it")
    size = round(CACHE * DISK * settings.scale) * BLOCK
    inside, outside = (
        bench.run(f"hcibench-{name}{where}", scale=settings.scale, seed=settings.seed, cache_bytes=size).part("run")
        for where in ("-in-cache", "")
    )
    return inside, outside


def _figure(found: dict[str, tuple[Part, Part]]) -> Figure:
    drawing, (rate, ios) = panels(1, 2, width=9.5, height=3.0)
    places = range(len(found))
    for number, (label, shade) in enumerate((("a tenth of the disk", "#8fbcdb"), ("all of it", colour(DEFAULT)))):
        at = [place + 0.4 * number - 0.2 for place in places]
        rate.bar(at, [parts[number].iops / 1000 for parts in found.values()], 0.38, color=shade, label=label)
        ios.bar(at, [parts[number].foreground for parts in found.values()], 0.38, color=shade)
    for axis in (rate, ios):
        axis.set_xticks(list(places), list(found))
    rate.set_ylabel("thousand IOPS")
    ios.set_ylabel("device I/Os of the disk\nthat an operation waits for")
    rate.legend(fontsize=8.5)
    caption = (
        "HCIBench's five profiles behind a read cache of a fifth of the disk: what fits it is not read from the disk."
    )
    return Figure("hcibench", "The five profiles", caption, svg(drawing, "hcibench"))
