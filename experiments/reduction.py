"""E: data reduction and tiers (StorageReview's test of VSAN 6.2), as far as there is something here to measure."""

from experiments.chapter import Chapter, Figure, Settings
from experiments.plots import colour, panels, svg
from refmodel import bench
from refmodel.bench import Part

PROFILES = ("4k-read", "4k-write", "8k-70", "32k-read", "32k-write")
MISSING = "the engine has no data reduction yet"


def run(settings: Settings) -> Chapter:
    chapter = Chapter(
        "E", "Data reduction, and working sets in and out of the cache",
        "StorageReview, VSAN 6.2, HCIBench: five profiles, a working set inside and outside the cache, hybrid and with deduplication (4 KB, SHA-1, at destage) and compression (4 KB to at most 2 KB): 3 to 6 times the capacity, "
        "little lost in the cache, throughput lost outside it.",
        f"Profiles hcibench-* at scale {settings.scale:g} on the log-structured engine, on a tenth of the disk and on all of it.",
    )  # fmt: skip
    chapter.not_run("Deduplication and compression give 3 to 6 times the capacity", MISSING)
    chapter.not_run("Reduction costs little inside the cache, and throughput outside it", MISSING)
    found = {name: _both(name, settings) for name in PROFILES}
    for name in ("4k-read", "32k-read"):
        inside, outside = found[name]
        chapter.judge(
            f"Without tiers the working set does not matter: {name}",
            f"{inside.foreground:.3f} device I/Os of a read on a tenth of the disk, {outside.foreground:.3f} on all of it",
            abs(inside.foreground / outside.foreground - 1) <= 0.02,
            "The published hybrid falls from 227,342 to 6,747 IOPS where reads leave its flash tier; there is one tier here, so it is the counterpart of all-flash.",
        )
    chapter.figures.append(_figure(found))
    return chapter


def _both(name: str, settings: Settings) -> tuple[Part, Part]:
    settings.say(f"hcibench-{name}, on a tenth of the disk and on all of it")
    inside, outside = (bench.run(f"hcibench-{name}{where}", scale=settings.scale, seed=settings.seed).part("run") for where in ("-in-cache", ""))
    return inside, outside


def _figure(found: dict[str, tuple[Part, Part]]) -> Figure:
    drawing, (rate, ios) = panels(1, 2, width=9.5, height=3.0)
    places = range(len(found))
    for number, (label, shade) in enumerate((("a tenth of the disk", "#8fbcdb"), ("all of it", colour("log-structured")))):
        at = [place + 0.4 * number - 0.2 for place in places]
        rate.bar(at, [parts[number].iops / 1000 for parts in found.values()], 0.38, color=shade, label=label)
        ios.bar(at, [parts[number].devices.ios.total() / parts[number].operations for parts in found.values()], 0.38, color=shade)
    for axis in (rate, ios):
        axis.set_xticks(list(places), list(found))
    rate.set_ylabel("thousand IOPS")
    ios.set_ylabel("device I/Os of an operation,\nbackground included")
    rate.legend(fontsize=8.5)
    caption = "HCIBench's five profiles on one tier. Large sequential reads take a device I/O for each 4 KiB chunk: chunks are found one by one."
    return Figure("hcibench", "The five profiles", caption, svg(drawing, "hcibench"))
